package tamis_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"testing"

	tamis "github.com/tamis-storage/tamis/clients/go"
)

func TestAnArrayIsASlice(t *testing.T) {
	eachServer(t, func(t *testing.T, c *tamis.Client, _ server) {
		random := rand.New(rand.NewSource(1))
		const size = 5
		elements := func(count int) []byte {
			bytes := make([]byte, count*size)
			random.Read(bytes)
			return bytes
		}
		array := c.Array("array")
		_, err := array.Element(background, 0)
		want(t, err, tamis.ErrNotFound)
		if array.Append(background, elements(1)) == nil {
			t.Fatal("there is nothing to append to")
		}
		value := elements(7)
		check(t, array.Create(background, size, value, 0))
		for range make([]struct{}, 300) {
			length := len(value) / size
			switch random.Intn(4) {
			case 0:
				added := elements(random.Intn(3) + 1)
				check(t, array.Append(background, added))
				value = append(value, added...)
			case 1:
				at := random.Intn(length + 1)
				written := elements(random.Intn(3) + 1)
				check(t, array.SetElement(background, at, written))
				if end := at*size + len(written); end > len(value) {
					value = append(value, make([]byte, end-len(value))...)
				}
				copy(value[at*size:], written)
			default:
				first, count := random.Intn(length), random.Intn(5)+1
				got := must(array.Slice(background, first, count))(t)
				end := min(first+count, length)
				if !bytes.Equal(got, value[first*size:end*size]) {
					t.Fatalf("%d from %d of %d: %x", count, first, length, got)
				}
			}
			if got := must(array.Len(background))(t); got != len(value)/size {
				t.Fatal(got, len(value)/size)
			}
		}
		length := len(value) / size
		_, err = array.Element(background, length)
		want(t, err, tamis.ErrNoRange)
		want(t, array.SetElement(background, length+1, elements(1)), tamis.ErrNoRange)
		want(t, array.SetElement(background, 0, []byte("odd")), tamis.ErrNoRange)
		_, err = array.Slice(background, -1, 1)
		want(t, err, tamis.ErrNoRange)
		check(t, array.Delete(background))
		_, err = array.Len(background)
		want(t, err, tamis.ErrNotFound)
		must(c.Set(background, tamis.Item{Key: "array", Value: []byte("plain")}))(t)
		_, err = array.Element(background, 0)
		want(t, err, tamis.ErrNoArray)
		_, err = array.Len(background)
		want(t, err, tamis.ErrNoArray)
		if array.Create(background, 4, []byte("odd"), 0) == nil {
			t.Fatal("three bytes are no elements of four")
		}
	})
}

func isChanging(err error) bool { return errors.Is(err, tamis.ErrChanging) }

func TestAListHoldsValuesArraysAndLists(t *testing.T) {
	eachServer(t, func(t *testing.T, c *tamis.Client, s server) {
		list := c.List("list")
		_, err := list.Value(background, 0)
		want(t, err, tamis.ErrNotFound)
		check(t, list.Create(background, []tamis.Value{
			{Bytes: []byte("first")},
			{Bytes: []byte("112233"), ElementBytes: 2},
			{List: []tamis.Value{
				{Bytes: []byte("deep")}, {}, {List: []tamis.Value{{Bytes: []byte("deeper")}}},
			}},
			{},
		}, 0))
		for _, known := range []struct {
			path  []int
			value string
		}{
			{[]int{0}, "first"}, {[]int{1, 2}, "33"}, {[]int{2, 0}, "deep"}, {[]int{2, 1}, ""},
			{[]int{2, 2, 0}, "deeper"}, {[]int{3}, ""},
		} {
			if got := must(list.Value(background, known.path...))(t); string(got) != known.value {
				t.Fatalf("%v: %q", known.path, got)
			}
		}
		if got := must(list.Elements(background, 1, 9, 1))(t); string(got) != "2233" {
			t.Fatalf("%q", got)
		}
		_, err = list.Elements(background, 3, 1, 1)
		want(t, err, tamis.ErrNoRange)
		for path, expected := range map[[2]int]error{
			{4, 0}: tamis.ErrNoRange, {2, 3}: tamis.ErrNoRange, {0, 0}: tamis.ErrNoArray,
		} {
			_, err := list.Value(background, path[0], path[1])
			want(t, err, expected)
		}
		_, err = list.Value(background)
		want(t, err, tamis.ErrNoRange)
		if got := must(list.Len(background))(t); got != 4 {
			t.Fatal(got)
		}
		check(t, list.Delete(background))
		check(t, list.Create(background, nil, 0))
		if got := must(list.Len(background))(t); got != 0 {
			t.Fatal(got)
		}
		if !s.knowsParts {
			want(t, list.Append(background, tamis.Value{}), tamis.ErrNoParts)
			_, err := c.SetRange(background, "list", 0, []byte("x"))
			want(t, err, tamis.ErrNoParts)
		}
	})
}

func TestSlicesOfAListAreOneRoundTrip(t *testing.T) {
	eachServer(t, func(t *testing.T, c *tamis.Client, s server) {
		list := c.List("slices")
		values := make([]tamis.Value, 500)
		for i := range values {
			values[i].Bytes = bytes.Repeat([]byte{byte(i)}, i*7)
		}
		check(t, list.Create(background, values, 0))
		for _, at := range [][2]int{{0, 500}, {3, 1}, {490, 100}, {499, 5}} {
			got := must(list.Slice(background, at[0], at[1]))(t)
			if len(got) != min(at[1], 500-at[0]) {
				t.Fatal(at, len(got))
			}
			for i, value := range got {
				if !bytes.Equal(value, values[at[0]+i].Bytes) {
					t.Fatal(at, i)
				}
			}
		}
		_, err := list.Slice(background, 500, 1)
		want(t, err, tamis.ErrNoRange)
	})
}

