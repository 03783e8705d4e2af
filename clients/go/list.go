package tamis

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	listMagic        = "TAMISARR"
	listVersion      = 1
	listTrailerBytes = 16
	listEntryBytes   = 12
	// listTries is how often a list is read again that was replaced meanwhile.
	listTries = 8
)

// Value is what a [List] holds: bytes; elements of one size; or a list of its own.
type Value struct {
	// Bytes is the value, or the elements one behind another.
	Bytes []byte
	// ElementBytes makes the value an array of elements of this many bytes.
	ElementBytes int
	// List makes the value a list, where it is not nil.
	List []Value
}

// List is values of any length, and arrays and lists, in one value with a directory behind them. A
// Tamis server reads a value, a slice, or a value in a list of the list, in one round trip.
type List struct {
	client *Client
	key    string
}

// List gives the list of a key. It asks the server nothing.
func (c *Client) List(key string) *List { return &List{client: c, key: key} }

// Create stores a list, whether there is one or not: readers see the old one or the new one.
func (l *List) Create(ctx context.Context, values []Value, ttl time.Duration) error {
	if values == nil {
		values = []Value{}
	}
	bytes, err := encodeList(values)
	if err != nil {
		return failed("create list", l.key, err)
	}
	_, err = l.client.part(ctx, newStore(l.key, bytes).ttl(ttl).flag("a*"))
	if errors.Is(err, ErrNoParts) {
		err = l.client.storePlain(ctx, l.key, Value{List: values}, ttl)
	}
	return failed("create list", l.key, err)
}

// pathWord is the word of a value in lists.
func pathWord(path []int) (string, error) {
	words := make([]string, len(path))
	for i, index := range path {
		if !areIndexes(index, 1) {
			return "", ErrNoRange
		}
		words[i] = strconv.Itoa(index)
	}
	if len(path) == 0 {
		return "", ErrNoRange
	}
	return "e" + strings.Join(words, "."), nil
}

// Value reads a value: its index, or before that the indexes of the lists that it stands in, at
// most four in all.
func (l *List) Value(ctx context.Context, path ...int) ([]byte, error) {
	word, err := pathWord(path)
	if err != nil {
		return nil, failed("read list", l.key, err)
	}
	got, err := l.client.part(ctx, newCommand("mg", l.key).flag("v").flag(word))
	if err == nil {
		return got.value, nil
	}
	if errors.Is(err, ErrNoParts) {
		values, err := l.client.readPlain(ctx, l.key, path, 1)
		return joined(values), failed("read list", l.key, err)
	}
	return nil, failed("read list", l.key, err)
}

// Elements reads elements of an array in the list, one behind another: from an element on, of the
// array at a path. At the end of the array there are fewer; behind it the error is [ErrNoRange].
func (l *List) Elements(ctx context.Context, first, count int, path ...int) ([]byte, error) {
	path = append(append([]int{}, path...), first)
	word, err := pathWord(path)
	if err != nil || !areIndexes(first, count) {
		return nil, failed("read list", l.key, ErrNoRange)
	}
	asked := newCommand("mg", l.key).flag("v").flag(word + ":" + strconv.Itoa(count))
	got, err := l.client.part(ctx, asked)
	if err == nil {
		return got.value, nil
	}
	if errors.Is(err, ErrNoParts) {
		elements, err := l.client.readPlain(ctx, l.key, path, count)
		return joined(elements), failed("read list", l.key, err)
	}
	return nil, failed("read list", l.key, err)
}

// Slice reads values from one on, in one round trip, all of the same version of the list. At its
// end there are fewer; behind it the error is [ErrNoRange].
func (l *List) Slice(ctx context.Context, first, count int) ([][]byte, error) {
	if !areIndexes(first, count) {
		return nil, failed("read list", l.key, ErrNoRange)
	}
	commands := make([]command, count)
	for i := range commands {
		commands[i] = newCommand("mg", l.key).flag("v c").flag(elementWord(first+i, 1))
	}
	for try := 0; try < listTries; try++ {
		outcomes, err := l.client.parts(ctx, commands...)
		if errors.Is(err, ErrNoParts) {
			values, err := l.client.readPlain(ctx, l.key, []int{first}, count)
			return values, failed("read list", l.key, err)
		}
		if err != nil {
			return nil, failed("read list", l.key, err)
		}
		values, err := valuesOf(outcomes)
		if !errors.Is(err, ErrChanging) {
			return values, failed("read list", l.key, err)
		}
	}
	return nil, failed("read list", l.key, ErrChanging)
}

// valuesOf takes the values of answers about one list, up to its end.
func valuesOf(outcomes []outcome) ([][]byte, error) {
	values := make([][]byte, 0, len(outcomes))
	for i := range outcomes {
		err := outcomes[i].result()
		if errors.Is(err, ErrNoRange) && i > 0 {
			return values, nil
		}
		if err != nil && i == 0 {
			return nil, err
		}
		if err != nil || outcomes[i].version != outcomes[0].version {
			return nil, ErrChanging
		}
		values = append(values, outcomes[i].value)
	}
	return values, nil
}

// Append puts values behind the list. It reads the directory and writes it anew behind the values:
// three round trips, and more if others change the list meanwhile.
func (l *List) Append(ctx context.Context, values ...Value) error {
	return l.change(ctx, "append to list", func(entries []entry, end uint32) ([]byte, []entry, error) {
		return appendValues(nil, entries, values, end)
	})
}

