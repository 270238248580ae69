package fake

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/memory"
)

// Store keeps everything and refills nothing. What it does not do itself goes
// to a store in memory.
type Store struct {
	*memory.Store

	mu       sync.Mutex
	refuse   error
	slow     bool
	calls    int
	balances map[string]int64
	open     map[string]int64 // by reservation: what it charged
	leases   map[string]map[string]bool
	renewed  int
	values   map[string][]byte
	claims   map[string]*claim
	tokens   int64
	records  []store.Record
	counters map[string]int64
}

type claim struct {
	holder string
	token  int64
	result []byte
	done   bool
}

var _ store.Store = (*Store)(nil)

// NewStore makes an empty store.
func NewStore() *Store {
	return &Store{
		Store:    memory.New(nil),
		balances: map[string]int64{}, open: map[string]int64{}, leases: map[string]map[string]bool{},
		values: map[string][]byte{}, claims: map[string]*claim{}, counters: map[string]int64{},
	}
}

// Down takes the store away, or brings it back.
func (s *Store) Down(down bool) {
	var err error
	if down {
		err = fmt.Errorf("%w: connection refused", store.ErrUnavailable)
	}
	s.Refuse(err)
}

// Refuse makes every call fail with err, or with nil no more.
func (s *Store) Refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = err
}

// Slow makes every call last until its context is done.
func (s *Store) Slow(slow bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow = slow
}

// Calls counts the calls that came, also while the store was away.
func (s *Store) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// Renewed counts the calls of Renew.
func (s *Store) Renewed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.renewed
}

