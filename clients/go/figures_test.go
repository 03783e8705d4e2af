package tamis_test

import (
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	tamis "github.com/tamis-storage/tamis/clients/go"
)

// TestFigures measures how long an element, and slices, of arrays of 4 KiB elements take: with
// TAMIS_FIGURES, a list of lengths such as 10,1000,100000. The servers take turns.
func TestFigures(t *testing.T) {
	lengths := os.Getenv("TAMIS_FIGURES")
	if lengths == "" {
		t.Skip("TAMIS_FIGURES names no lengths of arrays")
	}
	running.Do(begin)
	const elementBytes, rounds, reads = 4096, 5, 2000
	clients := make([]*tamis.Client, len(running.servers))
	names := make([]string, len(clients))
	for i, s := range running.servers {
		clients[i] = tamis.New(s.address, tamis.Options{})
		defer clients[i].Close()
		names[i] = s.name
	}
	fmt.Printf("| length | elements read | %s |\n", strings.Join(names, " µs | "))
	for _, word := range strings.Split(lengths, ",") {
		length := must(strconv.Atoi(word))(t)
		elements := make([]byte, length*elementBytes)
		rand.New(rand.NewSource(int64(length))).Read(elements)
		for _, client := range clients {
			check(t, client.Array("figures").Create(background, elementBytes, elements, 0))
		}
		for _, count := range []int{1, 4, 16, 64} {
			medians := make([][]float64, len(clients))
			for round := 0; round < rounds; round++ {
				for i, client := range clients {
					median := medianOf(t, client.Array("figures"), length, count, reads/count)
					medians[i] = append(medians[i], median)
				}
			}
			told := make([]string, len(clients))
			for i := range medians {
				sort.Float64s(medians[i])
				told[i] = fmt.Sprintf("%.1f", medians[i][rounds/2])
			}
			fmt.Printf("| %d | %d | %s |\n", length, count, strings.Join(told, " | "))
		}
		for _, client := range clients {
			check(t, client.Array("figures").Delete(background))
		}
	}
}

// medianOf is the median of the times of reads at random places, in microseconds.
func medianOf(t *testing.T, array *tamis.Array, length, count, reads int) float64 {
	t.Helper()
	times := make([]float64, reads)
	for i := range times {
		first := rand.Intn(length)
		begun := time.Now()
		if _, err := array.Slice(background, first, count); err != nil {
			t.Fatal(err)
		}
		times[i] = float64(time.Since(begun).Nanoseconds()) / 1000
	}
	sort.Float64s(times)
	return times[len(times)/2]
}
