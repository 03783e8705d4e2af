package tamis_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	tamis "github.com/tamis-storage/tamis/clients/go"
)

// want fails the test if an error is not the one that is expected.
func want(t *testing.T, err, expected error) {
	t.Helper()
	if !errors.Is(err, expected) {
		t.Fatalf("the error is %v, and not %v", err, expected)
	}
}

func TestItemsAreStoredAndRead(t *testing.T) {
	eachServer(t, func(t *testing.T, c *tamis.Client, _ server) {
		for _, key := range []string{"items-a", "items with spaces", "items\n\x00\xff", "ключ"} {
			_, err := c.Get(background, key)
			want(t, err, tamis.ErrNotFound)
			item := tamis.Item{Key: key, Value: []byte("one\r\ntwo"), Flags: 7, TTL: time.Hour}
			version := must(c.Set(background, item))(t)
			got := must(c.Get(background, key))(t)
			if string(got.Value) != "one\r\ntwo" || got.Flags != 7 || got.Version != version {
				t.Fatalf("%+v", got)
			}
			if got.TTL <= 59*time.Minute || got.TTL > time.Hour {
				t.Fatalf("it ends in %v", got.TTL)
			}
			check(t, c.Touch(background, key, 0))
			if got = must(c.Get(background, key))(t); got.TTL != 0 {
				t.Fatalf("it ends in %v, and not never", got.TTL)
			}
			check(t, c.Touch(background, key, 90*24*time.Hour))
			if got = must(c.Get(background, key))(t); got.TTL < 89*24*time.Hour {
				t.Fatalf("it ends in %v, and not in 90 days", got.TTL)
			}
			check(t, c.Delete(background, key))
			want(t, c.Delete(background, key), tamis.ErrNotFound)
			want(t, c.Touch(background, key, 0), tamis.ErrNotFound)
		}
	})
}

func TestConditionsHold(t *testing.T) {
	eachServer(t, func(t *testing.T, c *tamis.Client, _ server) {
		item := tamis.Item{Key: "conditions", Value: []byte("1")}
		_, err := c.Replace(background, item)
		want(t, err, tamis.ErrNotStored)
		_, err = c.CompareAndSwap(background, tamis.Item{Key: "conditions", Version: 5})
		want(t, err, tamis.ErrNotFound)
		_, err = c.Append(background, "conditions", []byte("x"))
		want(t, err, tamis.ErrNotStored)
		version := must(c.Add(background, item))(t)
		_, err = c.Add(background, item)
		want(t, err, tamis.ErrNotStored)
		must(c.Replace(background, item))(t)
		item.Version = version
		_, err = c.CompareAndSwap(background, item)
		want(t, err, tamis.ErrExists)
		item = must(c.Get(background, "conditions"))(t)
		must(c.CompareAndSwap(background, item))(t)
		must(c.Append(background, "conditions", []byte("0")))(t)
		must(c.Prepend(background, "conditions", []byte("4")))(t)
		if sum := must(c.Increment(background, "conditions", 5))(t); sum != 415 {
			t.Fatal(sum)
		}
		if sum := must(c.Decrement(background, "conditions", 500))(t); sum != 0 {
			t.Fatal(sum)
		}
		_, err = c.Increment(background, "conditions none", 1)
		want(t, err, tamis.ErrNotFound)
		must(c.Set(background, tamis.Item{Key: "conditions", Value: []byte("word")}))(t)
		_, err = c.Increment(background, "conditions", 1)
		var said *tamis.ServerError
		var told *tamis.Error
		if !errors.As(err, &said) || !errors.As(err, &told) || told.Key != "conditions" {
			t.Fatal(err)
		}
		must(c.Get(background, "conditions"))(t)
	})
}

func TestKeysAreChecked(t *testing.T) {
	eachServer(t, func(t *testing.T, c *tamis.Client, _ server) {
		for _, key := range []string{"", strings.Repeat("k", 251), strings.Repeat(" ", 188)} {
			_, err := c.Get(background, key)
			want(t, err, tamis.ErrBadKey)
			_, err = c.Set(background, tamis.Item{Key: key})
			want(t, err, tamis.ErrBadKey)
			_, err = c.NewReader(background, key)
			want(t, err, tamis.ErrBadKey)
		}
		for _, key := range []string{strings.Repeat("k", 250), strings.Repeat(" ", 186)} {
			must(c.Set(background, tamis.Item{Key: key}))(t)
		}
	})
}

func TestManyKeysAreOneRoundTrip(t *testing.T) {
	eachServer(t, func(t *testing.T, c *tamis.Client, _ server) {
		batch := c.Batch()
		keys := make([]string, 3000)
		for i := range keys {
			keys[i] = fmt.Sprintf("many-%d", i)
			if i%2 == 0 {
				batch.Set(tamis.Item{Key: keys[i], Value: bytes.Repeat([]byte{byte(i)}, 1000)})
			}
		}
		check(t, batch.Run(background))
		items := must(c.GetMulti(background, keys...))(t)
		if len(items) != 1500 || !bytes.Equal(items["many-6"].Value, bytes.Repeat([]byte{6}, 1000)) {
			t.Fatal(len(items))
		}
	})
}

