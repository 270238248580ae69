package hostfn_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/store"
)

func TestAdmitAsksForAllOrNothing(t *testing.T) {
	b := newBench(t, "limit:turn", "limit:tokens", "limit:runs").at(abi.BeforeRun)
	c := b.call()
	d := b.admit(c, "turn\ntokens\nruns")
	assert.Equal(t, abi.Admitted, d.kind)
	assert.NotZero(t, d.id)
	assert.EqualValues(t, 4, b.balance(b.store, user, "turn"))
	assert.EqualValues(t, 1000, b.balance(b.store, user, "tokens"), "room, and no charge")
	assert.EqualValues(t, 1, b.held(user, "runs"))

	require.Equal(t, abi.Admitted, b.take(c, "tokens", 600).kind)
	d = b.admit(c, "turn\ntokens\nruns")
	assert.Equal(t, decision{kind: abi.Denied, limit: 1, wait: 100_000}, d)
	assert.EqualValues(t, 4, b.balance(b.store, user, "turn"), "nothing charged")
}

func TestALimitThatIsNotDefinedDoesNotLimit(t *testing.T) {
	b := newBench(t, "limit:other", "limit:turn")
	assert.Equal(t, decision{}, b.admit(b.call(), "other"))
	assert.Equal(t, decision{}, b.take(b.call(), "other", 1))
	assert.Zero(t, b.store.Calls())
}

func TestOnlyGrantedLimits(t *testing.T) {
	b := newBench(t, "limit:turn")
	c, out := b.call(), make([]byte, abi.DecisionSize)
	assert.EqualValues(t, abi.NotGranted, c.LimitAdmit("turn\nruns", out))
	assert.EqualValues(t, abi.NotGranted, c.LimitTake("turn:app", 1, out), "a wider scope is another grant")
	assert.EqualValues(t, abi.BadArgument, c.LimitTake("turn:planet", 1, out))
	assert.EqualValues(t, abi.BadArgument, c.LimitTake("", 1, out))
	assert.EqualValues(t, abi.BadArgument, c.LimitTake("turn", -2, out))
	assert.EqualValues(t, abi.BadArgument, c.LimitTake("turn", store.MaxUnits+1, out))
	assert.EqualValues(t, abi.BadArgument, c.LimitTake("turn", 1, out[1:]), "no room for the decision")
	assert.EqualValues(t, abi.NotGranted, newBench(t).call().LimitSettle(1, 1))
	assert.Zero(t, b.store.Calls())
}

func TestTakeSettlesOnce(t *testing.T) {
	b := newBench(t, "limit:tokens")
	c := b.call()
	d := b.take(c, "tokens", abi.EstimateOfPlan)
	assert.EqualValues(t, 400, b.balance(b.store, user, "tokens"))
	assert.Equal(t, 1, b.op.Owned())

	assert.EqualValues(t, abi.BadArgument, c.LimitSettle(d.id, -1))
	assert.EqualValues(t, abi.NotFound, c.LimitSettle(d.id+1, 10))
	assert.EqualValues(t, abi.NotFound, b.callAs(&hostfn.Stage{Name: "other", Grants: b.stage.Grants}).LimitSettle(d.id, 10), "another stage's")
	require.EqualValues(t, abi.OK, b.at(abi.AfterModel).call().LimitSettle(d.id, 50))
	assert.EqualValues(t, 950, b.balance(b.store, user, "tokens"))
	assert.Zero(t, b.op.Owned())
	assert.EqualValues(t, abi.NotFound, c.LimitSettle(d.id, 50))
	b.op.End(abi.Ending{Reason: abi.ReasonError})
	assert.EqualValues(t, 950, b.balance(b.store, user, "tokens"))
}

func TestTakeWaitsOrIsDeniedByThePlan(t *testing.T) {
	b := newBench(t, "limit:tokens")
	c := b.call()
	b.take(c, "tokens", 900)
	d := b.take(c, "tokens", 300)
	assert.Equal(t, abi.Delayed, d.kind)
	assert.EqualValues(t, 200_000, d.wait)
	assert.NotZero(t, d.id, "charged, to be used after the wait")
	assert.Equal(t, decision{kind: abi.Denied, wait: 700_000}, b.take(c, "tokens", 500))
	assert.Equal(t, decision{kind: abi.NeverFits}, b.take(c, "tokens", 1001))
	assert.Equal(t, 2, b.store.Open())
}

