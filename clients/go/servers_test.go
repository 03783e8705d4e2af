package tamis_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	tamis "github.com/tamis-storage/tamis/clients/go"
)

// The servers of the tests: the model server of the Rust room memcached, at TAMIS_MODEL_SERVER or
// where cargo leaves it (cargo build -p memcached --example model_server); and memcached, where it
// is installed. What is not there is skipped.

type server struct {
	name    string
	address string
	// knowsParts says that it is a Tamis.
	knowsParts bool
}

var running struct {
	sync.Once
	servers  []server
	accounts string
	ended    []func()
}

func modelServer() string {
	if path := os.Getenv("TAMIS_MODEL_SERVER"); path != "" {
		return path
	}
	for _, profile := range []string{"release", "debug"} {
		path := filepath.Join("..", "..", "target", profile, "examples", "model_server")
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

func freePort() int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// start runs a program until the tests end, and waits until it listens.
func start(network, address, program string, words ...string) {
	command := exec.Command(program, words...)
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		panic(err)
	}
	running.ended = append(running.ended, func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	for try := 0; try < 200; try++ {
		if socket, err := net.Dial(network, address); err == nil {
			socket.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	panic(fmt.Sprintf("%s does not listen at %s", program, address))
}

func begin() {
	const valueBytesMax = 1 << 30
	if path := modelServer(); path != "" {
		ports := []int{freePort(), freePort()}
		addresses := make([]string, len(ports))
		for i, account := range []string{"", "ann:s3cret"} {
			addresses[i] = "127.0.0.1:" + strconv.Itoa(ports[i])
			limit := strconv.Itoa(valueBytesMax)
			start("tcp", addresses[i], path, strconv.Itoa(ports[i]), account, limit)
		}
		running.servers = append(running.servers, server{"model", addresses[0], true})
		running.accounts = addresses[1]
	}
	if address := os.Getenv("TAMIS_SERVER"); address != "" {
		running.servers = append(running.servers, server{"tamis", address, true})
	}
	if path, err := exec.LookPath("memcached"); err == nil {
		folder, err := os.MkdirTemp("", "tamis-go")
		if err != nil {
			panic(err)
		}
		socket := filepath.Join(folder, "memcached")
		words := []string{"-s", socket, "-m", "2048", "-t", "2", "-I", "128m"}
		if os.Geteuid() == 0 {
			words = append(words, "-u", "root")
		}
		start("unix", socket, path, words...)
		running.ended = append(running.ended, func() { os.RemoveAll(folder) })
		running.servers = append(running.servers, server{"memcached", "unix:" + socket, false})
	}
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, end := range running.ended {
		end()
	}
	os.Exit(code)
}

// flush removes what another test, or another run, has left.
func flush(t *testing.T, address string) {
	t.Helper()
	network := "tcp"
	if path, isUnix := strings.CutPrefix(address, "unix:"); isUnix {
		network, address = "unix", path
	}
	socket := must(net.Dial(network, address))(t)
	defer socket.Close()
	must(io.WriteString(socket, "flush_all\r\n"))(t)
	must(io.ReadFull(socket, make([]byte, len("OK\r\n"))))(t)
}

// eachServer runs a test with a client of each server, which is empty.
func eachServer(t *testing.T, test func(t *testing.T, c *tamis.Client, s server)) {
	t.Helper()
	running.Do(begin)
	if len(running.servers) == 0 {
		t.Skip("neither the model server nor memcached is here")
	}
	for _, s := range running.servers {
		t.Run(s.name, func(t *testing.T) {
			flush(t, s.address)
			client := tamis.New(s.address, tamis.Options{Timeout: time.Minute})
			defer client.Close()
			test(t, client, s)
		})
	}
}

var background = context.Background()

// must fails the test with an error.
func must[T any](value T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
