package tamis

import (
	"context"
	"errors"
	"strconv"
)

// What a client knows of its server.
const (
	serverUnknown = iota
	serverTamis
	serverPlain
)

// parts carries out a command about a part of a value. The error is [ErrNoParts] from a server that
// knows none, which is asked once.
func (c *Client) parts(ctx context.Context, asked ...command) ([]outcome, error) {
	if c.server.Load() == serverPlain {
		return nil, ErrNoParts
	}
	outcomes, err := c.exchange(ctx, asked)
	if err != nil {
		return nil, err
	}
	for i := range outcomes {
		if errors.Is(outcomes[i].refusal, ErrNoParts) {
			c.server.Store(serverPlain)
			return nil, ErrNoParts
		}
		if outcomes[i].refusal == nil {
			c.server.Store(serverTamis)
		}
	}
	return outcomes, nil
}

// part carries out one command about a part of a value.
func (c *Client) part(ctx context.Context, asked command) (*outcome, error) {
	outcomes, err := c.parts(ctx, asked)
	if err != nil {
		return nil, err
	}
	return &outcomes[0], outcomes[0].result()
}

// rangeWord is the word of a range of bytes.
func rangeWord(offset, length int64) string {
	return "r" + strconv.FormatInt(offset, 10) + ":" + strconv.FormatInt(length, 10)
}

// GetRange reads up to length bytes of a value from an offset on; at the end of the value there are
// fewer, and behind it the error is [ErrNoRange]. Of an ordinary memcached the value is read whole.
func (c *Client) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	if offset < 0 || length < 0 {
		return nil, failed("get range", key, ErrNoRange)
	}
	got, err := c.part(ctx, newCommand("mg", key).flag("v").flag(rangeWord(offset, length)))
	if err == nil {
		return got.value, nil
	}
	if !errors.Is(err, ErrNoParts) {
		return nil, failed("get range", key, err)
	}
	item, err := c.Get(ctx, key)
	switch {
	case err != nil:
		return nil, err
	case offset > int64(len(item.Value)):
		return nil, failed("get range", key, ErrNoRange)
	}
	rest := item.Value[offset:]
	if length < int64(len(rest)) {
		rest = rest[:length]
	}
	return rest, nil
}

// SetRange writes over a value from an offset on, which is at most its end, and gives the new
// version. Flags and end of the item stay. An ordinary memcached cannot: the error is [ErrNoParts].
func (c *Client) SetRange(
	ctx context.Context, key string, offset int64, part []byte,
) (version uint64, err error) {
	if offset < 0 {
		return 0, failed("set range", key, ErrNoRange)
	}
	stored, err := c.part(ctx, newStore(key, part).flag("c").number('r', uint64(offset)))
	if err != nil {
		return 0, failed("set range", key, err)
	}
	return stored.version, nil
}
