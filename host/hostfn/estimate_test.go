package hostfn_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/host/internal/fake"
	"github.com/hookhost/hookhost/store"
)

// estimated changes how the tokens of a call are estimated.
func (b *bench) estimated(e hostfn.Estimate) *bench {
	tokens := b.plans["tokens"]
	tokens.Estimate = e
	b.plans["tokens"] = tokens
	return b
}

// takes is what one model call takes until its usage is known.
func (b *bench) takes() int64 {
	b.t.Helper()
	before := b.balance(b.store, user, "tokens")
	d := b.take(b.call(), "tokens", abi.EstimateOfPlan)
	require.Equal(b.t, abi.Admitted, d.kind)
	took := before - b.balance(b.store, user, "tokens")
	require.EqualValues(b.t, abi.OK, b.call().LimitRelease(d.id))
	return took
}

// spends is a model call that used so many tokens.
func (b *bench) spends(total int64) {
	b.t.Helper()
	b.op = fake.NewScope("op")
	b.at(abi.BeforeModel)
	b.take(b.call(), "tokens", abi.EstimateOfPlan)
	b.op.End(abi.Ending{Reason: abi.ReasonDone, Usage: abi.Usage{Mask: abi.HasTotal, Total: total}})
	b.exchange()
}

// exchange runs the services for no longer than they need to come to an end,
// which tells the store what was learned.
func (b *bench) exchange() {
	b.t.Helper()
	over, cancel := context.WithCancel(b.t.Context())
	cancel()
	b.services.Run(over)
}

func TestAFixedEstimate(t *testing.T) {
	assert.EqualValues(t, 600, newBench(t, "limit:tokens").takes())
	assert.EqualValues(t, 1, newBench(t, "limit:tokens").estimated(hostfn.Estimate{By: hostfn.Fixed}).takes(), "at least one")
}

func TestAnEstimateBySize(t *testing.T) {
	b := newBench(t, "limit:tokens").estimated(hostfn.Estimate{By: hostfn.Size, Units: 100})
	bytes := len("Grüße an alle") + len("42") + len("fixed")
	require.Equal(t, 22, bytes)
	assert.EqualValues(t, 100+6, b.takes(), "a fourth of the bytes, rounded up, and the output")
	b.ev.Subject = &fake.Subject{}
	assert.EqualValues(t, 100, b.takes(), "nothing is said")
	b.ev.Subject = nil
	assert.EqualValues(t, 100, b.takes())
}

func TestALearnedEstimate(t *testing.T) {
	b := newBench(t, "limit:tokens").estimated(hostfn.Estimate{By: hostfn.Learned, Units: 300})
	assert.EqualValues(t, 300, b.takes(), "until something was learned")
	b.spends(100)
	assert.EqualValues(t, 100, b.takes())
	b.spends(200)
	assert.EqualValues(t, 150, b.takes())
	b.ev.Model = "another"
	assert.EqualValues(t, 300, b.takes(), "each model has its own")
	b.ev.Model, b.ev.Agent = "model", "another"
	assert.EqualValues(t, 300, b.takes(), "and each agent")
}

func TestNothingIsLearnedOfWhatDidNotRun(t *testing.T) {
	b := newBench(t, "limit:tokens").estimated(hostfn.Estimate{By: hostfn.Learned, Units: 300})
	for _, ending := range []abi.Ending{
		{Reason: abi.ReasonRefused},
		{Reason: abi.ReasonAnswered, Usage: abi.Usage{Mask: abi.HasTotal, Total: 70}},
		{Reason: abi.ReasonCancelled, NotBegun: true},
		{Reason: abi.ReasonEnded},
		{Reason: abi.ReasonError},
	} {
		b.op = fake.NewScope("op")
		b.take(b.at(abi.BeforeModel).call(), "tokens", 10)
		b.op.End(ending)
	}
	d := b.take(b.call(), "tokens", 10)
	require.EqualValues(t, abi.OK, b.call().LimitRelease(d.id))
	b.exchange()
	assert.EqualValues(t, 300, b.takes())
}

func TestALearnedEstimateStaysWithinTheBurst(t *testing.T) {
	b := newBench(t, "limit:tokens").estimated(hostfn.Estimate{By: hostfn.Learned, Units: 300})
	b.spends(5000)
	d := b.take(b.call(), "tokens", abi.EstimateOfPlan)
	assert.NotEqual(t, abi.NeverFits, d.kind, "or nothing would ever be learned again")
}

func TestOneAbsurdNumberDoesNotPoisonAnAverage(t *testing.T) {
	b := newBench(t, "limit:tokens").estimated(hostfn.Estimate{By: hostfn.Learned, Units: 300})
	tokens := b.plans["tokens"]
	tokens.Bucket = bucket(10_000)
	b.plans["tokens"] = tokens
	for range 20 {
		b.spends(100)
	}
	b.spends(1e12)
	b.ev.User = "another" // of the same agent
	require.Equal(t, abi.Admitted, b.take(b.call(), "tokens", abi.EstimateOfPlan).kind)
	another := store.Owner{Kind: store.OwnerUser, App: "app", User: "another"}
	assert.EqualValues(t, 10_000-572, b.balance(b.store, another, "tokens"), "it counted as the burst: 12,000 in 21 calls")
}

// A fan-out of eight takes eight estimates before any of them is settled, and
// the ninth has to wait.
func TestEightParallelBranchesReserveEightEstimates(t *testing.T) {
	b := newBench(t, "limit:tokens").estimated(hostfn.Estimate{By: hostfn.Fixed, Units: 125})
	branch := func(i int) (*abi.Event, *fake.Scope) {
		ev, op := *b.ev, fake.NewScope(fmt.Sprint("op-", i))
		ev.Op, ev.Branch = op, fmt.Sprint("branch-", i)
		return &ev, op
	}
	var branches sync.WaitGroup
	var kinds [8]abi.Decision
	var ops [8]*fake.Scope
	for i := range 8 {
		ev, op := branch(i)
		ops[i] = op
		branches.Go(func() {
			out := make([]byte, abi.DecisionSize)
			b.services.NewCall(t.Context(), b.stage, ev).LimitTake("tokens", abi.EstimateOfPlan, out)
			kinds[i] = readDecision(out).kind
		})
	}
	branches.Wait()
	for _, kind := range kinds {
		assert.Equal(t, abi.Admitted, kind)
	}
	assert.EqualValues(t, 0, b.balance(b.store, user, "tokens"))
	ev, _ := branch(8)
	out := make([]byte, abi.DecisionSize)
	b.services.NewCall(t.Context(), b.stage, ev).LimitTake("tokens", abi.EstimateOfPlan, out)
	assert.Equal(t, abi.Delayed, readDecision(out).kind)

	for i, op := range ops {
		op.End(abi.Ending{Reason: abi.ReasonDone, Usage: abi.Usage{Mask: abi.HasTotal, Total: int64(i)}})
	}
	assert.EqualValues(t, 1000-(0+1+2+3+4+5+6+7)-125, b.balance(b.store, user, "tokens"), "each settled with its own")
}
