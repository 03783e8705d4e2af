package tamis

import (
	"context"
	"strconv"
	"time"
)

// Batch is operations that go to the server in one round trip, in their order. Each has a result of
// its own: an operation that fails stops no other. A batch is no transaction.
type Batch struct {
	client   *Client
	commands []command
	results  []*Result
}

// Result is what became of one operation of a batch. It is filled in by [Batch.Run].
type Result struct {
	// Item is what was read; of what was stored, the version.
	Item Item
	// Number is the number of an item that was counted.
	Number uint64
	// Err is why the operation was not done; nil if it was.
	Err error

	op, key string
}

// Batch gives an empty batch.
func (c *Client) Batch() *Batch { return &Batch{client: c} }

// Len is how many operations wait in the batch.
func (b *Batch) Len() int { return len(b.commands) }

func (b *Batch) add(op, key string, asked command) *Result {
	result := &Result{op: op, key: key, Err: failed(op, key, asked.err)}
	if asked.err == nil {
		b.commands = append(b.commands, asked)
		b.results = append(b.results, result)
	}
	return result
}

// Get reads an item.
func (b *Batch) Get(key string) *Result { return b.add("get", key, getCommand(key)) }

// Set stores an item.
func (b *Batch) Set(item Item) *Result { return b.add("set", item.Key, storeCommand(item, "")) }

// Add stores an item if it is not there.
func (b *Batch) Add(item Item) *Result { return b.add("add", item.Key, storeCommand(item, "ME")) }

// CompareAndSwap stores an item if its version is still that of the item.
func (b *Batch) CompareAndSwap(item Item) *Result {
	store := storeCommand(item, "").number('C', item.Version)
	return b.add("compare and swap", item.Key, store)
}

// Delete removes an item.
func (b *Batch) Delete(key string) *Result { return b.add("delete", key, newCommand("md", key)) }

// Touch says when an item ends from now on; 0 is never.
func (b *Batch) Touch(key string, ttl time.Duration) *Result {
	touch := newCommand("mg", key)
	if ttl == 0 {
		touch = touch.flag("T0")
	}
	return b.add("touch", key, touch.ttl(ttl))
}

// Increment adds to a number.
func (b *Batch) Increment(key string, delta uint64) *Result {
	return b.add("increment", key, newCommand("ma", key).number('D', delta).flag("v"))
}

// Run carries out what was added since the batch was made or last ran. Its error says that the
// connection failed: which operations were done before is then unknown, and each has this error.
func (b *Batch) Run(ctx context.Context) error {
	commands, results := b.commands, b.results
	b.commands, b.results = nil, nil
	if len(commands) == 0 {
		return nil
	}
	outcomes, err := b.client.exchange(ctx, commands)
	if err != nil {
		for _, result := range results {
			result.Err = failed(result.op, result.key, err)
		}
		return err
	}
	for i, result := range results {
		result.read(&outcomes[i])
	}
	return nil
}

func (r *Result) read(o *outcome) {
	r.Item = o.item(r.key)
	err := o.result()
	if err == nil && r.op == "increment" {
		r.Number, err = strconv.ParseUint(string(o.value), 10, 64)
	}
	r.Err = failed(r.op, r.key, err)
}