func TestWhatAReservationBecomes(t *testing.T) {
	usage := abi.Usage{Mask: abi.HasTotal, Total: 70}
	for name, tt := range map[string]struct {
		ending  abi.Ending
		balance int64
	}{
		"answered":                  {abi.Ending{Reason: abi.ReasonAnswered}, 1000},
		"answered from a cache":     {abi.Ending{Reason: abi.ReasonAnswered, Usage: usage}, 1000},
		"refused":                   {abi.Ending{Reason: abi.ReasonRefused}, 1000},
		"an error":                  {abi.Ending{Reason: abi.ReasonError}, 1000},
		"an error with usage":       {abi.Ending{Reason: abi.ReasonError, Usage: usage}, 930},
		"cancelled":                 {abi.Ending{Reason: abi.ReasonCancelled}, 400},
		"cancelled before it began": {abi.Ending{Reason: abi.ReasonCancelled, NotBegun: true}, 1000},
		"cancelled after a chunk":   {abi.Ending{Reason: abi.ReasonCancelled, Usage: usage}, 930},
		"ended":                     {abi.Ending{Reason: abi.ReasonEnded}, 400},
		"done":                      {abi.Ending{Reason: abi.ReasonDone}, 400},
		"done with usage":           {abi.Ending{Reason: abi.ReasonDone, Usage: usage}, 930},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "limit:tokens")
			b.take(b.call(), "tokens", abi.EstimateOfPlan)
			b.op.End(tt.ending)
			assert.Equal(t, tt.balance, b.balance(b.store, user, "tokens"))
		})
	}
}

func TestUsageDoesNotSettleWhatCountsNoTokens(t *testing.T) {
	b := newBench(t, "limit:turn")
	b.take(b.call(), "turn", 1)
	b.op.End(abi.Ending{Reason: abi.ReasonDone, Usage: abi.Usage{Mask: abi.HasTotal, Total: 70}})
	assert.EqualValues(t, 4, b.balance(b.store, user, "turn"))
}

func TestReleaseGivesBack(t *testing.T) {
	b := newBench(t, "limit:tokens", "limit:runs")
	c := b.call()
	tokens, lease := b.take(c, "tokens", 300), b.take(c, "runs", 1)
	assert.EqualValues(t, abi.WrongType, c.LimitSettle(lease.id, 1), "a lease has nothing to settle")
	require.EqualValues(t, abi.OK, c.LimitRelease(tokens.id))
	require.EqualValues(t, abi.OK, c.LimitRelease(lease.id))
	assert.EqualValues(t, 1000, b.balance(b.store, user, "tokens"))
	assert.Zero(t, b.held(user, "runs"))
	assert.Zero(t, b.services.Leases.Held())
	assert.Zero(t, b.op.Owned()+b.run.Owned())
}

func TestALeaseIsTheRuns(t *testing.T) {
	b := newBench(t, "limit:runs")
	other := &hostfn.Stage{Name: "other", Grants: b.stage.Grants}
	mine := b.take(b.call(), "runs", 1)
	b.take(b.callAs(other), "runs", 1)
	assert.EqualValues(t, 1, b.held(user, "runs"), "a member that holds one keeps it")
	b.op.End(abi.Ending{Reason: abi.ReasonDone})
	require.EqualValues(t, abi.OK, b.call().LimitRelease(mine.id))
	assert.EqualValues(t, 1, b.held(user, "runs"), "the other stage still has it")
	b.run.End(abi.Ending{Reason: abi.ReasonCancelled})
	assert.Zero(t, b.held(user, "runs"))
	assert.Zero(t, b.services.Leases.Held())
}

func TestWiderOwnersAreAskedLastAndUndone(t *testing.T) {
	b := newBench(t, "limit:turn", "limit:runs", "limit:calls:app")
	app := store.Owner{Kind: store.OwnerApp, App: "app"}
	for range 3 {
		require.Equal(t, abi.Admitted, b.admit(b.call(), "calls:app\nturn").kind)
	}
	assert.EqualValues(t, 0, b.balance(b.store, app, "calls"))
	assert.EqualValues(t, 2, b.balance(b.store, user, "turn"))
	d := b.admit(b.call(), "calls:app\nturn\nruns")
	assert.Equal(t, decision{kind: abi.Denied, limit: 0, wait: 1000}, d)
	assert.EqualValues(t, 2, b.balance(b.store, user, "turn"), "the user's was given back")
	assert.Zero(t, b.held(user, "runs"))
	b.run.End(abi.Ending{Reason: abi.ReasonRefused})
	assert.EqualValues(t, 2, b.balance(b.store, user, "turn"), "what was granted is charged for good")
}

func TestAStageInShadowHasAKeySpaceOfItsOwn(t *testing.T) {
	b := newBench(t, "limit:turn")
	b.stage.Shadow = true
	c := b.call()
	for range 5 {
		require.Equal(t, abi.Admitted, b.admit(c, "turn").kind)
	}
	d := b.admit(c, "turn")
	assert.Equal(t, abi.Denied, d.kind, "the guest is told the truth: its verdict is dropped")
	assert.EqualValues(t, 5, b.balance(b.store, user, "turn"))
	v, err := c.Verdict(abi.Continue, 0)
	require.NoError(t, err)
	assert.Equal(t, abi.Note{Key: "shadow.limit.turn", Value: "denied 1000 ms"}, v.Notes[5])
}

