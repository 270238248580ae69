package memory

import (
	"context"
	"slices"

	"github.com/hookhost/hookhost/store"
)

// members are the holders of one lease limit, each with its own expiry.
type members struct {
	*table[string, struct{}]
	last int64 // no lease is longer
}

// live finds the members that hold a lease now.
func (s *Store) live(key limitKey, now int64) *members {
	held, known := s.leases.get(key, now)
	if !known {
		return &members{table: newTable[string, struct{}](0)}
	}
	held.sweep(now, held.len())
	return held
}

// hold gives a member a lease, or a new expiry to the one it has.
func (s *Store) hold(key limitKey, held *members, member string, expires int64) {
	held.put(member, struct{}{}, expires)
	held.last = max(held.last, expires)
	s.leases.put(key, held, held.last)
}

func (s *Store) acquire(key limitKey, a store.Acquire, now int64) outcome {
	held := s.live(key, now)
	_, has := held.get(a.Member, now)
	if over := int64(held.len()) - a.Cap.Max; !has && over >= 0 {
		return outcome{kind: store.Refused, wait: held.lapseOf(int(over)) - now}
	}
	return outcome{kind: store.Now, write: func() {
		s.hold(key, held, a.Member, after(now, store.MillisOf(a.Cap.Expires)))
	}}
}

// lapseOf is when the lease ends before which n others end. Under a cap that
// was lowered more than one must end before there is room.
func (m *members) lapseOf(n int) int64 {
	if n == 0 {
		return m.queue[0].expires
	}
	lapses := make([]int64, 0, m.len())
	for _, e := range m.queue {
		lapses = append(lapses, e.expires)
	}
	slices.Sort(lapses)
	return lapses[n]
}

// Renew implements store.Store.
func (s *Store) Renew(ctx context.Context, leases []store.Lease) ([]bool, error) {
	for _, l := range leases {
		if err := l.Validate(); err != nil {
			return nil, err
		}
	}
	now, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()

	renewed := make([]bool, len(leases))
	for i, l := range leases {
		key := limitKey{l.Owner.Key(), l.Limit}
		held := s.live(key, now)
		if _, renewed[i] = held.get(l.Member, now); renewed[i] {
			s.hold(key, held, l.Member, after(now, store.MillisOf(l.Cap.Expires)))
		}
	}
	return renewed, nil
}

// Free implements store.Store.
func (s *Store) Free(ctx context.Context, l store.Lease) (held bool, err error) {
	if err := l.Validate(); err != nil {
		return false, err
	}
	now, err := s.lock(ctx)
	if err != nil {
		return false, err
	}
	defer s.mu.Unlock()

	key := limitKey{l.Owner.Key(), l.Limit}
	live := s.live(key, now)
	_, held = live.get(l.Member, now)
	live.drop(l.Member)
	if live.len() == 0 {
		s.leases.drop(key)
	}
	return held, nil
}

// Held implements store.Store.
func (s *Store) Held(ctx context.Context, owner store.Owner, limit string) (int64, error) {
	if err := owner.Validate(); err != nil {
		return 0, err
	}
	now, err := s.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	return int64(s.live(limitKey{owner.Key(), limit}, now).len()), nil
}
