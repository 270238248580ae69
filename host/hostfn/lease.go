package hostfn

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/hookhost/hookhost/store"
)

// Leases keeps the leases of all running runs alive. Its zero value is ready.
type Leases struct {
	mu   sync.Mutex
	held map[heldLease]int // how many charges hold it
	wake chan struct{}
	lost func(l store.Lease, reason string) // told of each that lapsed; nil tells nobody
}

type heldLease struct {
	in store.Store
	store.Lease
}

// hold keeps a lease alive until drop was called as often.
func (l *Leases) hold(in store.Store, lease store.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[heldLease]int{}
	}
	l.held[heldLease{in, lease}]++
	select {
	case l.wakeUp() <- struct{}{}:
	default:
	}
}

// drop reports whether nobody holds the lease any more, so that it has to be
// freed. One that was found lapsed has not.
func (l *Leases) drop(in store.Store, lease store.Lease) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := heldLease{in, lease}
	holders := l.held[key]
	if holders > 1 {
		l.held[key]--
		return false
	}
	delete(l.held, key)
	return holders == 1
}

// has reports whether anybody holds the lease.
func (l *Leases) has(in store.Store, lease store.Lease) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[heldLease{in, lease}] > 0
}

// wakeUp is called with the lock held.
func (l *Leases) wakeUp() chan struct{} {
	if l.wake == nil {
		l.wake = make(chan struct{}, 1)
	}
	return l.wake
}

// Held counts the leases that are kept alive.
func (l *Leases) Held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}

// Run renews the leases at a third of the shortest expiry until ctx is done.
func (l *Leases) Run(ctx context.Context, log *slog.Logger) {
	l.mu.Lock()
	wake := l.wakeUp()
	l.mu.Unlock()
	last := time.Now()
	for {
		var due <-chan time.Time
		if interval, any := l.interval(); any {
			due = time.After(time.Until(last.Add(interval)))
		} else {
			last = time.Now()
		}
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-due:
			last = time.Now()
			if err := l.Renew(ctx); err != nil && ctx.Err() == nil {
				log.Warn("leases not renewed", "error", err)
			}
		}
	}
}

func (l *Leases) interval() (shortest time.Duration, any bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for h := range l.held {
		if !any || h.Cap.Expires < shortest {
			shortest, any = h.Cap.Expires, true
		}
	}
	return max(shortest/3, time.Millisecond), any
}

// Renew prolongs all the leases once, with one call for each store. One that
// lapsed is renewed no more: it stays lapsed.
func (l *Leases) Renew(ctx context.Context) error {
	var errs []error
	for in, leases := range l.byStore() {
		live, err := l.renewIn(ctx, in, leases)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for i, lease := range leases {
			if i < len(live) && !live[i] {
				l.lapsed(in, lease)
			}
		}
	}
	return errors.Join(errs...)
}

// renewIn gives a renewal a third of the interval: a store that hangs must not
// hold up the next one.
func (l *Leases) renewIn(ctx context.Context, in store.Store, leases []store.Lease) ([]bool, error) {
	shortest := leases[0].Cap.Expires
	for _, lease := range leases {
		shortest = min(shortest, lease.Cap.Expires)
	}
	ctx, cancel := context.WithTimeout(ctx, max(shortest/9, 10*time.Millisecond))
	defer cancel()
	return in.Renew(ctx, leases)
}

func (l *Leases) byStore() map[store.Store][]store.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	leases := map[store.Store][]store.Lease{}
	for h := range l.held {
		leases[h.in] = append(leases[h.in], h.Lease)
	}
	return leases
}

// lapsed forgets a lease, if its run still has it.
func (l *Leases) lapsed(in store.Store, lease store.Lease) {
	l.mu.Lock()
	_, had := l.held[heldLease{in, lease}]
	delete(l.held, heldLease{in, lease})
	l.mu.Unlock()
	if had && l.lost != nil {
		l.lost(lease, "renewal")
	}
}
