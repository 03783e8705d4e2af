package tamis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Array is a value of elements of one size, which stand one behind another in it. Each of its
// methods is one round trip to a Tamis server. To an ordinary memcached those that read or write
// elements are two: one for the directory, and one for all elements.
type Array struct {
	client *Client
	key    string
}

// Array gives the array of a key. It asks the server nothing.
func (c *Client) Array(key string) *Array { return &Array{client: c, key: key} }

// elementWord is the word of elements.
func elementWord(first, count int) string {
	word := "e" + strconv.Itoa(first)
	if count != 1 {
		word += ":" + strconv.Itoa(count)
	}
	return word
}

// areIndexes says whether a server understands a slice.
func areIndexes(first, count int) bool {
	return first >= 0 && int64(first) <= math.MaxUint32 && count > 0 && int64(count) <= math.MaxUint32
}

// Create stores an array, whether there is one or not: readers see the old one or the new one. The
// elements stand one behind another, and each has elementBytes bytes.
func (a *Array) Create(
	ctx context.Context, elementBytes int, elements []byte, ttl time.Duration,
) error {
	if elementBytes <= 0 || len(elements)%elementBytes != 0 {
		err := fmt.Errorf("%d bytes are no elements of %d bytes", len(elements), elementBytes)
		return failed("create array", a.key, err)
	}
	store := newStore(a.key, elements).ttl(ttl).number('a', uint64(elementBytes))
	_, err := a.client.part(ctx, store)
	if errors.Is(err, ErrNoParts) {
		err = a.client.storePlain(ctx, a.key, Value{Bytes: elements, ElementBytes: elementBytes}, ttl)
	}
	return failed("create array", a.key, err)
}

// Element reads an element.
func (a *Array) Element(ctx context.Context, index int) ([]byte, error) {
	return a.Slice(ctx, index, 1)
}

// Slice reads elements from one on, one behind another. At the end of the array there are fewer;
// behind it the error is [ErrNoRange].
func (a *Array) Slice(ctx context.Context, first, count int) ([]byte, error) {
	if !areIndexes(first, count) {
		return nil, failed("read array", a.key, ErrNoRange)
	}
	asked := newCommand("mg", a.key).flag("v").flag(elementWord(first, count))
	got, err := a.client.part(ctx, asked)
	if err == nil {
		return got.value, nil
	}
	if errors.Is(err, ErrNoParts) {
		elements, err := a.client.readPlain(ctx, a.key, []int{first}, count)
		return joined(elements), failed("read array", a.key, err)
	}
	return nil, failed("read array", a.key, err)
}

// SetElement writes elements from one on: one element, or several one behind another. What is
// written at the end of the array makes it longer.
func (a *Array) SetElement(ctx context.Context, index int, elements []byte) error {
	if !areIndexes(index, 1) {
		return failed("write array", a.key, ErrNoRange)
	}
	_, err := a.client.part(ctx, newStore(a.key, elements).flag(elementWord(index, 1)))
	if errors.Is(err, ErrNoParts) {
		err = a.client.writePlain(ctx, a.key, index, elements)
	}
	return failed("write array", a.key, err)
}

// Append puts elements behind the array. To an ordinary memcached only one client may append at a
// time.
func (a *Array) Append(ctx context.Context, elements []byte) error {
	if err := a.client.probe(ctx, a.key); err != nil {
		return failed("append to array", a.key, err)
	}
	var err error
	if a.client.server.Load() == serverPlain {
		err = a.client.writePlain(ctx, a.key, atEnd, elements)
	} else {
		_, err = a.client.one(ctx, newStore(a.key, elements).flag("MA"))
	}
	return failed("append to array", a.key, err)
}

// Len is how many elements the array has.
func (a *Array) Len(ctx context.Context) (int, error) {
	return a.client.lengthOf(ctx, a.key)
}

// Delete removes the array.
func (a *Array) Delete(ctx context.Context) error {
	return failed("delete array", a.key, a.client.deleteArray(ctx, a.key))
}

func joined(elements [][]byte) []byte {
	if len(elements) == 1 {
		return elements[0]
	}
	var all []byte
	for _, element := range elements {
		all = append(all, element...)
	}
	return all
}

// probe finds out what the server knows, unless that is known.
func (c *Client) probe(ctx context.Context, key string) error {
	if c.server.Load() != serverUnknown {
		return nil
	}
	_, err := c.parts(ctx, newCommand("mg", key).flag("n"))
	if errors.Is(err, ErrNoParts) {
		return nil
	}
	return err
}

func (c *Client) lengthOf(ctx context.Context, key string) (int, error) {
	got, err := c.part(ctx, newCommand("mg", key).flag("n a"))
	switch {
	case errors.Is(err, ErrNoParts):
		directory, _, err := c.readDirectory(ctx, key)
		return int(directory.count), failed("count array", key, err)
	case err == nil && got.layout == 0:
		err = ErrNoArray
	}
	if err != nil {
		return 0, failed("count array", key, err)
	}
	return int(got.count), nil
}

func (c *Client) deleteArray(ctx context.Context, key string) error {
	if err := c.probe(ctx, key); err != nil {
		return err
	}
	if c.server.Load() == serverPlain {
		return c.deletePlain(ctx, key)
	}
	_, err := c.one(ctx, newCommand("md", key))
	return err
}
