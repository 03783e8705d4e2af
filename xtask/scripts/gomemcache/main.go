// Go's client of memcached finds what it put.
//
//	go run . HOST:PORT
package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/bradfitz/gomemcache/memcache"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func expect(is bool, what string) {
	if !is {
		must(fmt.Errorf("not so: %s", what))
	}
}

func main() {
	client := memcache.New(os.Args[1])
	must(client.Ping())
	must(client.Set(&memcache.Item{Key: "go", Value: []byte("one"), Flags: 7, Expiration: 100}))
	item, err := client.Get("go")
	must(err)
	expect(string(item.Value) == "one" && item.Flags == 7, "a value and its flags are kept")
	item.Value = []byte("two")
	must(client.CompareAndSwap(item))
	expect(client.CompareAndSwap(item) == memcache.ErrCASConflict, "a version is used once")
	expect(client.Add(item) == memcache.ErrNotStored, "what is there is not added")
	must(client.Touch("go", 1000))
	must(client.Delete("go"))
	_, err = client.Get("go")
	expect(err == memcache.ErrCacheMiss, "what is deleted is gone")
	must(client.Set(&memcache.Item{Key: "n", Value: []byte("40")}))
	sum, err := client.Increment("n", 2)
	must(err)
	expect(sum == 42, "a counter counts")
	keys := []string{}
	for number := range 64 {
		key := fmt.Sprintf("go-%d", number)
		keys = append(keys, key)
		value := bytes.Repeat([]byte{byte(number)}, number*100)
		must(client.Set(&memcache.Item{Key: key, Value: value}))
	}
	found, err := client.GetMulti(keys)
	must(err)
	expect(len(found) == 64 && len(found["go-63"].Value) == 6300, "64 keys are read at once")
	fmt.Println("gomemcache: values, versions, counters, 64 keys at once")
}
