package hostfn_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/store"
	inmemory "github.com/hookhost/hookhost/store/memory"
)

// alone is one of so many processes that have lost their store.
func alone(t *testing.T, processes int64, limit hostfn.Limit) *bench {
	b := newBench(t, "limit:tokens")
	b.plans["tokens"] = limit
	b.stage.Local = true
	b.services.Local = inmemory.New(nil)
	b.services.Replicas = func() int64 { return processes }
	b.store.Down(true)
	return b
}

func TestAShareHoldsTheOneCallThatIsAskedFor(t *testing.T) {
	pro := hostfn.Limit{
		Plan: "pro", Bucket: &store.Bucket{Units: 60_000, Per: time.Minute, Burst: 60_000},
		Estimate: hostfn.Estimate{By: hostfn.Fixed, Units: 6000}, TurnEstimate: 9000,
	}
	for processes, calls := range map[int64]int{1: 10, 2: 5, 10: 1, 20: 1, 100_000: 1} {
		synctest.Test(t, func(t *testing.T) {
			b := alone(t, processes, pro)
			require.Equal(t, abi.Admitted, b.admit(b.call(), "tokens").kind, "there is room for a turn")
			n := 0
			for b.take(b.call(), "tokens", abi.EstimateOfPlan).kind == abi.Admitted {
				n++
			}
			assert.Equal(t, calls, n, "of %d processes", processes)
			assert.Equal(t, abi.Denied, b.take(b.call(), "tokens", abi.EstimateOfPlan).kind, "later it fits again")
		})
	}
	b := alone(t, 20, pro)
	assert.Equal(t, abi.Admitted, b.take(b.call(), "tokens", 60_000).kind)
	b = alone(t, 20, pro)
	assert.Equal(t, abi.NeverFits, b.take(b.call(), "tokens", 60_001).kind, "what no process would let through")
}

func TestAShareOfARateDoesNotDependOnHowItIsWritten(t *testing.T) {
	for _, rate := range []store.Bucket{
		{Units: 60, Per: time.Minute, Burst: 60},
		{Units: 1, Per: time.Second, Burst: 60},
		{Units: 86_400, Per: 24 * time.Hour, Burst: 60},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := alone(t, 20, hostfn.Limit{Plan: "pro", Bucket: &rate})
			granted := 0
			for range 600 {
				if b.take(b.call(), "tokens", 1).kind == abi.Admitted {
					granted++
				}
				time.Sleep(time.Second)
			}
			assert.InDelta(t, 60/20+600/20, granted, 1, "%d in %s", rate.Units, rate.Per)
		})
	}
}

func TestAShareOfAnyRateIsOneThatABucketCanHave(t *testing.T) {
	for name, rate := range map[string]store.Bucket{
		"the product is the greatest": {Units: 1<<53 - 1, Per: time.Millisecond, Burst: store.MaxUnits},
		"half of each":                {Units: 1<<26 + 1, Per: (1 << 26) * time.Millisecond, Burst: 10},
		"few units in a long time":    {Units: 3, Per: math.MaxInt64 / time.Millisecond / 2 * time.Millisecond, Burst: 10},
		"the slowest":                 {Units: 1, Per: math.MaxInt64 / time.Millisecond * time.Millisecond, Burst: 10},
	} {
		for _, processes := range []int64{1, 2, 7, 1000, 1_000_000_000} {
			require.NoError(t, rate.Validate(), name)
			b := alone(t, processes, hostfn.Limit{Plan: "pro", Bucket: &rate})
			assert.Equal(t, abi.Admitted, b.take(b.call(), "tokens", 1).kind, "%s, %d processes", name, processes)
		}
	}
}