func TestAListChanges(t *testing.T) {
	eachServer(t, func(t *testing.T, c *tamis.Client, s server) {
		if !s.knowsParts {
			t.Skip("memcached knows no parts of values")
		}
		list := c.List("changes")
		want(t, list.Append(background, tamis.Value{}), tamis.ErrNotFound)
		check(t, list.Create(background, nil, 0))
		var model []string
		random := rand.New(rand.NewSource(2))
		for i := range make([]struct{}, 100) {
			word := fmt.Sprintf("%d%s", i, bytes.Repeat([]byte("x"), random.Intn(50)))
			if at := random.Intn(10); at < len(model) {
				check(t, list.SetValue(background, at, tamis.Value{Bytes: []byte(word)}))
				model[at] = word
			} else {
				check(t, list.Append(background, tamis.Value{Bytes: []byte(word)}, tamis.Value{}))
				model = append(model, word, "")
			}
			got := must(list.Slice(background, 0, len(model)+3))(t)
			for i := range model {
				if len(got) != len(model) || string(got[i]) != model[i] {
					t.Fatalf("%q and not %q", got, model)
				}
			}
		}
		want(t, list.SetValue(background, len(model), tamis.Value{}), tamis.ErrNoRange)
		must(c.Set(background, tamis.Item{Key: "changes", Value: []byte("plain")}))(t)
		want(t, list.Append(background, tamis.Value{}), tamis.ErrNoArray)
	})
}

func TestListsKeepEveryAppendOfManyClients(t *testing.T) {
	eachServer(t, func(t *testing.T, c *tamis.Client, s server) {
		if !s.knowsParts {
			t.Skip("memcached knows no parts of values")
		}
		list := c.List("appends")
		check(t, list.Create(background, nil, 0))
		failures := make(chan error, 4)
		for i := 0; i < 4; i++ {
			i := i
			go func() {
				var err error
				for j := 0; j < 20; {
					value := tamis.Value{Bytes: []byte(fmt.Sprintf("%d-%d", i, j))}
					if err = list.Append(background, value); err == nil {
						j++
					} else if !isChanging(err) {
						break
					}
				}
				failures <- err
			}()
		}
		for i := 0; i < 4; i++ {
			check(t, <-failures)
		}
		next := map[byte]int{}
		for _, value := range must(list.Slice(background, 0, 100))(t) {
			if string(value) != fmt.Sprintf("%c-%d", value[0], next[value[0]]) {
				t.Fatalf("%s comes after %d", value, next[value[0]])
			}
			next[value[0]]++
		}
		if len(next) != 4 || next['0']+next['1']+next['2']+next['3'] != 80 {
			t.Fatal(next)
		}
	})
}

func TestRangesOfBytes(t *testing.T) {
	eachServer(t, func(t *testing.T, c *tamis.Client, s server) {
		_, err := c.GetRange(background, "range", 0, 1)
		want(t, err, tamis.ErrNotFound)
		must(c.Set(background, tamis.Item{Key: "range", Value: []byte("abcdef"), Flags: 9}))(t)
		for _, known := range []struct {
			offset, length int64
			value          string
		}{{0, 3, "abc"}, {4, 9, "ef"}, {6, 1, ""}, {2, 0, ""}} {
			got := must(c.GetRange(background, "range", known.offset, known.length))(t)
			if string(got) != known.value {
				t.Fatalf("%+v: %q", known, got)
			}
		}
		_, err = c.GetRange(background, "range", 7, 1)
		want(t, err, tamis.ErrNoRange)
		if !s.knowsParts {
			return
		}
		version := must(c.SetRange(background, "range", 5, []byte("FGH")))(t)
		got := must(c.Get(background, "range"))(t)
		if string(got.Value) != "abcdeFGH" || got.Flags != 9 || got.Version != version {
			t.Fatalf("%+v", got)
		}
		_, err = c.SetRange(background, "range", 9, nil)
		want(t, err, tamis.ErrNoRange)
	})
}

func TestASliceIsOfOneVersion(t *testing.T) {
	eachServer(t, func(t *testing.T, c *tamis.Client, s server) {
		list, array := c.List("versions"), c.Array("versions of elements")
		create := func(generation byte) error {
			values := make([]tamis.Value, 200)
			for i := range values {
				values[i].Bytes = bytes.Repeat([]byte{generation}, 4000)
			}
			if err := list.Create(background, values, 0); err != nil {
				return err
			}
			return array.Create(background, 100, bytes.Repeat([]byte{generation}, 20_000), 0)
		}
		check(t, create(0))
		created := make(chan error, 1)
		go func() {
			var err error
			for generation := byte(1); generation < 30 && err == nil; generation++ {
				err = create(generation)
			}
			created <- err
		}()
		for {
			values, err := list.Slice(background, 0, 200)
			if err != nil && !isChanging(err) {
				t.Fatal(err)
			}
			elements := must(array.Slice(background, 0, 200))(t)
			for _, read := range append(values, elements) {
				if len(bytes.Trim(read, string(read[:1]))) > 0 {
					t.Fatalf("values of several versions: %x", read)
				}
			}
			for _, value := range values {
				if value[0] != values[0][0] {
					t.Fatalf("%d beside %d", value[0], values[0][0])
				}
			}
			select {
			case err := <-created:
				check(t, err)
				return
			default:
			}
		}
	})
}
