// Package memory is the store inside one process: exact, on an injected clock,
// without a goroutine. What expires is swept by the calls that follow.
package memory

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/hookhost/hookhost/store"
)

// What is kept at most; beyond it the oldest goes first.
const (
	MaxRemembered = 100_000             // operations whose repetition is recognised, of each kind
	MaxRecords    = 65_536              // usage records
	MaxCounters   = 100_000             // counters
	CounterLife   = 31 * 24 * time.Hour // of a counter that nothing is added to
	MaxActive     = 10_000              // users whose activity is known
	MaxAverages   = 10_000              // averages
)

// Clock tells the time.
type Clock interface{ Now() time.Time }

// Store implements store.Store.
type Store struct {
	clock Clock

	mu     sync.Mutex
	closed bool
	state
}

type state struct {
	decisions    *table[operationKey, store.Decision]
	buckets      *table[limitKey, store.Level] // a missing one is full
	reservations *table[reservationKey, reservation]
	leases       *table[limitKey, *members]
	claims       *table[store.ClaimKey, claim]
	token        int64 // the last one given to any claim
	values       *table[store.ValueKey, []byte]
	usage        *ledger
	counters     *table[counterKey, int64]
	additions    *table[additionKey, struct{}]
	activity     *table[store.Owner, *activity]
	overrides    overrides
	averages     *table[averageKey, store.Average]
	learned      *table[string, []int64]
}

var _ store.Store = (*Store)(nil)

type (
	operationKey struct {
		owner store.Owner
		id    string
	}
	limitKey struct {
		owner store.Owner
		limit string
	}
	reservationKey struct {
		limitKey
		id string
	}
)

// New makes an empty store. Without a clock it goes by the machine's.
func New(clock Clock) *Store {
	if clock == nil {
		clock = machineClock{}
	}
	return &Store{clock: clock, state: newState()}
}

func newState() state {
	return state{
		decisions:    newTable[operationKey, store.Decision](MaxRemembered),
		buckets:      newTable[limitKey, store.Level](0),
		reservations: newTable[reservationKey, reservation](0),
		leases:       newTable[limitKey, *members](0),
		claims:       newTable[store.ClaimKey, claim](0),
		values:       newTable[store.ValueKey, []byte](0),
		usage:        newLedger(MaxRecords),
		counters:     newTable[counterKey, int64](MaxCounters),
		additions:    newTable[additionKey, struct{}](MaxRemembered),
		activity:     newTable[store.Owner, *activity](MaxActive),
		overrides:    newOverrides(),
		averages:     newTable[averageKey, store.Average](MaxAverages),
		learned:      newTable[string, []int64](MaxRemembered),
	}
}

type machineClock struct{}

func (machineClock) Now() time.Time { return time.Now() }

var errClosed = errors.New("closed")

// lock begins an operation: it gives the time in milliseconds, with the store
// locked and a little of what has expired swept away.
func (s *Store) lock(ctx context.Context) (now int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("memory: %w: %w", store.ErrUnavailable, err)
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return 0, fmt.Errorf("memory: %w: %w", store.ErrUnavailable, errClosed)
	}
	now = s.clock.Now().UnixMilli()
	s.sweep(now)
	return now, nil
}

func (s *Store) sweep(now int64) {
	const most = 64 // of each kind; more than any call adds
	s.decisions.sweep(now, most)
	s.buckets.sweep(now, most)
	s.reservations.sweep(now, most)
	s.leases.sweep(now, most)
	s.claims.sweep(now, most)
	s.values.sweep(now, most)
	s.counters.sweep(now, most)
	s.additions.sweep(now, most)
	s.activity.sweep(now, most)
	s.averages.sweep(now, most)
	s.learned.sweep(now, most)
}

// Close forgets everything. What is called after it is ErrUnavailable.
func (s *Store) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.state = true, newState()
	return nil
}

// after is a time so many milliseconds after another, or the end of time.
func after(t, ms int64) int64 {
	if t > 0 && ms > math.MaxInt64-t {
		return math.MaxInt64
	}
	return t + ms
}
