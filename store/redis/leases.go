package redis

import (
	"context"

	"github.com/hookhost/hookhost/store"
)

// Renew implements store.Store: with one call for each set of leases, all in
// pipelines.
func (s *Store) Renew(ctx context.Context, leases []store.Lease) ([]bool, error) {
	for _, l := range leases {
		if err := l.Validate(); err != nil {
			return nil, err
		}
	}
	type set struct {
		*call
		leases []int
	}
	sets := map[string]*set{}
	var calls []*call
	for i, l := range leases {
		key := s.owned(l.Owner).leases(l.Limit)
		its := sets[key]
		if its == nil {
			its = &set{call: s.call("renew", []string{key})}
			sets[key], calls = its, append(calls, its.call)
		}
		its.args = append(its.args, l.Member, store.MillisOf(l.Cap.Expires))
		its.leases = append(its.leases, i)
	}
	if err := s.do(ctx, calls...); err != nil {
		return nil, err
	}
	held := make([]bool, len(leases))
	for _, its := range sets {
		reply, err := its.result()
		if err != nil {
			return nil, err
		}
		for _, i := range its.leases {
			held[i] = reply.yes()
		}
		if err := reply.end(); err != nil {
			return nil, err
		}
	}
	return held, nil
}

// Free implements store.Store.
func (s *Store) Free(ctx context.Context, l store.Lease) (held bool, err error) {
	if err := l.Validate(); err != nil {
		return false, err
	}
	owner := s.owned(l.Owner)
	reply, err := s.ask(ctx, "free", []string{owner.leases(l.Limit), owner.call(nonce())}, l.Member, remembered)
	if err != nil {
		return false, err
	}
	held = reply.yes()
	return held, reply.end()
}

// Held implements store.Store.
func (s *Store) Held(ctx context.Context, owner store.Owner, limit string) (int64, error) {
	if err := owner.Validate(); err != nil {
		return 0, err
	}
	reply, err := s.ask(ctx, "held", []string{s.owned(owner).leases(limit)})
	if err != nil {
		return 0, err
	}
	held := reply.between(0, 1<<53)
	return held, reply.end()
}
