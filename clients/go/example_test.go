package tamis_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	tamis "github.com/tamis-storage/tamis/clients/go"
)

func Example() {
	ctx := context.Background()
	client := tamis.New("127.0.0.1:11211", tamis.Options{Timeout: time.Second})
	defer client.Close()

	item := tamis.Item{Key: "greeting", Value: []byte("hello"), TTL: time.Hour}
	if _, err := client.Set(ctx, item); err != nil {
		fmt.Println(err)
		return
	}
	got, err := client.Get(ctx, "greeting")
	if errors.Is(err, tamis.ErrNotFound) {
		fmt.Println("it has ended")
		return
	}
	fmt.Println(string(got.Value), err)
}

// An account of the server's has a cache of its own.
func ExampleNew() {
	client := tamis.New("unix:/run/tamis/cache", tamis.Options{User: "ann", Password: "s3cret"})
	defer client.Close()
}

// What one reads decides what is stored, and nobody stores in between.
func ExampleClient_CompareAndSwap() {
	ctx := context.Background()
	client := tamis.New("127.0.0.1:11211", tamis.Options{})
	defer client.Close()
	for {
		item, err := client.Get(ctx, "visitors")
		if err != nil {
			return
		}
		item.Value = append(item.Value, " ann"...)
		if _, err = client.CompareAndSwap(ctx, item); !errors.Is(err, tamis.ErrExists) {
			return
		}
	}
}

// Many operations are one round trip.
func ExampleBatch() {
	client := tamis.New("127.0.0.1:11211", tamis.Options{})
	defer client.Close()
	batch := client.Batch()
	batch.Set(tamis.Item{Key: "a", Value: []byte("1")})
	sum := batch.Increment("a", 41)
	if err := batch.Run(context.Background()); err != nil {
		return
	}
	fmt.Println(sum.Number, sum.Err)
}

// A matrix of 1000 rows, of which a row is read in one round trip.
func ExampleArray() {
	ctx := context.Background()
	client := tamis.New("127.0.0.1:11211", tamis.Options{})
	defer client.Close()
	const rowBytes = 4096
	rows := client.Array("matrix")
	if err := rows.Create(ctx, rowBytes, make([]byte, 1000*rowBytes), 0); err != nil {
		return
	}
	row, err := rows.Element(ctx, 17)
	fmt.Println(len(row), err)
	some, err := rows.Slice(ctx, 100, 50)
	fmt.Println(len(some)/rowBytes, err)
}

// The columns of a table: each has its pages, of any length.
func ExampleList() {
	ctx := context.Background()
	client := tamis.New("127.0.0.1:11211", tamis.Options{})
	defer client.Close()
	table := client.List("table")
	pages := []tamis.Value{{Bytes: []byte("first page")}, {Bytes: []byte("second")}}
	columns := []tamis.Value{{List: pages}, {Bytes: make([]byte, 800), ElementBytes: 8}}
	if err := table.Create(ctx, columns, 0); err != nil {
		return
	}
	page, err := table.Value(ctx, 0, 1)
	fmt.Println(string(page), err)
	number, err := table.Value(ctx, 1, 42)
	fmt.Println(len(number), err)
}

// A file is stored and read without being in memory.
func ExampleClient_SetFrom() {
	ctx := context.Background()
	client := tamis.New("127.0.0.1:11211", tamis.Options{})
	defer client.Close()
	file, err := os.Open("model.bin")
	if err != nil {
		return
	}
	defer file.Close()
	about, err := file.Stat()
	if err != nil {
		return
	}
	if _, err = client.SetFrom(ctx, tamis.Item{Key: "model"}, file, about.Size()); err != nil {
		return
	}
	reader, err := client.NewReader(ctx, "model")
	if err != nil {
		return
	}
	defer reader.Close()
	_, _ = io.Copy(io.Discard, reader)
}