// SetValue replaces a value. The new one stands behind all others, and the old one's bytes stay
// until the list is created again. Round trips as with [List.Append].
func (l *List) SetValue(ctx context.Context, index int, value Value) error {
	return l.change(ctx, "write list", func(entries []entry, end uint32) ([]byte, []entry, error) {
		if index < 0 || index >= len(entries) {
			return nil, nil, ErrNoRange
		}
		bytes, added, err := appendValues(nil, nil, []Value{value}, end)
		if err != nil {
			return nil, nil, err
		}
		entries[index] = added[0]
		return bytes, entries, nil
	})
}

// change writes new values and a new directory over the old directory, if the list is still the
// one that was read.
func (l *List) change(
	ctx context.Context, op string,
	edit func(entries []entry, end uint32) ([]byte, []entry, error),
) error {
	for try := 0; try < listTries; try++ {
		entries, start, version, err := l.readEntries(ctx)
		if errors.Is(err, ErrChanging) {
			continue
		}
		if err != nil {
			return failed(op, l.key, err)
		}
		bytes, entries, err := edit(entries, start)
		if err != nil {
			return failed(op, l.key, err)
		}
		bytes = appendDirectory(bytes, entries)
		store := newStore(l.key, bytes).number('C', version).number('r', uint64(start))
		_, err = l.client.part(ctx, store)
		if !errors.Is(err, ErrExists) {
			return failed(op, l.key, err)
		}
	}
	return failed(op, l.key, ErrChanging)
}

// readEntries reads the directory, where it begins, and the version of the list.
func (l *List) readEntries(ctx context.Context) ([]entry, uint32, uint64, error) {
	got, err := l.client.part(ctx, newCommand("mg", l.key).flag("n a s c"))
	if err != nil {
		return nil, 0, 0, err
	}
	directoryBytes := got.count*listEntryBytes + listTrailerBytes
	if got.layout != elementsOfAnySize || directoryBytes > got.size || got.size > math.MaxUint32 {
		return nil, 0, 0, ErrNoArray
	}
	start, version := int64(got.size-directoryBytes), got.version
	word := rangeWord(start, int64(directoryBytes))
	got, err = l.client.part(ctx, newCommand("mg", l.key).flag("v c").flag(word))
	if err != nil {
		return nil, 0, 0, err
	}
	if got.version != version {
		return nil, 0, 0, ErrChanging
	}
	return decodeEntries(got.value), uint32(start), version, nil
}

// Len is how many values the list has.
func (l *List) Len(ctx context.Context) (int, error) {
	return l.client.lengthOf(ctx, l.key)
}

// Delete removes the list.
func (l *List) Delete(ctx context.Context) error {
	return failed("delete list", l.key, l.client.deleteArray(ctx, l.key))
}

// entry is where a value is in a list, and how it is divided.
type entry struct{ offset, bytes, layout uint32 }

func decodeEntries(directory []byte) []entry {
	entries := make([]entry, 0, len(directory)/listEntryBytes)
	for len(directory) >= listEntryBytes+listTrailerBytes {
		entries = append(entries, entry{
			offset: binary.LittleEndian.Uint32(directory),
			bytes:  binary.LittleEndian.Uint32(directory[4:]),
			layout: binary.LittleEndian.Uint32(directory[8:]),
		})
		directory = directory[listEntryBytes:]
	}
	return entries
}

func encodeList(values []Value) ([]byte, error) {
	bytes, entries, err := appendValues(nil, nil, values, 0)
	if err != nil {
		return nil, err
	}
	return appendDirectory(bytes, entries), nil
}

// appendValues appends values that stand from offset on.
func appendValues(
	bytes []byte, entries []entry, values []Value, offset uint32,
) ([]byte, []entry, error) {
	for _, value := range values {
		encoded, layout := value.Bytes, uint32(value.ElementBytes)
		switch {
		case value.List != nil:
			var err error
			if encoded, err = encodeList(value.List); err != nil {
				return nil, nil, err
			}
			layout = elementsOfAnySize
		case value.ElementBytes < 0 || int64(value.ElementBytes) > 1<<30:
			return nil, nil, fmt.Errorf("elements of %d bytes", value.ElementBytes)
		}
		at := uint64(offset) + uint64(len(bytes))
		if at+uint64(len(encoded)) > math.MaxUint32 {
			return nil, nil, ErrTooLarge
		}
		entries = append(entries, entry{uint32(at), uint32(len(encoded)), layout})
		bytes = append(bytes, encoded...)
	}
	return bytes, entries, nil
}

func appendDirectory(bytes []byte, entries []entry) []byte {
	for _, entry := range entries {
		bytes = binary.LittleEndian.AppendUint32(bytes, entry.offset)
		bytes = binary.LittleEndian.AppendUint32(bytes, entry.bytes)
		bytes = binary.LittleEndian.AppendUint32(bytes, entry.layout)
	}
	bytes = append(bytes, listMagic...)
	bytes = binary.LittleEndian.AppendUint32(bytes, listVersion)
	return binary.LittleEndian.AppendUint32(bytes, uint32(len(entries)))
}
