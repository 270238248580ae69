package wasm

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/chain"
)

func TestAStageThatOnlyCrashesRests(t *testing.T) {
	b := newBench(t, "trap_then_next").loads()
	for range crashBudget {
		_, err := b.call("boom")
		requireCause(t, chain.CauseTrap, err)
		require.NotErrorIs(t, err, ErrResting)
	}
	_, err := b.call("good")
	requireCause(t, chain.CauseTrap, err)
	require.ErrorIs(t, err, ErrResting, "not tried")
	assert.Contains(t, b.log.String(), "does nothing but crash")

	time.Sleep(restFor)
	_, err = b.call("boom")
	require.NotErrorIs(t, err, ErrResting, "one call is tried")
	_, err = b.call("good")
	require.ErrorIs(t, err, ErrResting, "which crashed")

	time.Sleep(restFor)
	for range 3 {
		_, err = b.call("good")
		require.NoError(t, err)
	}
}

func TestRestGoesByCrashesInARow(t *testing.T) {
	crash := &chain.Failure{Cause: chain.CauseDeadline, Err: context.DeadlineExceeded}
	for name, tt := range map[string]struct {
		between error
		rests   bool
	}{
		"a call that ran":            {nil, false},
		"a stage that cannot tell":   {&chain.Failure{Cause: chain.CauseFail}, false},
		"a caller who went away":     {&chain.Failure{Cause: chain.CauseCancelled}, true},
		"a call without an instance": {&chain.Failure{Cause: chain.CausePoolFull}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rested := 0
				r := newRest(func(last *chain.Failure) { rested++; assert.Equal(t, crash, last) })
				ends := func(err error) {
					end, refused := r.begin()
					require.NoError(t, refused)
					end(err)
				}
				for range crashBudget - 1 {
					ends(crash)
				}
				ends(tt.between)
				ends(crash)
				_, err := r.begin()
				assert.Equal(t, tt.rests, err != nil)
				if tt.rests {
					requireCause(t, chain.CauseDeadline, err)
					assert.Equal(t, 1, rested)
					time.Sleep(restFor + time.Millisecond)
					ends(nil)
					ends(crash)
				}
			})
		})
	}
}
