package tamis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
)

// Reader is a value that is read as it comes. It holds a connection until it is closed.
type Reader struct {
	// Item is the item without its value.
	Item Item
	// Size is how long the value is, in bytes.
	Size int64

	client     *Client
	connection *connection
	ctx        context.Context
	left       int64
	err        error
}

// NewReader begins to read a value. The context bounds all of the reading.
func (c *Client) NewReader(ctx context.Context, key string) (*Reader, error) {
	asked := getCommand(key)
	if asked.err != nil {
		return nil, failed("read", key, asked.err)
	}
	n, err := c.take(ctx)
	if err != nil {
		return nil, failed("read", key, causeOf(ctx, err))
	}
	if _, err = n.socket.Write(asked.appendTo(nil)); err != nil {
		c.discard(n)
		return nil, failed("read", key, causeOf(ctx, err))
	}
	got, refusal, err := readHead(n.reader)
	if err != nil {
		c.discard(n)
		return nil, failed("read", key, causeOf(ctx, err))
	}
	if refusal == nil {
		refusal = got.cause()
	}
	if refusal == nil && got.valueBytes < 0 {
		refusal = &ProtocolError{Line: got.code}
	}
	if refusal != nil {
		c.give(n)
		return nil, failed("read", key, refusal)
	}
	return &Reader{
		Item: got.item(key), Size: got.valueBytes,
		client: c, connection: n, ctx: ctx, left: got.valueBytes,
	}, nil
}

// Read reads what follows of the value.
func (r *Reader) Read(out []byte) (int, error) {
	if r.err != nil || len(out) == 0 {
		return 0, r.err
	}
	if r.left == 0 {
		r.finish()
		return 0, r.err
	}
	if int64(len(out)) > r.left {
		out = out[:r.left]
	}
	read, err := r.connection.reader.Read(out)
	r.left -= int64(read)
	if err != nil {
		r.fail(err)
		return read, r.err
	}
	return read, nil
}

// finish gives the connection back behind the value.
func (r *Reader) finish() {
	if err := readEnd(r.connection.reader); err != nil {
		r.fail(err)
		return
	}
	r.client.give(r.connection)
	r.connection = nil
	r.err = io.EOF
}

func (r *Reader) fail(err error) {
	r.client.discard(r.connection)
	r.connection = nil
	r.err = failed("read", r.Item.Key, causeOf(r.ctx, noEOF(err)))
}

// Close gives the connection back. A value of which more than a little is unread costs the
// connection.
func (r *Reader) Close() error {
	const drainedBytesMax = 64 << 10
	if r.connection == nil {
		return nil
	}
	if r.left <= drainedBytesMax {
		_, err := io.Copy(io.Discard, r)
		return err
	}
	r.connection.unwatch()
	r.connection.socket.Close()
	r.connection = nil
	r.err = failed("read", r.Item.Key, errors.New("the reader is closed"))
	return nil
}

// Writer is a value that is stored as it is written. The server has the old value until
// [Writer.Close] has given it all of the new one.
type Writer struct {
	client     *Client
	connection *connection
	buffer     *bufio.Writer
	ctx        context.Context
	key        string
	left       int64
	version    uint64
	err        error
}

// NewWriter begins to store a value of size bytes; the item's own value is left aside. The context
// bounds all of the writing.
func (c *Client) NewWriter(ctx context.Context, item Item, size int64) (*Writer, error) {
	asked := newStoreOf(item.Key, size).flag("c").ttl(item.TTL)
	if item.Flags != 0 {
		asked = asked.number('F', uint64(item.Flags))
	}
	if size < 0 {
		asked.err = fmt.Errorf("a value of %d bytes", size)
	}
	if asked.err != nil {
		return nil, failed("write", item.Key, asked.err)
	}
	n, err := c.take(ctx)
	if err != nil {
		return nil, failed("write", item.Key, causeOf(ctx, err))
	}
	w := &Writer{client: c, connection: n, ctx: ctx, key: item.Key, left: size}
	w.buffer = bufio.NewWriterSize(n.socket, 64<<10)
	_, _ = w.buffer.Write(append(asked.line, '\r', '\n'))
	return w, nil
}

// Write writes what follows of the value.
func (w *Writer) Write(part []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if int64(len(part)) > w.left {
		w.fail(fmt.Errorf("%d bytes more than the value was to have", int64(len(part))-w.left))
		return 0, w.err
	}
	written, err := w.buffer.Write(part)
	w.left -= int64(written)
	if err != nil {
		w.fail(err)
	}
	return written, w.err
}

func (w *Writer) fail(err error) {
	if w.connection != nil {
		w.client.discard(w.connection)
		w.connection = nil
	}
	w.err = failed("write", w.key, causeOf(w.ctx, err))
}

// Close ends the value, and says whether the server has stored it. Of a value that is not whole
// nothing is stored.
func (w *Writer) Close() error {
	if w.err != nil || w.connection == nil {
		return w.err
	}
	if w.left > 0 {
		w.fail(fmt.Errorf("%w: %d bytes of the value are missing", io.ErrUnexpectedEOF, w.left))
		return w.err
	}
	_, _ = w.buffer.WriteString("\r\n")
	if err := w.buffer.Flush(); err != nil {
		w.fail(err)
		return w.err
	}
	stored, refusal, err := readAnswer(w.connection.reader, 0)
	if err != nil {
		w.fail(err)
		return w.err
	}
	w.client.give(w.connection)
	w.connection = nil
	if refusal == nil {
		refusal = stored.cause()
	}
	w.version = stored.version
	w.err = failed("write", w.key, refusal)
	return w.err
}

// Version is the version of the item that [Writer.Close] has stored.
func (w *Writer) Version() uint64 { return w.version }

// SetFrom stores a value of size bytes that it reads from a reader, and gives its version.
func (c *Client) SetFrom(
	ctx context.Context, item Item, from io.Reader, size int64,
) (version uint64, err error) {
	w, err := c.NewWriter(ctx, item, size)
	if err != nil {
		return 0, err
	}
	if _, err := io.CopyN(w, from, size); err != nil && w.err == nil {
		w.fail(noEOF(err))
	}
	err = w.Close()
	return w.version, err
}
