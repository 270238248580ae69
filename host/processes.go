package host

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/breaker"
)

// ProcessesLimit is the lease that each process holds on the store that it
// shares with others, so that they can be counted. No guest can name it.
const ProcessesLimit = "hookhost.processes"

// processExpiry is how long a process that went silent is counted still.
const processExpiry = 30 * time.Second

// beatTimeout bounds one heartbeat. A store that is back is found by it, so no
// call needs more time than this to say something of the store.
const beatTimeout = processExpiry / 9

// processes counts those that share a store.
type processes struct {
	store      store.Store
	lease      store.Lease
	configured int64 // what holds until the store was asked
	seen       atomic.Int64
	wake       <-chan struct{} // tells that the store went away or came back
}

func newProcesses(s store.Store, configured int64, expires time.Duration, wake <-chan struct{}) *processes {
	return &processes{store: s, configured: configured, wake: wake, lease: store.Lease{
		Owner: store.Owner{Kind: store.OwnerGlobal}, Limit: ProcessesLimit, Member: "process-" + rand.Text(),
		Cap: store.Cap{Max: store.MaxUnits, Expires: expires},
	}}
}

// count is how many live processes were last seen.
func (p *processes) count() int64 {
	if n := p.seen.Load(); n > 0 {
		return n
	}
	return p.configured
}

// run says again and again that this process lives, until ctx is done. While
// the store is away it asks more often: so it is this, and no user's turn, that
// finds the store back.
func (p *processes) run(ctx context.Context, failed func(error)) {
	for {
		next := p.lease.Cap.Expires / 3
		if err := p.beat(ctx); err != nil {
			next = min(next, breaker.ProbeEvery)
			if ctx.Err() == nil {
				failed(err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-time.After(next):
		}
	}
}

// beat renews the lease and counts all. After an outage in which the leases
// lapsed the others may not have come back yet: what was known before holds
// until the next beat, when they have.
func (p *processes) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.lease.Cap.Expires/9)
	defer cancel()
	held, err := p.store.Renew(ctx, []store.Lease{p.lease})
	if err != nil {
		return fmt.Errorf("heartbeat: %w", err)
	}
	if lapsed := len(held) != 1 || !held[0]; lapsed {
		if err := p.enter(ctx); err != nil || p.seen.Load() > 0 {
			return err
		}
	}
	n, err := p.store.Held(ctx, p.lease.Owner, p.lease.Limit)
	if err != nil {
		return fmt.Errorf("heartbeat: %w", err)
	}
	p.seen.Store(max(1, n))
	return nil
}

func (p *processes) enter(ctx context.Context) error {
	_, err := p.store.Admit(ctx, store.Admission{
		ID: p.lease.Member + "/" + rand.Text(), Owner: p.lease.Owner,
		Items: []store.Item{{Limit: p.lease.Limit, Acquire: &store.Acquire{Cap: p.lease.Cap, Member: p.lease.Member}}},
	})
	if err != nil {
		return fmt.Errorf("heartbeat: %w", err)
	}
	return nil
}

// leave says that this process is over. Where the store cannot be told, the
// lease lapses.
func (p *processes) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.lease.Cap.Expires/9)
	defer cancel()
	if _, err := p.store.Free(ctx, p.lease); err != nil {
		return fmt.Errorf("heartbeat: %w", err)
	}
	return nil
}
