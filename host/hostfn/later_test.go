package hostfn_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/host/internal/fake"
	"github.com/hookhost/hookhost/store"
	inmemory "github.com/hookhost/hookhost/store/memory"
	"github.com/hookhost/hookhost/store/storetest"
)

// onAdmit is a store that does something once it has admitted.
type onAdmit struct {
	*fake.Store
	then func() error
}

func (s *onAdmit) Admit(ctx context.Context, a store.Admission) (store.Decision, error) {
	d, err := s.Store.Admit(ctx, a)
	return d, errors.Join(err, s.then())
}

func TestSettlingAsksNobody(t *testing.T) {
	b := newBench(t, "limit:tokens", "usage:write")
	d := b.take(b.call(), "tokens", abi.EstimateOfPlan)
	b.store.Slow(true)
	calls := b.store.Calls()
	c := b.at(abi.AfterModel).call()
	assert.EqualValues(t, abi.OK, c.LimitSettle(d.id, 50))
	assert.EqualValues(t, abi.OK, c.UsageRecord())
	assert.Equal(t, calls, b.store.Calls())
	b.store.Slow(false)
	assert.EqualValues(t, 950, b.balance(b.store, user, "tokens"))
	assert.Len(t, b.records(), 1)
}

func TestATurnSeesTheOneBeforeSettledAndItsLeaseFree(t *testing.T) {
	b := newBench(t, "limit:tokens", "limit:runs")
	runs := b.plans["runs"]
	runs.Cap = &store.Cap{Max: 1, Expires: 30 * time.Second}
	b.plans["runs"] = runs
	require.Equal(t, abi.Admitted, b.admit(b.call(), "tokens\nruns").kind)
	require.Equal(t, abi.Admitted, b.take(b.call(), "tokens", 900).kind)
	b.op.End(abi.Ending{Reason: abi.ReasonError})
	b.run.End(abi.Ending{Reason: abi.ReasonError})

	b.run = fake.NewScope("run-2")
	assert.Equal(t, abi.Admitted, b.admit(b.at(abi.BeforeRun).call(), "tokens\nruns").kind)
}

func TestWhatEndsWhileTheStoreIsAwayIsWrittenWhenItIsBack(t *testing.T) {
	b := newBench(t, "limit:tokens", "limit:runs")
	b.take(b.call(), "tokens", abi.EstimateOfPlan)
	b.take(b.call(), "runs", 1)
	b.store.Down(true)
	b.op.End(abi.Ending{Reason: abi.ReasonDone, Usage: abi.Usage{Mask: abi.HasTotal, Total: 70}})
	b.run.End(abi.Ending{Reason: abi.ReasonDone})
	require.ErrorContains(t, b.services.Drain(t.Context()), "2 writes wait")
	b.store.Down(false)
	assert.EqualValues(t, 930, b.balance(b.store, user, "tokens"))
	assert.Zero(t, b.held(user, "runs"))
}

func TestAnAdmissionIsUndoneAlsoWhenTheStoreGoesAwayInItsMiddle(t *testing.T) {
	b := newBench(t, "limit:turn", "limit:runs", "limit:calls:app")
	b.services.Store = &onAdmit{b.store, func() error { b.store.Down(true); return nil }}
	assert.EqualValues(t, abi.Unavailable, b.call().LimitAdmit("turn\nruns\ncalls:app", make([]byte, abi.DecisionSize)))
	assert.Zero(t, b.run.Owned())
	require.ErrorContains(t, b.services.Drain(t.Context()), "2 writes wait")
	b.store.Down(false)
	assert.EqualValues(t, 5, b.balance(b.store, user, "turn"))
	assert.Zero(t, b.held(user, "runs"))
}

func TestAnAdmissionWhoseAnswerWasLostIsUndone(t *testing.T) {
	b := newBench(t, "limit:tokens", "limit:runs", "limit:calls:app")
	b.plans["calls:app"] = hostfn.Limit{Bucket: bucket(100), Slice: 20}
	b.stage.Local = true
	lost := &onAdmit{b.store, func() error { return store.ErrUnavailable }}
	b.services.Store = lost
	for i, ask := range []func(){
		func() { b.take(b.call(), "runs", 1) },
		func() { b.take(b.call(), "tokens", 600) },
		func() { b.admit(b.call(), "calls:app") },
	} {
		b.run = fake.NewScope(fmt.Sprint("run-", i))
		b.at(abi.BeforeModel)
		ask() // and goes on with the local share
	}
	assert.Zero(t, b.held(user, "runs"))
	assert.EqualValues(t, 1000, b.balance(b.store, user, "tokens"))
	assert.EqualValues(t, 100, b.balance(b.store, store.Owner{Kind: store.OwnerApp, App: "app"}, "calls"))

	b.store.Down(true) // now it never arrives
	b.run = fake.NewScope("run-4")
	b.take(b.at(abi.BeforeModel).call(), "runs", 1)
	b.store.Down(false)
	b.drain()
	assert.Empty(t, b.measured("hookhost.outbox.dropped"), "that there was nothing to undo is no loss")
	assert.Empty(t, b.measured("hookhost.lease.lost"))
}