// Open counts the reservations that nobody settled.
func (s *Store) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// begin is called by every method, and gives the lock.
func (s *Store) begin(ctx context.Context) (func(), error) {
	s.mu.Lock()
	s.calls++
	refuse, slow := s.refuse, s.slow
	switch {
	case refuse != nil:
		s.mu.Unlock()
		return nil, refuse
	case slow:
		s.mu.Unlock()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.mu.Unlock, nil
}

func key(o store.Owner, name string) string { return fmt.Sprintf("%+v/%s", o, name) }

func (s *Store) balance(o store.Owner, limit string, b store.Bucket) int64 {
	k := key(o, limit)
	if _, known := s.balances[k]; !known {
		s.balances[k] = b.Burst
	}
	return s.balances[k]
}

// Admit implements store.Store.
func (s *Store) Admit(ctx context.Context, a store.Admission) (store.Decision, error) {
	end, err := s.begin(ctx)
	if err != nil {
		return store.Decision{}, err
	}
	defer end()
	kind, item, wait := store.Now, 0, time.Duration(0)
	for i, it := range a.Items {
		k, w := s.try(a.Owner, it)
		if k > kind {
			kind, item, wait = k, i, w
		}
	}
	if kind >= store.Refused {
		return store.Decision{Kind: kind, Item: item, Wait: wait}, nil
	}
	for _, it := range a.Items {
		k := key(a.Owner, it.Limit)
		if it.Take != nil {
			s.balances[k] -= it.Take.Cost
			if it.Take.Reserve > 0 {
				s.open[a.ID+k] = it.Take.Cost
			}
		}
		if it.Acquire != nil {
			if s.leases[k] == nil {
				s.leases[k] = map[string]bool{}
			}
			s.leases[k][it.Acquire.Member] = true
		}
	}
	return store.Decision{Kind: kind, Item: item, Wait: wait}, nil
}

// try decides about one item: a second of waiting is worth a unit.
func (s *Store) try(o store.Owner, it store.Item) (store.Kind, time.Duration) {
	var missing int64
	var patience time.Duration
	switch {
	case it.Take != nil:
		missing, patience = it.Take.Cost-s.balance(o, it.Limit, it.Take.Bucket), it.Take.MaxWait
		if it.Take.Cost > it.Take.Bucket.Burst {
			return store.Never, 0
		}
	case it.Room != nil:
		missing = it.Room.Cost - s.balance(o, it.Limit, it.Room.Bucket)
	case it.Acquire != nil:
		held := s.leases[key(o, it.Limit)]
		if !held[it.Acquire.Member] {
			missing = int64(len(held)) + 1 - it.Acquire.Cap.Max
		}
	}
	wait := time.Duration(missing) * time.Second
	switch {
	case missing <= 0:
		return store.Now, 0
	case wait <= patience:
		return store.Later, wait
	}
	return store.Refused, wait
}

// Settle implements store.Store.
func (s *Store) Settle(ctx context.Context, r store.Reservation, actual int64) (int64, error) {
	end, err := s.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	k := key(r.Owner, r.Limit)
	charged, open := s.open[r.ID+k]
	if !open {
		return 0, store.ErrUnknownID
	}
	delete(s.open, r.ID+k)
	s.balances[k] += charged - actual
	return s.balances[k], nil
}

// Balance implements store.Store.
func (s *Store) Balance(ctx context.Context, o store.Owner, limit string, b store.Bucket) (int64, error) {
	end, err := s.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	return s.balance(o, limit, b), nil
}

// Renew implements store.Store.
func (s *Store) Renew(ctx context.Context, leases []store.Lease) ([]bool, error) {
	end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	s.renewed++
	live := make([]bool, len(leases))
	for i, l := range leases {
		live[i] = s.leases[key(l.Owner, l.Limit)][l.Member]
	}
	return live, nil
}

// Free implements store.Store.
func (s *Store) Free(ctx context.Context, l store.Lease) (bool, error) {
	end, err := s.begin(ctx)
	if err != nil {
		return false, err
	}
	defer end()
	held := s.leases[key(l.Owner, l.Limit)]
	defer delete(held, l.Member)
	return held[l.Member], nil
}

// Held implements store.Store.
func (s *Store) Held(ctx context.Context, o store.Owner, limit string) (int64, error) {
	end, err := s.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	return int64(len(s.leases[key(o, limit)])), nil
}

// Claim implements store.Store.
func (s *Store) Claim(ctx context.Context, k store.ClaimKey, holder string, _ time.Duration) (store.Claim, error) {
	end, err := s.begin(ctx)
	if err != nil {
		return store.Claim{}, err
	}
	defer end()
	id := key(k.Owner, k.Name+"/"+k.Key)
	c := s.claims[id]
	switch {
	case c == nil || c.holder == "":
		s.tokens++
		s.claims[id] = &claim{holder: holder, token: s.tokens}
		return store.Claim{State: store.Claimed, Token: s.tokens}, nil
	case c.done:
		return store.Claim{State: store.Completed, Result: c.result}, nil
	}
	return store.Claim{State: store.HeldElsewhere, Holder: c.holder}, nil
}

func (s *Store) fenced(k store.ClaimKey, token int64) (*claim, error) {
	c := s.claims[key(k.Owner, k.Name+"/"+k.Key)]
	if c == nil || c.done || c.token != token {
		return nil, store.ErrFenced
	}
	return c, nil
}

// RenewClaim implements store.Store.
func (s *Store) RenewClaim(ctx context.Context, k store.ClaimKey, token int64, _ time.Duration) error {
	end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	_, err = s.fenced(k, token)
	return err
}

// EndClaim implements store.Store.
func (s *Store) EndClaim(ctx context.Context, k store.ClaimKey, token int64, result []byte, _ time.Duration) error {
	end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	c, err := s.fenced(k, token)
	if err != nil {
		return err
	}
	if c.result, c.done = result, result != nil; !c.done {
		c.holder = ""
	}
	return nil
}

// ClaimResult implements store.Store.
func (s *Store) ClaimResult(ctx context.Context, k store.ClaimKey) ([]byte, bool, error) {
	end, err := s.begin(ctx)
	if err != nil {
		return nil, false, err
	}
	defer end()
	c := s.claims[key(k.Owner, k.Name+"/"+k.Key)]
	if c == nil || !c.done {
		return nil, false, nil
	}
	return c.result, true, nil
}

// GetValue implements store.Store.
func (s *Store) GetValue(ctx context.Context, k store.ValueKey) ([]byte, bool, error) {
	end, err := s.begin(ctx)
	if err != nil {
		return nil, false, err
	}
	defer end()
	v, found := s.values[key(k.Owner, k.Name+"/"+k.Key)]
	return v, found, nil
}

// PutValue implements store.Store.
func (s *Store) PutValue(ctx context.Context, k store.ValueKey, value []byte, _ time.Duration) error {
	end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	s.values[key(k.Owner, k.Name+"/"+k.Key)] = value
	return nil
}

// Record implements store.Store.
func (s *Store) Record(ctx context.Context, r store.Record) (bool, error) {
	end, err := s.begin(ctx)
	if err != nil {
		return false, err
	}
	defer end()
	for _, have := range s.records {
		if have.ID == r.ID {
			return false, nil
		}
	}
	s.records = append(s.records, r)
	return true, nil
}

// Records implements store.Store: all of them, whoever asks.
func (s *Store) Records(ctx context.Context, _ store.Owner) ([]store.Record, error) {
	end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	return append([]store.Record{}, s.records...), nil
}

// AddCounter implements store.Store.
func (s *Store) AddCounter(ctx context.Context, o store.Owner, name, _ string, delta int64) (int64, error) {
	end, err := s.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	s.counters[key(o, name)] += delta
	return s.counters[key(o, name)], nil
}

// Counter implements store.Store.
func (s *Store) Counter(ctx context.Context, o store.Owner, name string) (int64, error) {
	end, err := s.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	return s.counters[key(o, name)], nil
}

// Close implements store.Store.
func (s *Store) Close(context.Context) error { return nil }