func TestABatchHasAResultForEachOperation(t *testing.T) {
	eachServer(t, func(t *testing.T, c *tamis.Client, _ server) {
		batch := c.Batch()
		missing := batch.Get("batch-missing")
		set := batch.Set(tamis.Item{Key: "batch-a", Value: []byte("41")})
		sum := batch.Increment("batch-a", 1)
		bad := batch.Get("")
		got := batch.Get("batch-a")
		touched := batch.Touch("batch-a", time.Hour)
		swapped := batch.CompareAndSwap(tamis.Item{Key: "batch-a", Version: 1 << 60})
		added := batch.Add(tamis.Item{Key: "batch-a"})
		gone := batch.Delete("batch-a")
		check(t, batch.Run(background))
		want(t, missing.Err, tamis.ErrNotFound)
		want(t, bad.Err, tamis.ErrBadKey)
		want(t, swapped.Err, tamis.ErrExists)
		want(t, added.Err, tamis.ErrNotStored)
		for _, result := range []*tamis.Result{set, sum, got, touched, gone} {
			check(t, result.Err)
		}
		if sum.Number != 42 || string(got.Item.Value) != "42" || batch.Len() != 0 {
			t.Fatal(sum.Number, got.Item)
		}
		check(t, batch.Run(background))
	})
}

func TestLongValuesAreStreams(t *testing.T) {
	eachServer(t, func(t *testing.T, c *tamis.Client, s server) {
		value := make([]byte, 5<<20)
		for i := range value {
			value[i] = byte(i / 7)
		}
		item := tamis.Item{Key: "long", Flags: 3}
		version := must(c.SetFrom(background, item, bytes.NewReader(value), int64(len(value))))(t)
		reader := must(c.NewReader(background, "long"))(t)
		if reader.Size != int64(len(value)) || reader.Item.Version != version {
			t.Fatal(reader.Size, reader.Item)
		}
		if got := must(io.ReadAll(reader))(t); !bytes.Equal(got, value) {
			t.Fatal("another value")
		}
		check(t, reader.Close())
		// One that is closed early, and one that is not whole.
		reader = must(c.NewReader(background, "long"))(t)
		must(io.ReadFull(reader, make([]byte, 1000)))(t)
		check(t, reader.Close())
		_, err := c.SetFrom(background, item, bytes.NewReader(value[:100]), int64(len(value)))
		want(t, err, io.ErrUnexpectedEOF)
		writer := must(c.NewWriter(background, item, 4))(t)
		_, err = writer.Write([]byte("fiver"))
		if err == nil || writer.Close() == nil {
			t.Fatal("more is written than was announced")
		}
		_, err = c.NewReader(background, "long none")
		want(t, err, tamis.ErrNotFound)
		if got := must(c.Get(background, "long"))(t); !bytes.Equal(got.Value, value) {
			t.Fatal("a value that was not whole is stored")
		}
		_, err = c.SetFrom(background, item, bytes.NewReader(value), 2<<30-3)
		if err == nil {
			t.Fatal("a value of two gibibytes is stored")
		}
	})
}

func TestAnAccountIsNeeded(t *testing.T) {
	running.Do(begin)
	if running.accounts == "" {
		t.Skip("the model server is not here")
	}
	known := tamis.New(running.accounts, tamis.Options{User: "ann", Password: "s3cret"})
	defer known.Close()
	must(known.Set(background, tamis.Item{Key: "a"}))(t)
	other := tamis.New(running.accounts, tamis.Options{User: "ann", Password: "guess"})
	defer other.Close()
	_, err := other.Get(background, "a")
	want(t, err, tamis.ErrDenied)
}

// silent is a server that takes connections and says what it is told to.
func silent(t *testing.T, says string) string {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			socket, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer socket.Close()
				_, _ = io.WriteString(socket, says)
				_, _ = io.Copy(io.Discard, socket)
			}()
		}
	}()
	return listener.Addr().String()
}

func TestACallEndsWithItsContext(t *testing.T) {
	c := tamis.New(silent(t, ""), tamis.Options{})
	defer c.Close()
	ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
	defer cancel()
	_, err := c.Get(ctx, "a")
	want(t, err, context.DeadlineExceeded)
	ctx, cancel = context.WithCancel(background)
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err = c.Get(ctx, "a")
	want(t, err, context.Canceled)
	short := tamis.New(silent(t, ""), tamis.Options{Timeout: 20 * time.Millisecond})
	defer short.Close()
	want(t, short.Delete(background, "a"), context.DeadlineExceeded)
}

func TestAnswersOfNoProtocolAreErrors(t *testing.T) {
	for _, says := range []string{
		"HTTP/1.1 400 Bad Request\r\n", "VA x\r\n", "VA -1\r\n", "VA 3\r\nabcde", "HD c-\r\n",
		"VA 99999999999\r\n", strings.Repeat("x", 9000) + "\r\n",
	} {
		c := tamis.New(silent(t, says), tamis.Options{})
		_, err := c.Get(background, "a")
		var answer *tamis.ProtocolError
		if !errors.As(err, &answer) {
			t.Fatalf("%.20q: %v", says, err)
		}
		c.Close()
	}
}

func TestAClosedClientSaysSo(t *testing.T) {
	eachServer(t, func(t *testing.T, c *tamis.Client, _ server) {
		_, err := c.Get(background, "closed")
		want(t, err, tamis.ErrNotFound)
		check(t, c.Close())
		_, err = c.Get(background, "closed")
		want(t, err, tamis.ErrClosed)
	})
}

func TestManyGoroutinesShareAClient(t *testing.T) {
	eachServer(t, func(t *testing.T, c *tamis.Client, _ server) {
		must(c.Set(background, tamis.Item{Key: "shared", Value: []byte("0")}))(t)
		var all sync.WaitGroup
		for range make([]struct{}, 16) {
			all.Add(1)
			go func() {
				defer all.Done()
				for range make([]struct{}, 50) {
					if _, err := c.Increment(background, "shared", 1); err != nil {
						t.Error(err)
						return
					}
				}
			}()
		}
		all.Wait()
		if got := must(c.Get(background, "shared"))(t); string(got.Value) != "800" {
			t.Fatalf("%s", got.Value)
		}
	})
}
