package hostfn

import (
	"container/heap"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/hookhost/hookhost/store"
)

// Leases keeps the leases of all running runs alive, each by its own expiry.
// Its zero value is ready.
type Leases struct {
	mu   sync.Mutex
	held map[leaseKey]*held
	next byDue // of held, those that are not just being renewed
	wake chan struct{}
	late int                                // of held, those whose last renewal failed
	lost func(l store.Lease, reason string) // told of each that lapsed; nil tells nobody
}

// leaseKey is what makes a lease, whatever its cap has become meanwhile.
type leaseKey struct {
	in            store.Store
	owner         store.Owner
	limit, member string
}

func keyOf(in store.Store, l store.Lease) leaseKey {
	return leaseKey{in, l.Owner, l.Limit, l.Member}
}

// held is a lease that somebody holds.
type held struct {
	in    store.Store
	lease store.Lease // with the newest cap
	by    int         // charges
	due   time.Time   // to be renewed
	late  bool        // the last renewal failed
	at    int         // in next; -1 is not there
}

// A lease is due at a third of its expiry, and from half of that time on it is
// renewed along with one that is due: so they go in batches. After a failure it
// is tried again soon, so that two thirds of the expiry are there to get through
// an outage.
const (
	dueAfter  = 3
	mostRetry = time.Second
	maxBatch  = 500
)

func (h *held) interval() time.Duration { return max(h.lease.Cap.Expires/dueAfter, time.Millisecond) }

func (h *held) retry() time.Duration { return min(max(h.interval()/3, time.Millisecond), mostRetry) }

// timeout of one renewal: a store that hangs must not hold up the next one.
func timeoutOf(expires time.Duration) time.Duration {
	return min(max(expires/9, 10*time.Millisecond), time.Second)
}

// hold keeps a lease alive that was just taken, until drop was called as
// often.
func (l *Leases) hold(in store.Store, lease store.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[leaseKey]*held{}
	}
	key := keyOf(in, lease)
	h := l.held[key]
	if h == nil {
		h = &held{in: in, at: -1}
		l.held[key] = h
	}
	h.by++
	h.lease = lease
	l.schedule(h, h.interval())
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
	h := l.held[keyOf(in, lease)]
	if h == nil {
		return false
	}
	if h.by--; h.by > 0 {
		return false
	}
	l.forget(h)
	return true
}

// has reports whether anybody holds the lease.
func (l *Leases) has(in store.Store, lease store.Lease) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[keyOf(in, lease)] != nil
}

// Held counts the leases that are kept alive.
func (l *Leases) Held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}

// Run renews the leases as they become due until ctx is done.
func (l *Leases) Run(ctx context.Context, log *slog.Logger) {
	l.mu.Lock()
	wake := l.wakeUp()
	l.mu.Unlock()
	failing := false
	for {
		at, any, late := l.first()
		if failing && late == 0 {
			log.Info("leases are renewed again")
			failing = false
		}
		var due <-chan time.Time
		if any {
			due = time.After(time.Until(at))
		}
		select {
		case <-ctx.Done():
			return
		case <-wake:
			continue
		case <-due:
		}
		if _, err := l.renewNext(ctx); err != nil && ctx.Err() == nil && !failing {
			log.Warn("leases not renewed, and tried again", "error", err)
			failing = true
		}
	}
}

// Renew prolongs all the leases once.
func (l *Leases) Renew(ctx context.Context) error {
	l.mu.Lock()
	left := len(l.next)
	for _, h := range l.next {
		h.due = time.Time{}
	}
	l.mu.Unlock()
	var errs []error
	for left > 0 {
		n, err := l.renewNext(ctx)
		errs = append(errs, err)
		if n == 0 {
			break
		}
		left -= n
	}
	return errors.Join(errs...)
}

// renewNext renews those that have been due for longest, and those that may go
// with them: of one store and one expiry, so that leases of a short one and of a
// long one do not share a timeout. It says how many it tried.
func (l *Leases) renewNext(ctx context.Context) (int, error) {
	batch := l.takeDue()
	if len(batch) == 0 {
		return 0, nil
	}
	return len(batch), l.renew(ctx, batch)
}

