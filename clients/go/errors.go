package tamis

import (
	"errors"
	"fmt"
)

// What a server answers where it does not do what it was asked.
var (
	// ErrNotFound says that there is no item with this key.
	ErrNotFound = errors.New("there is no such item")
	// ErrExists says that the item has another version than the client named.
	ErrExists = errors.New("the item has another version")
	// ErrNotStored says that the item is there, or is not, and the client asked for the contrary;
	// or that the value would become too long by this.
	ErrNotStored = errors.New("the value is not stored")
	// ErrNoRange says that a value has no such bytes or elements.
	ErrNoRange = errors.New("the value has no such bytes or elements")
	// ErrNoArray says that a value has no elements.
	ErrNoArray = errors.New("the value is no array")
	// ErrTooLarge says that the server takes no value of this length.
	ErrTooLarge = errors.New("the value is too long for the server")
	// ErrBadKey says that a key is empty or longer than 250 bytes.
	ErrBadKey = errors.New("the key is empty or too long")
	// ErrDenied says that the server does not know the user or the password.
	ErrDenied = errors.New("the server refuses user and password")
	// ErrClosed says that the client is closed.
	ErrClosed = errors.New("the client is closed")
	// ErrChanging says that a list was replaced again and again while it was read or written.
	ErrChanging = errors.New("the list changes all the time")
	// ErrNoParts says that the server reads and writes no parts of values, as memcached does not.
	ErrNoParts = errors.New("the server knows no parts of values")
)

// Error says which operation on which key failed.
type Error struct {
	// Op is the method, in lower case.
	Op string
	// Key is the item's key.
	Key string
	// Err is the cause.
	Err error
}

func (e *Error) Error() string { return fmt.Sprintf("%s %q: %v", e.Op, e.Key, e.Err) }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// ServerError is a line with which a server refuses a command.
type ServerError struct {
	// Line is what the server says, without the line's end.
	Line string
}

func (e *ServerError) Error() string { return "the server says: " + e.Line }

// ProtocolError is an answer that is none of the protocol. The connection is closed.
type ProtocolError struct {
	// Line is the answer, or its front.
	Line string
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("the server answers %q, which is not of the protocol", e.Line)
}

func failed(op, key string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Key: key, Err: err}
}