func TestAPlanInShadowSaysNo(t *testing.T) {
	b := newBench(t, "limit:turn", "limit:runs")
	turn := b.plans["turn"]
	turn.Shadow, turn.Bucket = true, bucket(1)
	b.plans["turn"] = turn
	c := b.call()
	require.Equal(t, abi.Admitted, b.admit(c, "turn\nruns").kind)
	d := b.admit(c, "turn\nruns")
	assert.Equal(t, abi.Admitted, d.kind, "only in the trace")
	assert.Zero(t, d.wait)
	v, err := c.Verdict(abi.Continue, 0)
	require.NoError(t, err)
	assert.Contains(t, v.Notes, abi.Note{Key: "shadow.limit.turn", Value: "denied 1000 ms"})
	assert.EqualValues(t, 1, b.balance(b.store, user, "turn"), "the real bucket is whole")
	assert.EqualValues(t, 1, b.held(user, "runs"), "a limit of another plan is real")
	b.store.Down(true)
	assert.Equal(t, abi.Admitted, b.admit(c, "turn").kind, "a plan in shadow is never in the way")
	assert.False(t, c.StoreAway())
}

func TestStoreThatIsAwayIsACode(t *testing.T) {
	b := newBench(t, "limit:turn", "limit:tokens")
	c, out := b.call(), make([]byte, abi.DecisionSize)
	assert.False(t, c.StoreAway())
	d := b.take(c, "tokens", 300)
	b.store.Down(true)
	assert.EqualValues(t, abi.Unavailable, c.LimitAdmit("turn", out))
	assert.True(t, c.StoreAway())
	assert.EqualValues(t, 1, b.services.Fallbacks())
	assert.EqualValues(t, abi.OK, c.LimitSettle(d.id, 20), "accepted, for when the store is back")
	b.op.End(abi.Ending{Reason: abi.ReasonCancelled})
	require.ErrorIs(t, b.services.Drain(t.Context()), store.ErrUnavailable)
	b.store.Down(false)
	assert.EqualValues(t, 980, b.balance(b.store, user, "tokens"))
}

func TestStoreHasItsOwnTime(t *testing.T) {
	b := newBench(t, "limit:turn")
	b.store.Slow(true)
	begin := time.Now()
	assert.EqualValues(t, abi.Unavailable, b.call().LimitAdmit("turn", make([]byte, abi.DecisionSize)))
	assert.Less(t, time.Since(begin), 5*time.Second)
}

func TestWhatTheStoreDoesNotAcceptIsNotAnOutage(t *testing.T) {
	b := newBench(t, "limit:turn")
	b.store.Refuse(store.ErrBadNumber)
	c := b.call()
	assert.EqualValues(t, abi.BadArgument, c.LimitAdmit("turn", make([]byte, abi.DecisionSize)))
	assert.False(t, c.StoreAway())
	assert.Zero(t, b.services.Fallbacks())
}

func TestLocalShareWhileTheStoreIsAway(t *testing.T) {
	b := newBench(t, "limit:turn", "limit:tokens", "limit:runs")
	b.stage.Local = true
	b.store.Down(true)
	c := b.call()
	assert.Equal(t, abi.Admitted, b.admit(c, "turn").kind)
	assert.Equal(t, abi.Admitted, b.admit(c, "turn").kind)
	assert.Equal(t, abi.Denied, b.admit(c, "turn").kind, "half of 5, as there are two processes")
	assert.False(t, c.StoreAway())
	assert.EqualValues(t, 3, b.services.Fallbacks())

	tokens, lease := b.take(c, "tokens", 300), b.take(c, "runs", 1)
	require.Equal(t, abi.Admitted, tokens.kind)
	b.store.Down(false)
	calls := b.store.Calls()
	require.EqualValues(t, abi.OK, c.LimitSettle(tokens.id, 100))
	require.EqualValues(t, abi.OK, c.LimitRelease(lease.id))
	b.drain()
	assert.Equal(t, calls, b.store.Calls(), "what began local ends local")
	assert.Zero(t, b.local.Open())
}

func TestLeasesAreKeptAliveWhileTheyAreHeld(t *testing.T) {
	b := newBench(t, "limit:runs")
	b.plans["runs"] = hostfn.Limit{Cap: &store.Cap{Max: 2, Expires: 30 * time.Millisecond}}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { defer close(over); b.services.Leases.Run(ctx, b.services.Log) }()

	b.take(b.call(), "runs", 1)
	require.Eventually(t, func() bool { return b.store.Renewed() >= 3 }, 5*time.Second, time.Millisecond)
	b.run.End(abi.Ending{Reason: abi.ReasonDone})
	cancel()
	<-over
	before := b.store.Renewed()
	require.NoError(t, b.services.Leases.Renew(t.Context()))
	assert.Equal(t, before, b.store.Renewed(), "nothing to renew")
}

func TestALapsedLeaseStaysLapsed(t *testing.T) {
	b := newBench(t, "limit:runs")
	b.take(b.call(), "runs", 1)
	_, err := b.store.Free(t.Context(), store.Lease{Owner: user, Limit: "runs", Member: "run-1"})
	require.NoError(t, err)
	require.NoError(t, b.services.Leases.Renew(t.Context()))
	assert.Zero(t, b.services.Leases.Held())
}