// renew prolongs a batch. Where a key is in the way of one, it finds out of
// which: the others are renewed nevertheless.
func (l *Leases) renew(ctx context.Context, batch []*held) error {
	leases := make([]store.Lease, len(batch))
	l.mu.Lock()
	for i, h := range batch {
		leases[i] = h.lease
	}
	l.mu.Unlock()
	live, err := l.renewIn(ctx, batch[0].in, leases)
	if half := len(batch) / 2; half > 0 && errors.Is(err, store.ErrOnlyThis) {
		return errors.Join(l.renew(ctx, batch[:half]), l.renew(ctx, batch[half:]))
	}
	var lapsed []store.Lease
	l.mu.Lock()
	for i, h := range batch {
		if l.held[keyOf(h.in, h.lease)] != h { // dropped meanwhile
			continue
		}
		l.failed(h, err != nil)
		switch {
		case err != nil:
			l.schedule(h, h.retry())
		case live[i]:
			l.schedule(h, h.interval())
		case h.at < 0: // else it was taken again meanwhile
			l.forget(h)
			lapsed = append(lapsed, h.lease)
		}
	}
	l.mu.Unlock()
	for _, lease := range lapsed { // it stays lapsed
		if l.lost != nil {
			l.lost(lease, "renewal")
		}
	}
	return err
}

func (l *Leases) renewIn(ctx context.Context, in store.Store, leases []store.Lease) ([]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, timeoutOf(leases[0].Cap.Expires))
	defer cancel()
	return in.Renew(ctx, leases)
}

// first says when the first one is due, and how many wait for another try.
func (l *Leases) first() (at time.Time, any bool, late int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.next) == 0 {
		return at, false, l.late
	}
	return l.next[0].due, true, l.late
}

// takeDue takes a batch out of next, if the first one is due.
func (l *Leases) takeDue() (batch []*held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	var others []*held
	for len(l.next) > 0 && len(batch) < maxBatch && len(others) < maxBatch {
		h := l.next[0]
		early := h.interval() / 2
		if len(batch) == 0 {
			early = 0
		}
		if h.due.After(now.Add(early)) {
			break
		}
		heap.Pop(&l.next)
		if len(batch) > 0 && (h.in != batch[0].in || h.lease.Cap.Expires != batch[0].lease.Cap.Expires) {
			others = append(others, h)
			continue
		}
		batch = append(batch, h)
	}
	for _, h := range others {
		heap.Push(&l.next, h)
	}
	return batch
}

// The following are called with the lock held.

func (l *Leases) wakeUp() chan struct{} {
	if l.wake == nil {
		l.wake = make(chan struct{}, 1)
	}
	return l.wake
}

func (l *Leases) schedule(h *held, in time.Duration) {
	h.due = time.Now().Add(in)
	if h.at < 0 {
		heap.Push(&l.next, h)
		return
	}
	heap.Fix(&l.next, h.at)
}

func (l *Leases) failed(h *held, is bool) {
	switch {
	case is && !h.late:
		l.late++
	case h.late && !is:
		l.late--
	}
	h.late = is
}

func (l *Leases) forget(h *held) {
	l.failed(h, false)
	delete(l.held, keyOf(h.in, h.lease))
	if h.at >= 0 {
		heap.Remove(&l.next, h.at)
	}
}

// byDue is a heap, that which is due first in front.
type byDue []*held

func (b byDue) Len() int           { return len(b) }
func (b byDue) Less(i, j int) bool { return b[i].due.Before(b[j].due) }
func (b byDue) Swap(i, j int) {
	b[i], b[j] = b[j], b[i]
	b[i].at, b[j].at = i, j
}

// Push implements heap.Interface.
func (b *byDue) Push(x any) {
	h := x.(*held)
	h.at = len(*b)
	*b = append(*b, h)
}

// Pop implements heap.Interface.
func (b *byDue) Pop() any {
	last := len(*b) - 1
	h := (*b)[last]
	(*b)[last], h.at = nil, -1
	*b = (*b)[:last]
	return h
}
