package chain_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
)

func TestADeniedRunIsReadOnce(t *testing.T) {
	w := chainOf(t, responder("limit").at(abi.BeforeRun, refuses("limit.turn", "come back later")))
	r := w.begin()
	dispatch(r.Root(), abi.BeforeRun, "")
	assert.True(t, r.Stopped())
	assert.False(t, r.Root().Closed(), "the run goes on to its after_run")

	d, denied, first := r.Denied()
	assert.True(t, denied && first)
	assert.Equal(t, chain.Denial{Stage: "limit", Refusal: abi.Refusal{Code: "limit.turn", Text: "come back later", Retry: 2 * time.Second}}, d)
	_, denied, first = r.Denied()
	assert.True(t, denied)
	assert.False(t, first, "the second time silently")

	r.Deny(chain.Denial{Refusal: abi.Refusal{Code: "other"}})
	d, _, _ = r.Denied()
	assert.Equal(t, "limit.turn", d.Code, "the first denial stays")
}

func TestAPlainAnswerAtBeforeRunDeniesToo(t *testing.T) {
	w := chainOf(t, responder("gate").at(abi.BeforeRun, responds("We are closed.")))
	r := w.begin()
	dispatch(r.Root(), abi.BeforeRun, "")
	d, denied, first := r.Denied()
	assert.True(t, denied && first)
	assert.Equal(t, "We are closed.", d.Text)
	assert.Equal(t, "gate", d.Stage)
	assert.False(t, d.Failed)
}

// A message without a text denies as it is, with a fixed text beside it for
// those who cannot show it.
func TestADenialKeepsTheAnswerThatHasNoText(t *testing.T) {
	w := chainOf(t, responder("gate").at(abi.BeforeRun, responds(" ")))
	r := w.begin()
	dispatch(r.Root(), abi.BeforeRun, "")
	d, denied, _ := r.Denied()
	require.True(t, denied)
	assert.Equal(t, abi.Refusal{Code: "answered", Text: "This request was declined."}, d.Refusal)
	assert.Equal(t, " ", textOf(d.Answer))
}

func TestNobodyIsRefusedInSilence(t *testing.T) {
	for _, h := range []abi.Hook{abi.BeforeRun, abi.BeforeAgent, abi.BeforeModel, abi.AfterModel, abi.BeforeTool} {
		for _, text := range []string{"", " \n\t"} {
			out := chainOf(t, responder("s").at(h, refuses("limit.turn", text))).at(h, "value")
			require.NotNil(t, out.Denial, h)
			assert.Equal(t, "limit.turn", out.Denial.Code, h)
			assert.Equal(t, "This request was declined.", out.Denial.Text, h)
			assert.Equal(t, "This request was declined.", textOf(out.Answer), h)
		}
	}
}

func TestARefusalInMidRunStopsItAndIsRead(t *testing.T) {
	for _, h := range []abi.Hook{abi.BeforeAgent, abi.BeforeModel, abi.AfterModel, abi.OnModelError} {
		w := chainOf(t, responder("limit").at(h, refuses("limit.tokens", "the work stopped early")))
		op := w.op(h)
		out := dispatch(op, h, "value")
		assert.Equal(t, "the work stopped early", textOf(out.Answer))
		_, denied, first := op.Run().Denied()
		assert.True(t, denied, h.String())
		assert.False(t, first, "the operation itself answered with the text")
	}
}

func TestAnAnswerThatIsNoRefusalDoesNotStopTheRun(t *testing.T) {
	for _, h := range []abi.Hook{abi.BeforeAgent, abi.BeforeModel, abi.BeforeTool, abi.AfterModel, abi.OnModelError} {
		w := chainOf(t, responder("s").at(h, responds("answer")))
		op := w.op(h)
		dispatch(op, h, "value")
		assert.False(t, op.Run().Stopped(), h.String())
	}
}

func TestAnOldRunFinishesOnTheOldChain(t *testing.T) {
	before, after := responder("old"), responder("new")
	w := chainOf(t, before)
	r := w.begin()
	dispatch(r.Root(), abi.BeforeRun, "")
	old := w.ledger.Swap(version(t, "v2", after))
	assert.Equal(t, "v1", old.Version())
	assert.Equal(t, "v2", w.ledger.Current().Version())

	op := w.open(r, abi.OpModel)
	dispatch(op, abi.BeforeModel, "")
	dispatch(op, abi.AfterModel, "")
	dispatch(w.begin().Root(), abi.BeforeRun, "")
	assert.Equal(t, []string{"before_run", "before_model", "after_model"}, before.calls())
	assert.Equal(t, []string{"before_run"}, after.calls())

	retired := make(chan error, 1)
	go func() { retired <- old.Retire(context.Background()) }()
	select {
	case <-retired:
		t.Fatal("retired while a run goes on")
	case <-time.After(20 * time.Millisecond):
	}
	assert.Zero(t, before.closed)
	r.Finish(context.Background(), false)
	require.NoError(t, <-retired)
	assert.Equal(t, 1, before.closed, "the stages are closed after the last run")
	assert.Equal(t, []string{"before_run", "before_model", "after_model", "after_run"}, before.calls())
}

