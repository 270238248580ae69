package breaker

import (
	"context"
	"slices"
	"time"

	"github.com/hookhost/hookhost/store"
)

func (b *breaker) Admit(ctx context.Context, a store.Admission) (store.Decision, error) {
	return guard(ctx, b, works, func() (store.Decision, error) { return b.inner.Admit(ctx, a) })
}

func (b *breaker) Settle(ctx context.Context, r store.Reservation, actual int64) (int64, error) {
	return guard(ctx, b, works, func() (int64, error) { return b.inner.Settle(ctx, r, actual) })
}

func (b *breaker) Balance(ctx context.Context, owner store.Owner, limit string, bucket store.Bucket) (int64, error) {
	return guard(ctx, b, nil, func() (int64, error) { return b.inner.Balance(ctx, owner, limit, bucket) })
}

func (b *breaker) Refill(ctx context.Context, owner store.Owner, limits ...string) error {
	return b.only(ctx, nil, func() error { return b.inner.Refill(ctx, owner, limits...) })
}

func (b *breaker) Renew(ctx context.Context, leases []store.Lease) ([]bool, error) {
	renewed := func(held []bool) bool { return slices.Contains(held, true) } // else nothing was written
	return guard(ctx, b, renewed, func() ([]bool, error) { return b.inner.Renew(ctx, leases) })
}

func (b *breaker) Free(ctx context.Context, l store.Lease) (bool, error) {
	return guard(ctx, b, nil, func() (bool, error) { return b.inner.Free(ctx, l) })
}

func (b *breaker) Held(ctx context.Context, owner store.Owner, limit string) (int64, error) {
	return guard(ctx, b, nil, func() (int64, error) { return b.inner.Held(ctx, owner, limit) })
}

func (b *breaker) Claim(ctx context.Context, k store.ClaimKey, holder string, ttl time.Duration) (store.Claim, error) {
	claimed := func(c store.Claim) bool { return c.State == store.Claimed } // else nothing was written
	return guard(ctx, b, claimed, func() (store.Claim, error) { return b.inner.Claim(ctx, k, holder, ttl) })
}

func (b *breaker) RenewClaim(ctx context.Context, k store.ClaimKey, token int64, ttl time.Duration) error {
	return b.only(ctx, works, func() error { return b.inner.RenewClaim(ctx, k, token, ttl) })
}

func (b *breaker) EndClaim(ctx context.Context, k store.ClaimKey, token int64, result []byte, retention time.Duration) error {
	return b.only(ctx, works, func() error { return b.inner.EndClaim(ctx, k, token, result, retention) })
}

func (b *breaker) ClaimResult(ctx context.Context, k store.ClaimKey) (result []byte, done bool, err error) {
	err = b.only(ctx, nil, func() (err error) {
		result, done, err = b.inner.ClaimResult(ctx, k)
		return err
	})
	return result, done, err
}

func (b *breaker) GetValue(ctx context.Context, k store.ValueKey) (value []byte, found bool, err error) {
	err = b.only(ctx, nil, func() (err error) {
		value, found, err = b.inner.GetValue(ctx, k)
		return err
	})
	return value, found, err
}

func (b *breaker) PutValue(ctx context.Context, k store.ValueKey, value []byte, ttl time.Duration) error {
	return b.only(ctx, works, func() error { return b.inner.PutValue(ctx, k, value, ttl) })
}

func (b *breaker) Record(ctx context.Context, r store.Record) (bool, error) {
	return guard(ctx, b, works, func() (bool, error) { return b.inner.Record(ctx, r) })
}

func (b *breaker) Records(ctx context.Context, owner store.Owner) ([]store.Record, error) {
	return guard(ctx, b, nil, func() ([]store.Record, error) { return b.inner.Records(ctx, owner) })
}

func (b *breaker) AddCounter(ctx context.Context, owner store.Owner, name, id string, delta int64) (int64, error) {
	return guard(ctx, b, works, func() (int64, error) { return b.inner.AddCounter(ctx, owner, name, id, delta) })
}

func (b *breaker) Counter(ctx context.Context, owner store.Owner, name string) (int64, error) {
	return guard(ctx, b, nil, func() (int64, error) { return b.inner.Counter(ctx, owner, name) })
}

func (b *breaker) Activity(ctx context.Context, owner store.Owner, since time.Time) ([]store.Activity, error) {
	return guard(ctx, b, nil, func() ([]store.Activity, error) { return b.inner.Activity(ctx, owner, since) })
}

func (b *breaker) SetOverride(ctx context.Context, o store.Override) error {
	return b.only(ctx, works, func() error { return b.inner.SetOverride(ctx, o) })
}

func (b *breaker) Overrides(ctx context.Context, since string) (store.OverrideChanges, error) {
	return guard(ctx, b, nil, func() (store.OverrideChanges, error) { return b.inner.Overrides(ctx, since) })
}

func (b *breaker) Learn(ctx context.Context, id string, samples []store.Sample) ([]int64, error) {
	return guard(ctx, b, works, func() ([]int64, error) { return b.inner.Learn(ctx, id, samples) })
}

// Close goes by no circuit: a store that is away can be closed too.
func (b *breaker) Close(ctx context.Context) error { return b.inner.Close(ctx) }

// only guards a call that has no result, or more than one.
func (b *breaker) only(ctx context.Context, shows func(struct{}) bool, call func() error) error {
	_, err := guard(ctx, b, shows, func() (struct{}, error) { return struct{}{}, call() })
	return err
}
