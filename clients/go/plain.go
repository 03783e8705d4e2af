package tamis

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand"
	"time"
)

// Arrays over an ordinary memcached, as the library of Multes++ has them: the key holds a
// directory, and each element a key of its own. The directory says a generation, which is part of
// the elements' keys, so that who has read an old directory does not find new elements.

const (
	directoryMagic = "TAMISDIR"
	directoryBytes = len(directoryMagic) + 16
	// atEnd is the index behind the last element.
	atEnd = -1
	// plainBatchCommands is how many elements go to the server at once.
	plainBatchCommands = 10_000
)

// directory is what the key of an array holds.
type directory struct {
	generation uint64
	// layout is the size of an element in bytes, or elementsOfAnySize.
	layout uint32
	count  uint32
}

func (d directory) encode() []byte {
	bytes := append(make([]byte, 0, directoryBytes), directoryMagic...)
	bytes = binary.LittleEndian.AppendUint64(bytes, d.generation)
	bytes = binary.LittleEndian.AppendUint32(bytes, d.layout)
	return binary.LittleEndian.AppendUint32(bytes, d.count)
}

func (d directory) elementKey(key string, index uint32) string {
	return fmt.Sprintf("%s:%x:%x", key, d.generation, index)
}

func decodeDirectory(bytes []byte) (directory, error) {
	if len(bytes) != directoryBytes || string(bytes[:len(directoryMagic)]) != directoryMagic {
		return directory{}, ErrNoArray
	}
	numbers := bytes[len(directoryMagic):]
	return directory{
		generation: binary.LittleEndian.Uint64(numbers),
		layout:     binary.LittleEndian.Uint32(numbers[8:]),
		count:      binary.LittleEndian.Uint32(numbers[12:]),
	}, nil
}

// readDirectory reads the directory of an array, and its version.
func (c *Client) readDirectory(ctx context.Context, key string) (directory, uint64, error) {
	got, err := c.one(ctx, getCommand(key))
	if err != nil {
		return directory{}, 0, err
	}
	d, err := decodeDirectory(got.value)
	return d, got.version, err
}

// split gives the elements that stand one behind another.
func (d directory) split(elements []byte) ([][]byte, error) {
	size := int(d.layout)
	if d.layout == 0 || d.layout == elementsOfAnySize {
		return nil, ErrNoArray
	}
	if len(elements)%size != 0 {
		return nil, ErrNoRange
	}
	parts := make([][]byte, 0, len(elements)/size)
	for ; len(elements) > 0; elements = elements[size:] {
		parts = append(parts, elements[:size])
	}
	return parts, nil
}

// storePlain stores the elements of an array, and then its directory: readers see no array whose
// elements are missing.
func (c *Client) storePlain(
	ctx context.Context, key string, value Value, ttl time.Duration,
) error {
	commands, err := plainCommands(nil, key, value, ttl)
	if err != nil {
		return err
	}
	last := len(commands) - 1
	if err := c.storeAll(ctx, commands[:last]); err != nil {
		return err
	}
	return c.storeAll(ctx, commands[last:])
}

// plainCommands stores a value, what it consists of first.
func plainCommands(
	commands []command, key string, value Value, ttl time.Duration,
) ([]command, error) {
	d := directory{generation: rand.Uint64(), layout: uint32(value.ElementBytes)}
	var elements []Value
	switch {
	case value.List != nil:
		d.layout = elementsOfAnySize
		elements = value.List
	case value.ElementBytes == 0:
		return append(commands, storeCommand(Item{Key: key, Value: value.Bytes, TTL: ttl}, "")), nil
	default:
		parts, err := d.split(value.Bytes)
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			elements = append(elements, Value{Bytes: part})
		}
	}
	d.count = uint32(len(elements))
	for i, element := range elements {
		var err error
		commands, err = plainCommands(commands, d.elementKey(key, uint32(i)), element, ttl)
		if err != nil {
			return nil, err
		}
	}
	return append(commands, storeCommand(Item{Key: key, Value: d.encode(), TTL: ttl}, "")), nil
}

// storeAll carries out commands, and gives the first failure.
func (c *Client) storeAll(ctx context.Context, commands []command) error {
	for len(commands) > 0 {
		some := commands
		if len(some) > plainBatchCommands {
			some = some[:plainBatchCommands]
		}
		commands = commands[len(some):]
		outcomes, err := c.exchange(ctx, some)
		if err != nil {
			return err
		}
		for i := range outcomes {
			if err := outcomes[i].result(); err != nil {
				return err
			}
		}
	}
	return nil
}

// readPlain reads elements: a directory for each list of the path, and then all of them at once.
func (c *Client) readPlain(
	ctx context.Context, key string, path []int, count int,
) ([][]byte, error) {
	for {
		d, _, err := c.readDirectory(ctx, key)
		if err != nil {
			return nil, err
		}
		first := path[0]
		if first < 0 || int64(first) >= int64(d.count) {
			return nil, ErrNoRange
		}
		path = path[1:]
		if len(path) > 0 {
			key = d.elementKey(key, uint32(first))
			continue
		}
		if left := int(d.count) - first; count > left {
			count = left
		}
		commands := make([]command, count)
		for i := range commands {
			commands[i] = newCommand("mg", d.elementKey(key, uint32(first+i))).flag("v")
		}
		outcomes, err := c.exchange(ctx, commands)
		if err != nil {
			return nil, err
		}
		elements := make([][]byte, count)
		for i := range outcomes {
			// An element that was evicted makes the array one that is not there.
			if err := outcomes[i].result(); err != nil {
				return nil, err
			}
			elements[i] = outcomes[i].value
		}
		return elements, nil
	}
}

// writePlain writes elements of one size, and the directory if they are behind the last.
func (c *Client) writePlain(ctx context.Context, key string, index int, elements []byte) error {
	d, version, err := c.readDirectory(ctx, key)
	if err != nil {
		return err
	}
	if index == atEnd {
		index = int(d.count)
	}
	if index > int(d.count) {
		return ErrNoRange
	}
	parts, err := d.split(elements)
	if err != nil {
		return err
	}
	commands := make([]command, 0, len(parts))
	for i, part := range parts {
		commands = append(commands, newStore(d.elementKey(key, uint32(index+i)), part))
	}
	if err := c.storeAll(ctx, commands); err != nil {
		return err
	}
	if end := uint32(index + len(parts)); end > d.count {
		d.count = end
		swap := newStore(key, d.encode()).number('C', version)
		_, err := c.one(ctx, swap)
		return err
	}
	return nil
}

// deletePlain removes an array's directory, and then its elements. Those of arrays in it are left
// to be evicted.
func (c *Client) deletePlain(ctx context.Context, key string) error {
	d, _, err := c.readDirectory(ctx, key)
	if err != nil {
		return err
	}
	if _, err := c.one(ctx, newCommand("md", key)); err != nil {
		return err
	}
	commands := make([]command, d.count)
	for i := range commands {
		commands[i] = newCommand("md", d.elementKey(key, uint32(i)))
	}
	err = c.storeAll(ctx, commands)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
