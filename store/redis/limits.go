package redis

import (
	"context"
	"fmt"

	"github.com/hookhost/hookhost/store"
)

var remembered = store.Remembered.Milliseconds()

// Admit implements store.Store.
func (s *Store) Admit(ctx context.Context, a store.Admission) (store.Decision, error) {
	if err := a.Validate(); err != nil {
		return store.Decision{}, err
	}
	owner := s.owned(a.Owner)
	keys := append(make([]string, 0, 2+len(a.Items)), owner.operation(a.ID), owner.buckets())
	args := append(make([]any, 0, 2+8*len(a.Items)), remembered, len(a.Items))
	for _, item := range a.Items {
		switch {
		case item.Take != nil:
			t, rate := item.Take, item.Take.Bucket.Rate()
			args = append(args, "take", item.Limit, rate.N, rate.P, t.Bucket.Burst, t.Cost, t.MaxWait.Milliseconds(), store.MillisOf(t.Reserve))
		case item.Room != nil:
			r, rate := item.Room, item.Room.Bucket.Rate()
			args = append(args, "room", item.Limit, rate.N, rate.P, r.Bucket.Burst, r.Cost)
		default:
			q := item.Acquire
			keys = append(keys, owner.leases(item.Limit))
			args = append(args, "lease", min(q.Cap.Max, 1<<53), store.MillisOf(q.Cap.Expires), q.Member)
		}
	}
	reply, err := s.ask(ctx, "admit", keys, args...)
	if err != nil {
		return store.Decision{}, err
	}
	return reply.decision()
}

// Settle implements store.Store.
func (s *Store) Settle(ctx context.Context, r store.Reservation, actual int64) (balance int64, err error) {
	if err := r.Validate(); err != nil {
		return 0, err
	}
	if err := store.CheckUnits("actual", actual); err != nil {
		return 0, fmt.Errorf("limit[%s] %w", r.Limit, err)
	}
	owner, rate := s.owned(r.Owner), r.Bucket.Rate()
	reply, err := s.ask(ctx, "settle", []string{owner.operation(r.ID), owner.buckets()},
		r.Limit, rate.N, rate.P, r.Bucket.Burst, actual, remembered)
	if err != nil {
		return 0, err
	}
	open, balance := reply.yes(), reply.units()
	if err := reply.end(); err != nil {
		return 0, err
	}
	if !open {
		return 0, fmt.Errorf("limit[%s] %w", r.Limit, store.ErrUnknownID)
	}
	return balance, nil
}

// Balance implements store.Store.
func (s *Store) Balance(ctx context.Context, owner store.Owner, limit string, b store.Bucket) (int64, error) {
	if err := store.CheckBucket(owner, limit, b); err != nil {
		return 0, err
	}
	rate := b.Rate()
	reply, err := s.ask(ctx, "balance", []string{s.owned(owner).buckets()}, limit, rate.N, rate.P, b.Burst)
	if err != nil {
		return 0, err
	}
	balance := reply.units()
	return balance, reply.end()
}

// Refill implements store.Store.
func (s *Store) Refill(ctx context.Context, owner store.Owner, limits ...string) error {
	if err := owner.Validate(); err != nil {
		return err
	}
	if len(limits) == 0 {
		return nil
	}
	fields := make([]any, len(limits))
	for i, limit := range limits {
		fields[i] = limit
	}
	_, err := s.ask(ctx, "refill", []string{s.owned(owner).buckets()}, fields...)
	return err
}
