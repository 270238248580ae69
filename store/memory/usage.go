package memory

import (
	"context"
	"fmt"

	"github.com/hookhost/hookhost/store"
)

// ledger keeps the newest usage records, at most max, in a ring.
type ledger struct {
	max     int
	ring    []store.Record
	oldest  int
	known   map[string]bool
	dropped int64
}

func newLedger(max int) *ledger { return &ledger{max: max, known: map[string]bool{}} }

func (l *ledger) add(r store.Record) {
	l.known[r.ID] = true
	if len(l.ring) < l.max {
		l.ring = append(l.ring, r)
		return
	}
	delete(l.known, l.ring[l.oldest].ID)
	l.ring[l.oldest] = r
	l.oldest = (l.oldest + 1) % l.max
	l.dropped++
}

// Record implements store.Usage.
func (s *Store) Record(ctx context.Context, r store.Record) (fresh bool, err error) {
	if err := r.Validate(); err != nil {
		return false, err
	}
	now, err := s.lock(ctx)
	if err != nil {
		return false, err
	}
	defer s.mu.Unlock()

	if s.usage.known[r.ID] {
		return false, nil
	}
	r.Tokens = r.Tokens.Clone()
	s.usage.add(r)
	s.count(r, now)
	return true, nil
}

// Records implements store.Usage. The owner's shadow is of no account: a
// record is of a model call, which is real whoever watched it.
func (s *Store) Records(ctx context.Context, owner store.Owner) ([]store.Record, error) {
	if err := owner.Validate(); err != nil {
		return nil, err
	}
	if _, err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()

	var records []store.Record
	for i := range s.usage.ring {
		r := s.usage.ring[(s.usage.oldest+i)%len(s.usage.ring)]
		if r.Of(owner) {
			r.Tokens = r.Tokens.Clone()
			records = append(records, r)
		}
	}
	return records, nil
}

// Dropped counts the usage records that gave way to newer ones.
func (s *Store) Dropped() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage.dropped
}

type (
	counterKey struct {
		owner store.Owner
		name  string
	}
	additionKey struct {
		counterKey
		id string
	}
)

// AddCounter implements store.Usage.
func (s *Store) AddCounter(ctx context.Context, owner store.Owner, name, id string, delta int64) (int64, error) {
	if err := store.CheckAddition(owner, name, id, delta); err != nil {
		return 0, err
	}
	now, err := s.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer s.mu.Unlock()

	key := counterKey{owner.Key(), name}
	sum, _ := s.counters.get(key, now)
	if _, repeated := s.additions.get(additionKey{key, id}, now); repeated {
		return sum, nil
	}
	if wrapped := sum+delta < sum; wrapped != (delta < 0) {
		return 0, fmt.Errorf("counter[%s] sum: %w", name, store.ErrBadNumber)
	}
	sum += delta
	s.counters.put(key, sum, after(now, store.MillisOf(CounterLife)))
	s.additions.put(additionKey{key, id}, struct{}{}, after(now, store.MillisOf(store.Remembered)))
	return sum, nil
}

// Counter implements store.Usage.
func (s *Store) Counter(ctx context.Context, owner store.Owner, name string) (int64, error) {
	if err := owner.Validate(); err != nil {
		return 0, err
	}
	now, err := s.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer s.mu.Unlock()

	sum, _ := s.counters.get(counterKey{owner.Key(), name}, now)
	return sum, nil
}
