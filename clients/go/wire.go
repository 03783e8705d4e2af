package tamis

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"math"
	"strconv"
	"time"
)

const (
	keyBytesMax = 250
	// A longer duration is told as a time.
	relativeSecondsMax = 30 * 24 * 60 * 60
	// The longest line of an answer, in bytes.
	lineBytesMax = 8 << 10
	// elementsOfAnySize is the layout of a list, where others have the size of an element.
	elementsOfAnySize = math.MaxUint32
)

// command is what one line asks, with the value behind it.
type command struct {
	line    []byte
	value   []byte
	isStore bool
	isRead  bool
	err     error
}

// appendKey appends a key, and says whether it is in base64, as one with spaces has to be.
func appendKey(line []byte, key string) ([]byte, bool, error) {
	isPlain := true
	for i := 0; i < len(key); i++ {
		isPlain = isPlain && key[i] > ' ' && key[i] < 0x7f
	}
	if isPlain {
		line = append(line, key...)
	} else {
		start := len(line)
		encoded := base64.StdEncoding.EncodedLen(len(key))
		line = append(line, make([]byte, encoded)...)
		base64.StdEncoding.Encode(line[start:], []byte(key))
	}
	if len(key) == 0 || isPlain && len(key) > keyBytesMax ||
		!isPlain && base64.StdEncoding.EncodedLen(len(key)) > keyBytesMax {
		return line, false, ErrBadKey
	}
	return line, !isPlain, nil
}

func newCommand(verb, key string) command {
	line := append(make([]byte, 0, len(key)+48), verb...)
	line, isEncoded, err := appendKey(append(line, ' '), key)
	if isEncoded {
		line = append(line, " b"...)
	}
	return command{line: line, isRead: verb == "mg", err: err}
}

func newStore(key string, value []byte) command {
	c := newStoreOf(key, int64(len(value)))
	c.value = value
	return c
}

// newStoreOf is the line of a value that the caller writes itself.
func newStoreOf(key string, valueBytes int64) command {
	line := append(make([]byte, 0, len(key)+48), "ms "...)
	line, isEncoded, err := appendKey(line, key)
	line = strconv.AppendInt(append(line, ' '), valueBytes, 10)
	if isEncoded {
		line = append(line, " b"...)
	}
	return command{line: line, isStore: true, err: err}
}

// flag appends a letter of a command, or a word.
func (c command) flag(word string) command {
	c.line = append(append(c.line, ' '), word...)
	return c
}

func (c command) number(letter byte, number uint64) command {
	c.line = strconv.AppendUint(append(c.line, ' ', letter), number, 10)
	return c
}

// ttl appends when the item ends; 0 is never, and what is negative is over at once.
func (c command) ttl(ttl time.Duration) command {
	if ttl == 0 {
		return c
	}
	seconds := int64((ttl + time.Second - 1) / time.Second)
	switch {
	case ttl < 0:
		seconds = -1
	case seconds > relativeSecondsMax:
		seconds += time.Now().Unix()
	}
	c.line = strconv.AppendInt(append(c.line, ' ', 'T'), seconds, 10)
	return c
}

func (c command) appendTo(out []byte) []byte {
	out = append(append(out, c.line...), '\r', '\n')
	if c.isStore {
		out = append(append(out, c.value...), '\r', '\n')
	}
	return out
}

// answer is what a server says to one command.
type answer struct {
	code string
	// valueBytes is how long the value is that follows; -1 if none does.
	valueBytes int64
	value      []byte
	version    uint64
	flags      uint32
	ttl        time.Duration
	size       uint64
	layout     uint32
	count      uint64
	opaque     string
}

