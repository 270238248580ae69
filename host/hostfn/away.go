package hostfn

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/store"
)

// hostState names what the host keeps in a run beside the stages: none of them
// is called so.
const hostState = "."

// awayFor is how long a run that found the store away does not ask it again,
// so that a turn pays for a dead store once.
const awayFor = time.Second

var errStillAway = fmt.Errorf("%w: found away a moment ago", store.ErrUnavailable)

// inStore runs one call to the store, in its time, and turns its error into a
// code.
func (c *Call) inStore(f func(context.Context) error) abi.Code {
	code := c.codeOf(c.within(c.services.Store, f))
	c.storeAway = c.storeAway || code == abi.Unavailable
	return code
}

// within runs one call to a store in its time. The shared one is not asked by a
// run that has just found it away.
func (c *Call) within(in store.Store, f func(context.Context) error) error {
	if in == c.services.Store && c.foundAway() {
		return errStillAway
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.services.storeTimeout())
	defer cancel()
	err := f(ctx)
	if in == c.services.Store {
		c.sawAway(err)
	}
	return err
}

// sawAway keeps in mind that the store is away. What operators have to read of
// it the host logs once, not each run. That the caller has gone does not mean
// that it is away.
func (c *Call) sawAway(err error) {
	if !store.IsAway(err) || errors.Is(err, store.ErrOnlyThis) || c.ctx.Err() != nil || c.foundAway() {
		return
	}
	c.services.logger().Debug("store unavailable", "stage", c.stage.Name, "error", err)
	now := binary.LittleEndian.AppendUint64(nil, uint64(time.Now().UnixNano()))
	_ = c.ev.Run.Set(hostState, "away", now) // a run that is over has no more calls
}

// hurried reports whether a call that begins now has less time than the store
// takes.
func (c *Call) hurried() bool {
	end, bounded := c.ctx.Deadline()
	return bounded && time.Until(end) < c.services.storeTimeout()
}

func (c *Call) foundAway() bool {
	at, found := c.ev.Run.Get(hostState, "away")
	return found && time.Since(time.Unix(0, int64(binary.LittleEndian.Uint64(at)))).Abs() < awayFor
}

// codeOf tells a store that is away, which is counted, from one that does not
// accept what it was asked.
func (c *Call) codeOf(err error) abi.Code {
	switch {
	case err == nil:
		return abi.OK
	case errors.Is(err, store.ErrUnknownID), errors.Is(err, store.ErrFenced):
		return abi.NotFound
	case errors.Is(err, store.ErrOnlyThis):
		c.services.logger().Warn("store cannot do this one thing", "stage", c.stage.Name, "error", err)
		return abi.Unavailable
	case store.IsAway(err):
		c.services.fallbacks.Add(1)
		c.services.instruments.fallback(c.stage.Name)
		return abi.Unavailable
	}
	c.services.logger().Warn("store refused a request", "stage", c.stage.Name, "error", err)
	return abi.BadArgument
}
