package storetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
)

// start is when every world begins.
var start = time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)

// world is an engine in the words that the rules are written in. Its calls
// fail the test on any error; the rules about errors call the store itself.
type world struct {
	failer
	t     *testing.T
	ctx   context.Context
	store store.Store
	clock Clock
	ids   *atomic.Int64
}

// failer is a *testing.T or a *rapid.T.
type failer interface {
	require.TestingT
	Helper()
}

func newWorld(t *testing.T, e Engine) *world {
	w := &world{failer: t, t: t, ctx: context.Background(), store: e.Store, clock: e.Clock, ids: new(atomic.Int64)}
	w.at(0)
	t.Cleanup(func() { require.NoError(t, e.Store.Close(context.Background())) })
	return w
}

// failing is the same world, in which another test fails.
func (w world) failing(f failer) *world {
	w.failer = f
	return &w
}

// at sets the clock to so long after the start.
func (w *world) at(d time.Duration) { w.clock.Set(start.Add(d)) }

// id makes an id that was not used yet.
func (w *world) id() string { return fmt.Sprintf("op-%d", w.ids.Add(1)) }

func user(app, id string) store.Owner {
	return store.Owner{Kind: store.OwnerUser, App: app, User: id}
}

var (
	ann = user("shop", "ann")
	bob = user("shop", "bob")
)

// every is a bucket that gets units each period.
func every(per time.Duration, units, burst int64) store.Bucket {
	return store.Bucket{Units: units, Per: per, Burst: burst}
}

// take asks a limit for units at once; the options change how.
func take(limit string, b store.Bucket, cost int64, options ...func(*store.Take)) store.Item {
	t := store.Take{Bucket: b, Cost: cost}
	for _, option := range options {
		option(&t)
	}
	return store.Item{Limit: limit, Take: &t}
}

func within(maxWait time.Duration) func(*store.Take) {
	return func(t *store.Take) { t.MaxWait = maxWait }
}

func reserved(d time.Duration) func(*store.Take) {
	return func(t *store.Take) { t.Reserve = d }
}

func room(limit string, b store.Bucket, cost int64) store.Item {
	return store.Item{Limit: limit, Room: &store.Room{Bucket: b, Cost: cost}}
}

func acquire(limit string, c store.Cap, member string) store.Item {
	return store.Item{Limit: limit, Acquire: &store.Acquire{Cap: c, Member: member}}
}

// admit asks under a fresh id.
func (w *world) admit(o store.Owner, items ...store.Item) store.Decision {
	w.Helper()
	return w.admitAs(w.id(), o, items...)
}

func (w *world) admitAs(id string, o store.Owner, items ...store.Item) store.Decision {
	w.Helper()
	d, err := w.store.Admit(w.ctx, store.Admission{ID: id, Owner: o, Items: items})
	require.NoError(w, err)
	return d
}

func (w *world) settle(id string, o store.Owner, limit string, b store.Bucket, actual int64) int64 {
	w.Helper()
	balance, err := w.store.Settle(w.ctx, store.Reservation{ID: id, Owner: o, Limit: limit, Bucket: b}, actual)
	require.NoError(w, err)
	return balance
}

// settleUnknown settles what is not open.
func (w *world) settleUnknown(id string, o store.Owner, limit string, b store.Bucket, actual int64) {
	w.Helper()
	_, err := w.store.Settle(w.ctx, store.Reservation{ID: id, Owner: o, Limit: limit, Bucket: b}, actual)
	require.ErrorIs(w, err, store.ErrUnknownID)
}

func (w *world) balance(o store.Owner, limit string, b store.Bucket) int64 {
	w.Helper()
	balance, err := w.store.Balance(w.ctx, o, limit, b)
	require.NoError(w, err)
	return balance
}

func (w *world) held(o store.Owner, limit string) int64 {
	w.Helper()
	n, err := w.store.Held(w.ctx, o, limit)
	require.NoError(w, err)
	return n
}

func (w *world) renew(leases ...store.Lease) []bool {
	w.Helper()
	held, err := w.store.Renew(w.ctx, leases)
	require.NoError(w, err)
	return held
}

func (w *world) free(l store.Lease) (held bool) {
	w.Helper()
	held, err := w.store.Free(w.ctx, l)
	require.NoError(w, err)
	return held
}

// The decisions that the rules expect.

func now(balance int64) store.Decision { return store.Decision{Kind: store.Now, Balance: balance} }

func later(wait time.Duration, balance int64) store.Decision {
	return store.Decision{Kind: store.Later, Wait: wait, Balance: balance}
}

func refused(wait time.Duration, balance int64) store.Decision {
	return store.Decision{Kind: store.Refused, Wait: wait, Balance: balance}
}

func never(balance int64) store.Decision { return store.Decision{Kind: store.Never, Balance: balance} }

// by is the same decision, made by an item that is not the first.
func by(item int, d store.Decision) store.Decision {
	d.Item = item
	return d
}
