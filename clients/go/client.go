package tamis

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Options says how a [Client] works. The zero value is good for a server without accounts.
type Options struct {
	// User and Password are an account of the server's. With a user each connection sends them
	// first.
	User, Password string
	// IdleConnections is how many connections are kept open between calls; 0 stands for 8. As many
	// are opened as calls go on at once.
	IdleConnections int
	// Timeout bounds each call whose context has no deadline; 0 is no bound.
	Timeout time.Duration
	// ValueBytesMax is the longest value that is read into memory, in bytes; 0 stands for 1 GiB.
	ValueBytesMax int64
}

// Client is a server's items. It may be used by many goroutines.
type Client struct {
	address string
	options Options

	mutex    sync.Mutex
	idle     []*connection
	isClosed bool

	// server is what is known of the server.
	server atomic.Int32
}

// New gives a client of the server at an address: host:port, or a path of a unix socket, which
// begins with / or unix:. It connects when it is first used.
func New(address string, options Options) *Client {
	if options.IdleConnections <= 0 {
		options.IdleConnections = 8
	}
	if options.ValueBytesMax <= 0 {
		options.ValueBytesMax = 1 << 30
	}
	return &Client{address: address, options: options}
}

// Close closes the connections that idle; calls that go on end theirs.
func (c *Client) Close() error {
	c.mutex.Lock()
	idle := c.idle
	c.idle = nil
	c.isClosed = true
	c.mutex.Unlock()
	for _, n := range idle {
		n.socket.Close()
	}
	return nil
}

// Item is a value with its key.
type Item struct {
	// Key is 1 to 250 bytes; one with spaces or bytes beyond ASCII at most 187.
	Key string
	// Value is what is stored.
	Value []byte
	// Flags are a number of the client's, which the server keeps.
	Flags uint32
	// TTL is when the item ends, in whole seconds; 0 is never.
	TTL time.Duration
	// Version is what [Client.CompareAndSwap] compares; reads fill it in.
	Version uint64
}

func getCommand(key string) command { return newCommand("mg", key).flag("v f c t") }

func (a *answer) item(key string) Item {
	return Item{Key: key, Value: a.value, Flags: a.flags, TTL: a.ttl, Version: a.version}
}

// Get reads an item.
func (c *Client) Get(ctx context.Context, key string) (Item, error) {
	got, err := c.one(ctx, getCommand(key))
	if err != nil {
		return Item{}, failed("get", key, err)
	}
	return got.item(key), nil
}

// GetMulti reads items in one round trip. What is not there is not in the map.
func (c *Client) GetMulti(ctx context.Context, keys ...string) (map[string]Item, error) {
	commands := make([]command, len(keys))
	for i, key := range keys {
		commands[i] = getCommand(key)
	}
	outcomes, err := c.exchange(ctx, commands)
	if err != nil {
		return nil, err
	}
	items := make(map[string]Item, len(keys))
	for i := range outcomes {
		switch err := outcomes[i].result(); err {
		case nil:
			items[keys[i]] = outcomes[i].item(keys[i])
		case ErrNotFound:
		default:
			return nil, failed("get", keys[i], err)
		}
	}
	return items, nil
}

// storeCommand stores an item in a mode of memcached's.
func storeCommand(item Item, mode string) command {
	store := newStore(item.Key, item.Value).flag("c").ttl(item.TTL)
	if item.Flags != 0 {
		store = store.number('F', uint64(item.Flags))
	}
	if mode != "" {
		store = store.flag(mode)
	}
	return store
}

func (c *Client) store(ctx context.Context, op string, store command, key string) (uint64, error) {
	stored, err := c.one(ctx, store)
	if err != nil {
		return 0, failed(op, key, err)
	}
	return stored.version, nil
}

// Set stores an item whether it is there or not, and gives its version.
func (c *Client) Set(ctx context.Context, item Item) (version uint64, err error) {
	return c.store(ctx, "set", storeCommand(item, ""), item.Key)
}

// Add stores an item if it is not there; otherwise the error is [ErrNotStored].
func (c *Client) Add(ctx context.Context, item Item) (version uint64, err error) {
	return c.store(ctx, "add", storeCommand(item, "ME"), item.Key)
}

// Replace stores an item if it is there; otherwise the error is [ErrNotStored].
func (c *Client) Replace(ctx context.Context, item Item) (version uint64, err error) {
	return c.store(ctx, "replace", storeCommand(item, "MR"), item.Key)
}

// CompareAndSwap stores an item if its version is still that of the item; otherwise the error is
// [ErrExists] or [ErrNotFound].
func (c *Client) CompareAndSwap(ctx context.Context, item Item) (version uint64, err error) {
	store := storeCommand(item, "").number('C', item.Version)
	return c.store(ctx, "compare and swap", store, item.Key)
}

// Append puts bytes behind a value. Without an item the error is [ErrNotStored].
func (c *Client) Append(ctx context.Context, key string, behind []byte) (version uint64, err error) {
	return c.store(ctx, "append", newStore(key, behind).flag("c MA"), key)
}

// Prepend puts bytes before a value. Without an item the error is [ErrNotStored].
func (c *Client) Prepend(ctx context.Context, key string, front []byte) (version uint64, err error) {
	return c.store(ctx, "prepend", newStore(key, front).flag("c MP"), key)
}

// Delete removes an item.
func (c *Client) Delete(ctx context.Context, key string) error {
	_, err := c.one(ctx, newCommand("md", key))
	return failed("delete", key, err)
}

// Touch says when an item ends from now on; 0 is never.
func (c *Client) Touch(ctx context.Context, key string, ttl time.Duration) error {
	touch := newCommand("mg", key)
	if ttl == 0 {
		touch = touch.flag("T0")
	}
	_, err := c.one(ctx, touch.ttl(ttl))
	return failed("touch", key, err)
}

// Increment adds to an item whose value is a number in decimal, and gives the new one. Behind the
// largest number of 64 bits follows 0.
func (c *Client) Increment(ctx context.Context, key string, delta uint64) (uint64, error) {
	return c.count(ctx, "increment", key, newCommand("ma", key).number('D', delta))
}

// Decrement takes from an item whose value is a number in decimal, down to 0, and gives the new
// one.
func (c *Client) Decrement(ctx context.Context, key string, delta uint64) (uint64, error) {
	return c.count(ctx, "decrement", key, newCommand("ma", key).flag("MD").number('D', delta))
}

func (c *Client) count(ctx context.Context, op, key string, sum command) (uint64, error) {
	counted, err := c.one(ctx, sum.flag("v"))
	if err != nil {
		return 0, failed(op, key, err)
	}
	number, err := strconv.ParseUint(string(counted.value), 10, 64)
	return number, failed(op, key, err)
}
