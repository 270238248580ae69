package redis

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/hookhost/hookhost/store"
)

// reply is what a script answered, read from the front. The first thing that
// is not as it should be is the error, with its place; what is read after it
// is empty.
type reply struct {
	script string
	values []any
	next   int
	err    error
}

func (c *call) result() (*reply, error) {
	r := &reply{script: c.script.name}
	values, is := c.reply.([]any)
	if !is {
		r.fail("%T where a list was expected", c.reply)
	}
	r.values = values
	return r, r.err
}

func (r *reply) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("redis %s: %w: %w: reply[%d]: %s", r.script, store.ErrUnavailable, store.ErrOnlyThis, r.next, fmt.Sprintf(format, args...))
	}
}

func (r *reply) value() any {
	if r.err != nil {
		return nil
	}
	if r.next >= len(r.values) {
		r.fail("missing")
		return nil
	}
	r.next++
	return r.values[r.next-1]
}

func (r *reply) more() bool { return r.err == nil && r.next < len(r.values) }

// end checks that all was read.
func (r *reply) end() error {
	if r.more() {
		r.fail("more than was expected")
	}
	return r.err
}

// between reads an integer of a range.
func (r *reply) between(least, most int64) int64 {
	value := r.value()
	n, is := value.(int64)
	switch {
	case r.err != nil:
		return 0
	case !is:
		r.next--
		r.fail("%T where an integer was expected", value)
	case n < least || n > most:
		r.next--
		r.fail("%d where %d to %d was expected", n, least, most)
	default:
		return n
	}
	return 0
}

func (r *reply) yes() bool { return r.between(0, 1) == 1 }

func (r *reply) text() string {
	value := r.value()
	text, is := value.(string)
	if r.err == nil && !is {
		r.next--
		r.fail("%T where a string was expected", value)
	}
	return text
}

// number reads an integer of which the script made a string.
func (r *reply) number() int64 {
	text := r.text()
	if r.err != nil {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		r.next--
		r.fail("no integer")
	}
	return n
}

// units are what a bucket can hold.
func (r *reply) units() int64 { return r.between(-store.MaxUnits, store.MaxUnits) }

// decision reads what an admission came to: the first one with its id, which
// may have had more items.
func (r *reply) decision() (store.Decision, error) {
	d := store.Decision{
		Kind: store.Kind(r.between(int64(store.Now), int64(store.Never))),
		Item: int(r.between(0, math.MaxInt32)),
		Wait: store.Millis(r.between(0, math.MaxInt64/int64(time.Millisecond))),
	}
	d.Balance = r.units()
	if err := r.end(); err != nil {
		return store.Decision{}, err
	}
	return d, nil
}