// readHead reads an answer up to its value. A line of an error is an answer too: its cause is in
// err, and the connection goes on.
func readHead(r *bufio.Reader) (a answer, refusal, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		if errors.Is(err, bufio.ErrBufferFull) {
			return a, nil, &ProtocolError{Line: string(line[:80])}
		}
		if err == io.EOF && len(line) == 0 {
			return a, nil, io.EOF
		}
		return a, nil, noEOF(err)
	}
	line = bytes.TrimRight(line, "\r\n")
	code, rest, _ := bytes.Cut(line, []byte(" "))
	a.valueBytes = -1
	switch string(code) {
	case "VA":
		length, flags, _ := bytes.Cut(rest, []byte(" "))
		bytesOf, err := strconv.ParseInt(string(length), 10, 64)
		if err != nil || bytesOf < 0 {
			return a, nil, &ProtocolError{Line: string(line)}
		}
		a.valueBytes = bytesOf
		rest = flags
	case "HD", "EN", "NF", "NS", "EX", "NR", "NA", "MN":
	case "ERROR", "CLIENT_ERROR", "SERVER_ERROR":
		return a, refusalOf(string(line)), nil
	default:
		return a, nil, &ProtocolError{Line: string(line)}
	}
	a.code = string(code)
	return a, nil, a.readFlags(rest, line)
}

// refusalOf is the error that a line stands for.
func refusalOf(line string) error {
	switch line {
	case "CLIENT_ERROR invalid flag", "CLIENT_ERROR invalid or duplicate flag":
		return ErrNoParts
	case "SERVER_ERROR object too large for cache":
		return ErrTooLarge
	}
	return &ServerError{Line: line}
}

func (a *answer) readFlags(rest, line []byte) error {
	for len(rest) > 0 {
		var word []byte
		word, rest, _ = bytes.Cut(rest, []byte(" "))
		if len(word) == 0 {
			continue
		}
		token := string(word[1:])
		var err error
		switch word[0] {
		case 'c':
			a.version, err = strconv.ParseUint(token, 10, 64)
		case 's':
			a.size, err = strconv.ParseUint(token, 10, 64)
		case 'n':
			a.count, err = strconv.ParseUint(token, 10, 64)
		case 'f':
			var flags uint64
			flags, err = strconv.ParseUint(token, 10, 32)
			a.flags = uint32(flags)
		case 'a':
			var layout uint64 = elementsOfAnySize
			if token != "*" {
				layout, err = strconv.ParseUint(token, 10, 32)
			}
			a.layout = uint32(layout)
		case 't':
			var seconds int64
			seconds, err = strconv.ParseInt(token, 10, 64)
			if seconds > 0 {
				a.ttl = time.Duration(seconds) * time.Second
			}
		case 'O':
			a.opaque = token
		}
		if err != nil {
			return &ProtocolError{Line: string(line)}
		}
	}
	return nil
}

// readAnswer reads an answer with its value.
func readAnswer(r *bufio.Reader, valueBytesMax int64) (a answer, refusal, err error) {
	a, refusal, err = readHead(r)
	if err != nil || refusal != nil || a.valueBytes < 0 {
		return a, refusal, err
	}
	if a.valueBytes > valueBytesMax {
		return a, nil, &ProtocolError{Line: "VA " + strconv.FormatInt(a.valueBytes, 10)}
	}
	a.value = make([]byte, a.valueBytes)
	if _, err = io.ReadFull(r, a.value); err != nil {
		return a, nil, noEOF(err)
	}
	return a, nil, readEnd(r)
}

// readEnd reads the line end behind a value.
func readEnd(r *bufio.Reader) error {
	var end [2]byte
	if _, err := io.ReadFull(r, end[:]); err != nil {
		return noEOF(err)
	}
	if end != [2]byte{'\r', '\n'} {
		return &ProtocolError{Line: string(end[:])}
	}
	return nil
}

// noEOF makes an end in the middle of an answer an error that says so.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// cause is the error that the code of an answer stands for; nil if it was done.
func (a *answer) cause() error {
	switch a.code {
	case "HD", "VA", "MN":
		return nil
	case "EN", "NF":
		return ErrNotFound
	case "EX":
		return ErrExists
	case "NS":
		return ErrNotStored
	case "NR":
		return ErrNoRange
	case "NA":
		return ErrNoArray
	}
	return &ProtocolError{Line: a.code}
}
