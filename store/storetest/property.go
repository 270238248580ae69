package storetest

import (
	"fmt"
	"math/big"
	"os"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hookhost/hookhost/store"
)

// Checks is how often rapid is to make a hundred sequences: usually n times,
// or as HOOKHOST_TEST_CHECKS says.
func Checks(t require.TestingT, n int) int {
	if set := os.Getenv("HOOKHOST_TEST_CHECKS"); set != "" {
		var err error
		n, err = strconv.Atoi(set)
		require.NoError(t, err, "HOOKHOST_TEST_CHECKS")
	}
	return n
}

// modelRules hold an engine to the model over random sequences.
var modelRules = []rule{
	{"model/takes, settlements, plan changes and clock steps agree with rationals", func(w *world) {
		for range Checks(w, 100) {
			rapid.Check(w.t, func(t *rapid.T) { newSequence(t, w.failing(t)).run() })
		}
	}},
}

// sequence is what happens to one bucket of a user of its own.
type sequence struct {
	*rapid.T
	w     *world
	owner store.Owner
	plans []store.Bucket
	open  map[string]int64 // charges by reservation
	order []string         // of the open reservations
	model Model
}

func newSequence(t *rapid.T, w *world) *sequence {
	w.at(0)
	return &sequence{
		T: t, w: w, owner: user("model", w.id()), open: map[string]int64{},
		plans: rapid.SliceOfN(rapid.Custom(drawBucket), 1, 3).Draw(t, "plans"),
	}
}

// units prefers numbers on which arithmetic breaks.
func units(least int64) *rapid.Generator[int64] {
	return rapid.OneOf(
		rapid.Int64Range(least, 20),
		rapid.Int64Range(least, 100_000),
		rapid.Int64Range(least, store.MaxUnits),
		rapid.Int64Range(store.MaxUnits-3, store.MaxUnits),
	)
}

func drawBucket(t *rapid.T) store.Bucket {
	per := rapid.OneOf(rapid.Int64Range(1, 20), rapid.SampledFrom([]int64{1000, 60_000, 3_600_000, 86_400_000}), rapid.Int64Range(1, 90_000_000)).Draw(t, "per")
	n := rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, 100_000), rapid.Int64Range(1, (1<<53)/per), rapid.Just((1<<53)/per)).Draw(t, "units")
	return store.Bucket{Units: n, Per: store.Millis(per), Burst: units(1).Draw(t, "burst")}
}

func (s *sequence) run() {
	for range rapid.IntRange(1, 25).Draw(s.T, "steps") {
		s.moveClock()
		b := rapid.SampledFrom(s.plans).Draw(s.T, "plan")
		switch op := rapid.SampledFrom([]string{"take", "take", "take", "settle", "give back", "balance"}).Draw(s.T, "op"); {
		case op == "take":
			s.take(b)
		case op == "settle" && len(s.order) > 0:
			s.settle(b, units(0).Draw(s.T, "actual"))
		case op == "give back" && len(s.order) > 0:
			s.settle(b, 0)
		}
		s.agree(s.model.Balance(b, s.now()), s.w.balance(s.owner, "limit", b))
	}
}

// moveClock goes forward by a little or by much, or back.
func (s *sequence) moveClock() {
	ms := rapid.OneOf(
		rapid.Just(int64(0)),
		rapid.Int64Range(0, 20),
		rapid.Int64Range(0, 100_000),
		rapid.Int64Range(0, 31_536_000_000),
		rapid.Int64Range(-100_000, 0),
	).Draw(s.T, "clock")
	s.w.clock.Advance(time.Duration(ms) * time.Millisecond)
}

func (s *sequence) now() int64 { return s.w.clock.Now().UnixMilli() }

func (s *sequence) take(b store.Bucket) {
	// Costs at the very edge of what the bucket holds are the telling ones.
	edge := s.model.Balance(b, s.now()).Int64() + rapid.Int64Range(-1, 1).Draw(s.T, "off")
	cost := rapid.OneOf(units(0), rapid.Just(min(max(edge, 0), store.MaxUnits))).Draw(s.T, "cost")
	maxWait := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 10_000), rapid.Int64Range(0, 9_000_000_000_000)).Draw(s.T, "max wait")
	options := []func(*store.Take){within(store.Millis(maxWait))}
	if rapid.Bool().Draw(s.T, "reserve") {
		options = append(options, reserved(100*365*24*time.Hour))
	}
	item, id := take("limit", b, cost, options...), s.w.id()

	kind, wait, balance := s.model.Take(b, cost, maxWait, s.now())
	got := s.w.admitAs(id, s.owner, item)
	require.Equal(s.T, kind, got.Kind)
	s.agree(balance, got.Balance)
	require.Equal(s.T, saturated(wait), got.Wait)
	require.Equal(s.T, got, s.w.admitAs(id, s.owner, item), "repeated")
	if item.Take.Reserve > 0 && (kind == store.Now || kind == store.Later) {
		s.open[id] = cost
		s.order = append(s.order, id)
	}
}

func (s *sequence) settle(b store.Bucket, actual int64) {
	i := rapid.IntRange(0, len(s.order)-1).Draw(s.T, "which")
	id := s.order[i]
	s.order = append(s.order[:i], s.order[i+1:]...)
	want := s.model.Correct(b, s.open[id]-actual, s.now())
	s.agree(want, s.w.settle(id, s.owner, "limit", b, actual))
	s.agree(want, s.w.settle(id, s.owner, "limit", b, store.MaxUnits-actual)) // repeated
}

func (s *sequence) agree(want *big.Int, got int64) {
	s.Helper()
	require.Equal(s.T, want.String(), fmt.Sprint(got))
}

func saturated(ms *big.Int) time.Duration {
	if !ms.IsInt64() {
		return store.Millis(1<<63 - 1)
	}
	return store.Millis(ms.Int64())
}