func TestRetireWaitsNoLongerThanItsContext(t *testing.T) {
	s := responder("s")
	w := chainOf(t, s)
	w.begin()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := w.ledger.Current().Retire(ctx)
	require.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, "chain[v1]: runs still going on")
	assert.Equal(t, 1, s.closed)
}

type stuck struct{ *stage }

func (stuck) Close(ctx context.Context) error { return errors.Join(errors.New("stuck"), ctx.Err()) }

func TestRetireClosesAllAndJoinsTheErrors(t *testing.T) {
	a, b := responder("a"), responder("b")
	c, err := chain.New("v1", 0, chain.Entry{Spec: a.spec, Stage: stuck{a}}, chain.Entry{Spec: b.spec, Stage: b})
	require.NoError(t, err)
	assert.EqualError(t, c.Retire(context.Background()), "stage[a] close: stuck")
	assert.Equal(t, 1, b.closed)
}

// usable is a stage that must not be called once it was closed.
type usable struct {
	*stage
	misused *sync.Once
}

func (u usable) Call(ctx context.Context, ev *abi.Event) (abi.Verdict, error) {
	u.mu.Lock()
	closed := u.closed
	u.mu.Unlock()
	if closed > 0 {
		u.misused.Do(func() { panic("called after it was closed") })
	}
	return u.stage.Call(ctx, ev)
}

func TestNoRunBeginsOnARetiredChain(t *testing.T) {
	w := chainOf(t)
	next := func() *chain.Chain {
		s := responder("s")
		c, err := chain.New("v", 0, chain.Entry{Spec: s.spec, Stage: usable{s, new(sync.Once)}})
		require.NoError(t, err)
		return c
	}
	w.ledger.Swap(next())
	var runs sync.WaitGroup
	for range 4 {
		runs.Go(func() {
			for range 300 {
				r := w.ledger.Begin(abi.Event{})
				dispatch(r.Root(), abi.BeforeRun, "")
				r.Finish(context.Background(), false)
			}
		})
	}
	for range 100 {
		require.NoError(t, w.ledger.Swap(next()).Retire(context.Background()))
	}
	runs.Wait()
	for _, s := range w.trace.steps {
		require.NoError(t, s.Err)
	}
	assert.Len(t, w.trace.steps, 4*300*2)
}

func TestIdleRunsEnd(t *testing.T) {
	w := chainOf(t, responder("s"))
	idle, busy := w.begin(), w.begin()
	w.clock.advance(time.Minute)
	dispatch(busy.Root(), abi.OnEvent, "")
	assert.Zero(t, w.ledger.FinishIdle(context.Background(), time.Hour))
	assert.Equal(t, 1, w.ledger.FinishIdle(context.Background(), 30*time.Second))
	assert.True(t, idle.Over())
	assert.False(t, busy.Over())
}

func TestARunThatWaitsIsNotIdle(t *testing.T) {
	w := chainOf(t, responder("limit").at(abi.BeforeModel, waits(time.Hour)))
	op := w.model()
	w.clock.during = func(context.Context) {
		w.clock.advance(time.Hour)
		assert.Zero(t, w.ledger.FinishIdle(context.Background(), time.Minute))
	}
	dispatch(op, abi.BeforeModel, "")
	assert.Zero(t, w.ledger.FinishIdle(context.Background(), time.Minute), "and the wait counts as its last sign of life")
	assert.False(t, op.Run().Over())
}

func TestCloseEndsAllRuns(t *testing.T) {
	s := responder("s")
	w := chainOf(t, s)
	dispatch(w.begin().Root(), abi.BeforeRun, "")
	w.begin()
	w.ledger.Detach(abi.Event{})
	last := w.ledger.Current()

	assert.Same(t, last, w.ledger.Close(context.Background()), "what is to be retired")

	runs, ops := w.ledger.Open()
	assert.Equal(t, []int{0, 0}, []int{runs, ops})
	assert.Equal(t, []string{"before_run", "after_run", "after_run"}, s.calls())
}

func TestARunThatBeginsAfterTheCloseIsDeniedAndCallsNobody(t *testing.T) {
	s := responder("s")
	w := chainOf(t, s)
	w.ledger.Close(context.Background())

	r := w.begin()
	dispatch(r.Root(), abi.BeforeRun, "")
	d, denied, _ := r.Denied()
	r.Finish(context.Background(), false)

	assert.True(t, denied)
	assert.Equal(t, "host_closed", d.Code)
	assert.Empty(t, s.calls())
}

func TestOpenCountsRunsAndTheirOperations(t *testing.T) {
	w := chainOf(t)
	r := w.begin()
	op := w.open(r, abi.OpAgent)
	w.open(r, abi.OpModel)
	runs, ops := w.ledger.Open()
	assert.Equal(t, []int{1, 2}, []int{runs, ops})
	op.End(context.Background(), abi.ReasonDone)
	_, ops = w.ledger.Open()
	assert.Equal(t, 1, ops)
}
