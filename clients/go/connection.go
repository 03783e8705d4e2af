package tamis

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"time"
)

// Requests up to this length are written before answers are read, in bytes. More are written
// beside: a server that cannot send its answers stops reading.
const writtenFirstBytesMax = 32 << 10

// connection is a socket with its buffer. It is used by one call at a time.
type connection struct {
	socket net.Conn
	reader *bufio.Reader
	// isUsed says that it has served a call: the server may have closed it since.
	isUsed bool
	// release ends what watches the context of the call.
	release func() bool
}

// dial opens a socket and says who the client is.
func (c *Client) dial(ctx context.Context) (*connection, error) {
	network, address := "tcp", c.address
	if path, isUnix := strings.CutPrefix(address, "unix:"); isUnix || strings.HasPrefix(address, "/") {
		network, address = "unix", path
	}
	var dialer net.Dialer
	socket, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	n := &connection{socket: socket, reader: bufio.NewReaderSize(socket, lineBytesMax)}
	if c.options.User == "" {
		return n, nil
	}
	n.watch(ctx)
	defer n.unwatch()
	if err := n.authenticate(c.options.User, c.options.Password); err != nil {
		socket.Close()
		return nil, err
	}
	return n, nil
}

func (n *connection) authenticate(user, password string) error {
	token := user + " " + password
	if _, err := fmt.Fprintf(n.socket, "set auth 0 0 %d\r\n%s\r\n", len(token), token); err != nil {
		return err
	}
	line, err := n.reader.ReadString('\n')
	switch {
	case err != nil:
		return noEOF(err)
	case line == "STORED\r\n":
		return nil
	case strings.HasPrefix(line, "CLIENT_ERROR"):
		return ErrDenied
	}
	return &ServerError{Line: strings.TrimSpace(line)}
}

// watch gives the socket the deadline of a call, and ends its waiting when the call is cancelled.
func (n *connection) watch(ctx context.Context) {
	deadline, _ := ctx.Deadline()
	_ = n.socket.SetDeadline(deadline)
	if ctx.Done() != nil {
		n.release = context.AfterFunc(ctx, func() { _ = n.socket.SetDeadline(time.Unix(1, 0)) })
	}
}

// unwatch says whether the socket is as it was: no call was cancelled meanwhile.
func (n *connection) unwatch() bool {
	release := n.release
	n.release = nil
	return release == nil || release()
}

// take gives an idle connection, or a new one.
func (c *Client) take(ctx context.Context) (*connection, error) {
	c.mutex.Lock()
	if c.isClosed {
		c.mutex.Unlock()
		return nil, ErrClosed
	}
	var n *connection
	if last := len(c.idle) - 1; last >= 0 {
		n = c.idle[last]
		c.idle = c.idle[:last]
	}
	c.mutex.Unlock()
	if n == nil {
		var err error
		if n, err = c.dial(ctx); err != nil {
			return nil, err
		}
	}
	n.watch(ctx)
	return n, nil
}

// give takes a connection back between two answers.
func (c *Client) give(n *connection) {
	if !n.unwatch() {
		n.socket.Close()
		return
	}
	n.isUsed = true
	c.mutex.Lock()
	keeps := !c.isClosed && len(c.idle) < c.options.IdleConnections
	if keeps {
		c.idle = append(c.idle, n)
	}
	c.mutex.Unlock()
	if !keeps {
		n.socket.Close()
	}
}

// discard closes a connection that failed, and those that idle: they are older.
func (c *Client) discard(n *connection) {
	n.unwatch()
	n.socket.Close()
	c.mutex.Lock()
	idle := c.idle
	c.idle = nil
	c.mutex.Unlock()
	for _, n := range idle {
		n.socket.Close()
	}
}

// begin gives a call without a deadline the client's own.
func (c *Client) begin(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has || c.options.Timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.options.Timeout)
}

// outcome is an answer, or why the server refuses the command.
type outcome struct {
	answer
	refusal error
}

// exchange sends commands in one go and reads the answer of each, in one round trip. Reads alone
// are tried once more if a connection that had idled is gone.
func (c *Client) exchange(ctx context.Context, commands []command) ([]outcome, error) {
	ctx, cancel := c.begin(ctx)
	defer cancel()
	isRead := true
	length := 0
	for _, command := range commands {
		if command.err != nil {
			return nil, command.err
		}
		isRead = isRead && command.isRead
		length += len(command.line) + len(command.value) + 4
	}
	request := make([]byte, 0, length)
	for _, command := range commands {
		request = command.appendTo(request)
	}
	for {
		n, err := c.take(ctx)
		if err != nil {
			return nil, causeOf(ctx, err)
		}
		outcomes, err := n.exchange(request, len(commands), c.options.ValueBytesMax)
		if err == nil {
			c.give(n)
			return outcomes, nil
		}
		c.discard(n)
		if !isRead || !n.isUsed || len(outcomes) > 0 || ctx.Err() != nil {
			return nil, causeOf(ctx, err)
		}
	}
}

// causeOf tells a call's end where that is why a socket failed.
func causeOf(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	if deadline, has := ctx.Deadline(); has && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return err
}

func (n *connection) exchange(request []byte, count int, valueBytesMax int64) ([]outcome, error) {
	wrote := make(chan error, 1)
	if len(request) <= writtenFirstBytesMax {
		_, err := n.socket.Write(request)
		wrote <- err
		if err != nil {
			return nil, err
		}
	} else {
		go func() {
			_, err := n.socket.Write(request)
			wrote <- err
		}()
	}
	outcomes := make([]outcome, 0, count)
	for len(outcomes) < count {
		answer, refusal, err := readAnswer(n.reader, valueBytesMax)
		if err != nil {
			// The writer of the request ends with its socket.
			n.socket.Close()
			<-wrote
			return outcomes, err
		}
		outcomes = append(outcomes, outcome{answer: answer, refusal: refusal})
	}
	return outcomes, <-wrote
}

// result is the outcome's error.
func (o *outcome) result() error {
	if o.refusal != nil {
		return o.refusal
	}
	return o.cause()
}

// one carries out a command.
func (c *Client) one(ctx context.Context, asked command) (*outcome, error) {
	outcomes, err := c.exchange(ctx, []command{asked})
	if err != nil {
		return nil, err
	}
	return &outcomes[0], outcomes[0].result()
}