func TestAReservationOfAProcessThatDiedIsChargedWhenItExpires(t *testing.T) {
	clock := storetest.NewClock()
	shared := inmemory.New(clock)
	yearly := store.Bucket{Units: 1, Per: 365 * 24 * time.Hour, Burst: 1000}
	process := func() *bench {
		b := newBench(t, "limit:tokens")
		b.plans["tokens"] = hostfn.Limit{Plan: "free", Bucket: &yearly, Estimate: hostfn.Estimate{By: hostfn.Fixed, Units: 600}}
		b.services.Store = shared
		return b
	}
	stalled := process()
	d := stalled.take(stalled.call(), "tokens", abi.EstimateOfPlan)
	clock.Advance(2 * time.Hour)
	other := process()
	assert.Equal(t, abi.Denied, other.take(other.call(), "tokens", 600).kind)
	left, err := shared.Balance(t.Context(), user, "tokens", yearly)
	require.NoError(t, err)
	assert.EqualValues(t, 400, left)

	require.EqualValues(t, abi.OK, stalled.call().LimitSettle(d.id, 1), "it was not dead, only slow")
	stalled.drain()
	left, err = shared.Balance(t.Context(), user, "tokens", yearly)
	require.NoError(t, err)
	assert.EqualValues(t, 400, left)
	assert.Equal(t, map[string]float64{"kind=settle": 1}, stalled.measured("hookhost.outbox.dropped"), "and it is seen")
}

// lostFree is a store that frees and loses the first answer.
type lostFree struct {
	store.Store
	freed int
}

func (s *lostFree) Free(ctx context.Context, l store.Lease) (bool, error) {
	held, err := s.Store.Free(ctx, l)
	if s.freed++; s.freed == 1 {
		return false, fmt.Errorf("%w: the answer was lost", store.ErrUnavailable)
	}
	return held, err
}

func TestAFreeWhoseAnswerWasLostIsNoLostLease(t *testing.T) {
	b := newBench(t, "limit:runs")
	lost := &lostFree{Store: inmemory.New(nil)}
	b.services.Store = lost
	b.take(b.call(), "runs", 1)
	b.run.End(abi.Ending{Reason: abi.ReasonDone})
	require.ErrorIs(t, b.services.Drain(t.Context()), store.ErrUnavailable)
	b.drain()
	assert.Equal(t, 2, lost.freed)
	assert.Empty(t, b.measured("hookhost.lease.lost"))
	assert.NotContains(t, b.log.String(), "lease lost")
}

func TestALeaseThatTheRunTookAgainIsNotFreed(t *testing.T) {
	b := newBench(t, "limit:runs:app")
	b.plans["runs:app"] = b.plans["runs"]
	first := b.take(b.call(), "runs:app", 1)
	require.EqualValues(t, abi.OK, b.call().LimitRelease(first.id))
	require.Equal(t, abi.Admitted, b.take(b.call(), "runs:app", 1).kind, "before the free was written")
	app := store.Owner{Kind: store.OwnerApp, App: "app"}
	assert.EqualValues(t, 1, b.held(app, "runs"))
	b.run.End(abi.Ending{Reason: abi.ReasonDone})
	assert.Zero(t, b.held(app, "runs"))
}

func TestCloseSaysWhatWasGivenUp(t *testing.T) {
	b := newBench(t, "limit:tokens")
	b.take(b.call(), "tokens", abi.EstimateOfPlan)
	b.store.Down(true)
	b.op.End(abi.Ending{Reason: abi.ReasonError})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, b.services.Close(ctx), "gave up 1 writes")
}

func TestTheLocalShareSaysNothingOfTheStore(t *testing.T) {
	b := newBench(t, "limit:tokens", "limit:runs", "usage:write")
	b.stage.Local = true
	b.store.Down(true)
	for i := range 4 { // each run has something to be written to the store, and to the share
		b.run, b.op = fake.NewScope(fmt.Sprint("run-", i)), fake.NewScope(fmt.Sprint("op-", i))
		require.Equal(t, abi.Admitted, b.admit(b.at(abi.BeforeRun).call(), "tokens\nruns").kind)
		b.take(b.at(abi.BeforeModel).call(), "tokens", 1)
		require.EqualValues(t, abi.OK, b.at(abi.AfterModel).call().UsageRecord())
		b.op.End(abi.Ending{Reason: abi.ReasonError})
		b.run.End(abi.Ending{Reason: abi.ReasonError})
		time.Sleep(30 * time.Millisecond)
	}
	assert.NotContains(t, b.log.String(), "takes writes again", "it is away still")
	b.store.Down(false)
	assert.Len(t, b.records(), 4)
}

func TestOwnersAreAskedInTheirOrderAndUndoneByTheirId(t *testing.T) {
	b := newBench(t, "limit:turn", "limit:calls:app", "limit:all:global")
	b.plans["calls:app"] = hostfn.Limit{Plan: "app", Bucket: bucket(100)}
	b.plans["all:global"] = hostfn.Limit{Plan: "global", Bucket: bucket(1)}
	var asked []store.OwnerKind
	b.services.Store = &watched{Store: b.store, admits: func(a store.Admission) { asked = append(asked, a.Owner.Kind) }}
	for _, want := range []abi.Decision{abi.Admitted, abi.Denied} {
		asked = nil
		assert.Equal(t, want, b.admit(b.at(abi.BeforeRun).call(), "all:global\nturn\ncalls:app").kind)
		assert.Equal(t, []store.OwnerKind{store.OwnerUser, store.OwnerApp, store.OwnerGlobal}, asked)
	}
	assert.EqualValues(t, 99, b.balance(b.store, store.Owner{Kind: store.OwnerApp, App: "app"}, "calls"), "one of two stays charged")
}

// watched is a store that tells what it is asked for.
type watched struct {
	*fake.Store
	admits func(store.Admission)
}

func (w *watched) Admit(ctx context.Context, a store.Admission) (store.Decision, error) {
	w.admits(a)
	return w.Store.Admit(ctx, a)
}
