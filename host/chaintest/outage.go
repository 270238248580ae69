package chaintest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/store"
)

// outage is a store that can be away. It also remembers whose leases were
// asked for, so that the end of a scenario can see that all were given back.
type outage struct {
	store.Store
	down atomic.Bool

	mu     sync.Mutex
	leases map[lease]bool
}

type lease struct {
	owner store.Owner
	limit string
}

func newOutage(s store.Store) *outage { return &outage{Store: s, leases: map[lease]bool{}} }

// when does nothing but fail while the store is away.
func (o *outage) when(do func() error) error {
	if o.down.Load() {
		return fmt.Errorf("%w: by the scenario", store.ErrUnavailable)
	}
	return do()
}

func (o *outage) Admit(ctx context.Context, a store.Admission) (d store.Decision, err error) {
	err = o.when(func() error {
		d, err = o.Store.Admit(ctx, a)
		return err
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, item := range a.Items {
		if item.Acquire != nil && item.Limit != host.ProcessesLimit {
			o.leases[lease{a.Owner, item.Limit}] = true
		}
	}
	return d, err
}

// held counts the leases that nobody gave back.
func (o *outage) held(ctx context.Context) (n int64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for l := range o.leases {
		held, err := o.Held(ctx, l.owner, l.limit)
		if err != nil {
			return 0, err
		}
		n += held
	}
	return n, nil
}

func (o *outage) Settle(ctx context.Context, r store.Reservation, actual int64) (n int64, err error) {
	err = o.when(func() error {
		n, err = o.Store.Settle(ctx, r, actual)
		return err
	})
	return n, err
}

func (o *outage) Renew(ctx context.Context, leases []store.Lease) (live []bool, err error) {
	err = o.when(func() error {
		live, err = o.Store.Renew(ctx, leases)
		return err
	})
	return live, err
}

func (o *outage) Free(ctx context.Context, l store.Lease) (held bool, err error) {
	err = o.when(func() error {
		held, err = o.Store.Free(ctx, l)
		return err
	})
	return held, err
}

func (o *outage) Claim(ctx context.Context, k store.ClaimKey, holder string, ttl time.Duration) (c store.Claim, err error) {
	err = o.when(func() error {
		c, err = o.Store.Claim(ctx, k, holder, ttl)
		return err
	})
	return c, err
}

func (o *outage) RenewClaim(ctx context.Context, k store.ClaimKey, token int64, ttl time.Duration) error {
	return o.when(func() error { return o.Store.RenewClaim(ctx, k, token, ttl) })
}

func (o *outage) EndClaim(ctx context.Context, k store.ClaimKey, token int64, result []byte, retention time.Duration) error {
	return o.when(func() error { return o.Store.EndClaim(ctx, k, token, result, retention) })
}

func (o *outage) ClaimResult(ctx context.Context, k store.ClaimKey) (result []byte, done bool, err error) {
	err = o.when(func() error {
		result, done, err = o.Store.ClaimResult(ctx, k)
		return err
	})
	return result, done, err
}

func (o *outage) GetValue(ctx context.Context, k store.ValueKey) (value []byte, found bool, err error) {
	err = o.when(func() error {
		value, found, err = o.Store.GetValue(ctx, k)
		return err
	})
	return value, found, err
}

func (o *outage) PutValue(ctx context.Context, k store.ValueKey, value []byte, ttl time.Duration) error {
	return o.when(func() error { return o.Store.PutValue(ctx, k, value, ttl) })
}

func (o *outage) Record(ctx context.Context, r store.Record) (fresh bool, err error) {
	err = o.when(func() error {
		fresh, err = o.Store.Record(ctx, r)
		return err
	})
	return fresh, err
}

func (o *outage) AddCounter(ctx context.Context, owner store.Owner, name, id string, delta int64) (n int64, err error) {
	err = o.when(func() error {
		n, err = o.Store.AddCounter(ctx, owner, name, id, delta)
		return err
	})
	return n, err
}

func (o *outage) Counter(ctx context.Context, owner store.Owner, name string) (n int64, err error) {
	err = o.when(func() error {
		n, err = o.Store.Counter(ctx, owner, name)
		return err
	})
	return n, err
}
