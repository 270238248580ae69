package memory

import (
	"context"
	"fmt"

	"github.com/hookhost/hookhost/store"
)

// reservation is a charge that was open and, once settled, is remembered.
type reservation struct {
	charged int64
	settled bool
}

// outcome is what one item came to, and what to write if all are granted.
type outcome struct {
	kind    store.Kind
	wait    int64
	balance int64
	write   func()
}

// Admit implements store.Store.
func (s *Store) Admit(ctx context.Context, a store.Admission) (store.Decision, error) {
	if err := a.Validate(); err != nil {
		return store.Decision{}, err
	}
	now, err := s.lock(ctx)
	if err != nil {
		return store.Decision{}, err
	}
	defer s.mu.Unlock()

	id := operationKey{a.Owner.Key(), a.ID}
	if d, known := s.decisions.get(id, now); known {
		return d, nil
	}
	d := s.admit(a, now)
	s.decisions.put(id, d, after(now, store.MillisOf(store.Remembered)))
	return d, nil
}

// admit decides by the worst outcome, of equal ones by the longest wait, and
// writes if every item is granted.
func (s *Store) admit(a store.Admission, now int64) store.Decision {
	d := store.Decision{Kind: store.Now}
	writes := make([]func(), 0, len(a.Items))
	for i, item := range a.Items {
		o := s.decide(a, item, now)
		if item.Take != nil && d.Kind == store.Now {
			d.Balance = o.balance
		}
		if wait := store.Millis(o.wait); o.kind > d.Kind || o.kind == d.Kind && wait > d.Wait {
			d.Kind, d.Item, d.Balance, d.Wait = o.kind, i, o.balance, wait
		}
		writes = append(writes, o.write)
	}
	if d.Kind == store.Now || d.Kind == store.Later {
		for _, write := range writes {
			write()
		}
	}
	return d
}

func (s *Store) decide(a store.Admission, item store.Item, now int64) outcome {
	key := limitKey{a.Owner.Key(), item.Limit}
	switch {
	case item.Take != nil:
		return s.take(reservationKey{key, a.ID}, *item.Take, now)
	case item.Room != nil:
		return s.room(key, *item.Room, now)
	default:
		return s.acquire(key, *item.Acquire, now)
	}
}

func (s *Store) take(key reservationKey, t store.Take, now int64) outcome {
	level, kind, wait := s.level(key.limitKey, t.Bucket, now).Take(t.Bucket, t.Cost, t.MaxWait.Milliseconds())
	return outcome{kind, wait, level.Units, func() {
		if t.Cost > 0 {
			s.putLevel(key.limitKey, t.Bucket, level)
		}
		if t.Reserve > 0 {
			s.reservations.put(key, reservation{charged: t.Cost}, after(now, store.MillisOf(t.Reserve)))
		}
	}}
}

// room is a take that is not written.
func (s *Store) room(key limitKey, r store.Room, now int64) outcome {
	level := s.level(key, r.Bucket, now)
	_, kind, wait := level.Take(r.Bucket, r.Cost, 0)
	return outcome{kind, wait, level.Units, func() {}}
}

// level is what a bucket holds now.
func (s *Store) level(key limitKey, b store.Bucket, now int64) store.Level {
	if l, known := s.buckets.get(key, now); known {
		return l.At(b, now)
	}
	return store.Full(b, now)
}

// putLevel keeps a level until it would be full again.
func (s *Store) putLevel(key limitKey, b store.Bucket, l store.Level) {
	if wait := l.Wait(b, b.Burst); wait > 0 {
		s.buckets.put(key, l, after(l.Stamp, wait))
	} else {
		s.buckets.drop(key)
	}
}

// Settle implements store.Store.
func (s *Store) Settle(ctx context.Context, r store.Reservation, actual int64) (balance int64, err error) {
	if err := r.Validate(); err != nil {
		return 0, err
	}
	if err := store.CheckUnits("actual", actual); err != nil {
		return 0, fmt.Errorf("limit[%s] %w", r.Limit, err)
	}
	now, err := s.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer s.mu.Unlock()

	key := reservationKey{limitKey{r.Owner.Key(), r.Limit}, r.ID}
	open, known := s.reservations.get(key, now)
	if !known {
		return 0, fmt.Errorf("limit[%s] %w", r.Limit, store.ErrUnknownID)
	}
	level := s.level(key.limitKey, r.Bucket, now)
	if !open.settled {
		level = level.Add(r.Bucket, open.charged-actual)
		s.putLevel(key.limitKey, r.Bucket, level)
		s.reservations.put(key, reservation{settled: true}, after(now, store.MillisOf(store.Remembered)))
	}
	return level.Units, nil
}

// Balance implements store.Store.
func (s *Store) Balance(ctx context.Context, owner store.Owner, limit string, b store.Bucket) (int64, error) {
	if err := store.CheckBucket(owner, limit, b); err != nil {
		return 0, err
	}
	now, err := s.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	return s.level(limitKey{owner.Key(), limit}, b, now).Units, nil
}

// Refill implements store.Store.
func (s *Store) Refill(ctx context.Context, owner store.Owner, limits ...string) error {
	if err := owner.Validate(); err != nil {
		return err
	}
	if _, err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()

	for _, limit := range limits {
		s.buckets.drop(limitKey{owner.Key(), limit})
	}
	return nil
}
