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

// ways are the ways in which a model call ends, and the one thing that tells
// a stage so which asks for every hook.
var ways = map[string]struct {
	end   func(w *world, op *chain.Op)
	hears string
	// for a stage that asks for no after-hook
	reason string
}{
	"done": {
		func(_ *world, op *chain.Op) { dispatch(op, abi.AfterModel, "reply") },
		"after_model", "close model done",
	},
	"error": {
		func(_ *world, op *chain.Op) { dispatch(op, abi.OnModelError, "boom") },
		"on_model_error", "close model error",
	},
	"cancelled with an error": {
		func(_ *world, op *chain.Op) {
			ev := event(abi.OnModelError, "cancelled")
			ev.Flags = abi.Cancelled
			op.Dispatch(context.Background(), abi.OnModelError, ev)
		},
		"on_model_error", "close model cancelled",
	},
	"answered by the agent's own callback": {
		func(_ *world, op *chain.Op) { op.End(context.Background(), abi.ReasonAnswered) },
		"close model answered", "close model answered",
	},
	"cut off": {
		func(_ *world, op *chain.Op) { op.Run().Finish(context.Background(), false) },
		"close model cancelled", "close model cancelled",
	},
	"cancelled": {
		func(_ *world, op *chain.Op) { op.Run().Finish(context.Background(), true) },
		"close model cancelled", "close model cancelled",
	},
	"idle": {
		func(w *world, op *chain.Op) {
			w.clock.advance(time.Hour)
			w.ledger.FinishIdle(context.Background(), time.Minute)
		},
		"close model cancelled", "close model cancelled",
	},
	"the host closes": {
		func(w *world, op *chain.Op) { w.ledger.Close(context.Background()) },
		"close model cancelled", "close model cancelled",
	},
}

func TestEveryWayToEndClosesOnce(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			all := responder("all")
			pair := responder("pair").hears(abi.BeforeModel, abi.Close)
			deaf := responder("deaf").hears(abi.BeforeModel)
			never := responder("never").hears(abi.AfterModel, abi.OnModelError, abi.Close)
			w := chainOf(t, all, pair, deaf, never)
			op := w.model()
			dispatch(op, abi.BeforeModel, "question")
			dispatch(op, abi.OnModelChunk, "chunk")
			way.end(w, op)

			ofModel := all.calls()[:3]
			assert.Equal(t, []string{"before_model", "on_model_chunk", way.hears}, ofModel)
			assert.Equal(t, []string{"before_model", way.reason}, pair.calls())
			assert.Equal(t, []string{"before_model"}, deaf.calls())
			assert.NotContains(t, never.calls(), way.reason, "who has not entered gets no close")
			assert.True(t, op.Closed())

			heard := len(all.calls())
			op.Run().Finish(context.Background(), false)
			op.End(context.Background(), abi.ReasonDone)
			for _, call := range all.calls()[heard:] {
				assert.Equal(t, "after_run", call, "nothing else comes after")
			}
		})
	}
}

func TestAnsweredAndRefusedCallsClose(t *testing.T) {
	for name, c := range map[string]struct {
		verdict verdict
		reason  string
	}{
		"answered":        {responds("cached"), "answered"},
		"refused":         {refuses("limit.turn", "no"), "refused"},
		"a closed stage":  {fails(chain.CauseTrap), "refused"},
		"a wait cut off":  {waits(time.Hour), "cancelled"},
		"cut off in call": {errs(context.Canceled), "cancelled"},
	} {
		for _, h := range []abi.Hook{abi.BeforeModel, abi.BeforeAgent} {
			t.Run(name+" "+h.String(), func(t *testing.T) {
				first, second := responder("first"), responder("second").at(h, c.verdict)
				third := responder("third")
				w := chainOf(t, first, second, third)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				w.clock.during = func(context.Context) { cancel() }
				if name == "cut off in call" {
					second.at(h, func(context.Context, *abi.Event) (abi.Verdict, error) {
						cancel()
						return abi.Verdict{}, ctx.Err()
					})
				}
				op := w.op(h)
				op.Dispatch(ctx, h, event(h, "question"))
				closed := []string{h.String(), "close " + h.Operation().String() + " " + c.reason}
				assert.Equal(t, closed, first.calls(), "who was called before it is told")
				assert.Equal(t, closed, second.calls(), "and so is the stage itself")
				assert.Empty(t, third.calls())
				assert.True(t, op.Closed())
				assert.Equal(t, c.reason == "refused", op.Refused())
				assert.Equal(t, c.reason == "refused", op.Run().Stopped(), "a refusal in mid-run stops the run")
			})
		}
	}
}

func TestToolsCloseAtAfterTool(t *testing.T) {
	for name, c := range map[string]struct {
		verdict verdict
		failed  bool
		source  abi.Source
		by      string
		reason  string
	}{
		"done":         {continues, false, abi.SourceRan, "", "done"},
		"answered":     {responds("result"), false, abi.SourceAnswered, "second", "answered"},
		"refused":      {refuses("policy.refund", "no"), false, abi.SourceAnswered, "second", "refused"},
		"failed":       {continues, true, abi.SourceError, "", "error"},
		"a stage fell": {fails(chain.CauseTrap), false, abi.SourceAnswered, "second", "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			all := responder("all")
			second := responder("second").at(abi.BeforeTool, c.verdict).hears(abi.BeforeTool, abi.Close)
			w := chainOf(t, all, second)
			op := w.open(w.begin(), abi.OpTool)
			dispatch(op, abi.BeforeTool, "args")
			assert.False(t, op.Closed(), "ADK runs after_tool on an answer")
			want := []string{"before_tool", "after_tool"}
			if c.failed {
				dispatch(op, abi.OnToolError, "boom")
				assert.False(t, op.Closed(), "an error hook never closes a tool call")
				want = []string{"before_tool", "on_tool_error", "after_tool"}
			}
			dispatch(op, abi.AfterTool, "result")
			assert.Equal(t, want, all.calls())
			assert.Equal(t, []string{"before_tool", "close tool " + c.reason}, second.calls())
			after := all.last(t, abi.AfterTool)
			assert.Equal(t, c.source, after.Source)
			assert.Equal(t, c.by, after.AnsweredBy)
			assert.False(t, op.Run().Stopped(), "a tool that is refused does not stop the run")
		})
	}
}

func TestAToolThatDoesNotExistClosesWithItsError(t *testing.T) {
	s := responder("s")
	w := chainOf(t, s)
	op := w.open(w.begin(), abi.OpTool)
	dispatch(op, abi.OnToolError, "no such tool")
	op.End(context.Background(), abi.ReasonError)
	assert.Equal(t, []string{"on_tool_error"}, s.calls(), "nobody entered, so nobody is told twice")
	assert.False(t, s.last(t, abi.OnToolError).Flags.Has(abi.Entered))
}

func TestARecoveredErrorIsClosedOnce(t *testing.T) {
	retry := responder("retry").at(abi.OnModelError, responds("try later"))
	pair := responder("pair").hears(abi.BeforeModel, abi.AfterModel, abi.Close)
	w := chainOf(t, retry, pair)
	op := w.model()
	dispatch(op, abi.BeforeModel, "question")
	assert.Equal(t, "try later", textOf(dispatch(op, abi.OnModelError, "boom").Answer))
	dispatch(op, abi.AfterModel, "try later")

	after := retry.last(t, abi.AfterModel)
	assert.True(t, after.Flags.Has(abi.Recovered|abi.Late|abi.Entered))
	assert.Equal(t, []string{"before_model", "on_model_error", "after_model"}, retry.calls())
	assert.Equal(t, []string{"before_model", "close model error", "after_model"}, pair.calls())
}

func TestAnErrorThatNobodyAnsweredIsNotRecovered(t *testing.T) {
	s := responder("s")
	w := chainOf(t, s)
	op := w.model()
	dispatch(op, abi.OnModelError, "boom")
	dispatch(op, abi.AfterModel, "?")
	assert.False(t, s.last(t, abi.AfterModel).Flags.Has(abi.Recovered))
}

func TestLateHooksTransformAndSettleNothing(t *testing.T) {
	s := transformer("s").at(abi.AfterModel, appends("!")).at(abi.OnModelChunk, appends("!"))
	w := chainOf(t, s)
	op := w.model()
	dispatch(op, abi.BeforeModel, "question")
	op.Run().Finish(context.Background(), true)
	closed := s.calls()

	assert.Equal(t, "chunk!", textOf(dispatch(op, abi.OnModelChunk, "chunk").Subject))
	assert.Equal(t, "reply!", textOf(dispatch(op, abi.AfterModel, "reply").Subject))
	assert.True(t, s.last(t, abi.AfterModel).Flags.Has(abi.Late))
	assert.Equal(t, append(closed, "on_model_chunk", "after_model"), s.calls())
}

func TestABeforeHookOfASweptOperationIsCancelled(t *testing.T) {
	var op *chain.Op
	sweeps := responder("sweeps").at(abi.BeforeModel, func(context.Context, *abi.Event) (abi.Verdict, error) {
		op.Run().Finish(context.Background(), true)
		return abi.Verdict{Kind: abi.Continue}, nil
	})
	behind := responder("behind")
	w := chainOf(t, sweeps, behind)
	op = w.model()
	assert.True(t, dispatch(op, abi.BeforeModel, "question").Cancelled, "a call that not all stages saw must not be made")
	assert.NotContains(t, behind.calls(), "before_model")
	assert.Equal(t, []string{"before_model", "close model cancelled", "after_run"}, sweeps.calls())
}

func TestAnAfterHookThatTheSweepOvertakesIsLate(t *testing.T) {
	var op *chain.Op
	first := responder("first").at(abi.AfterModel, func(context.Context, *abi.Event) (abi.Verdict, error) {
		op.Run().Finish(context.Background(), true)
		return abi.Verdict{Kind: abi.Continue}, nil
	})
	second := transformer("second").at(abi.AfterModel, appends("!"))
	w := chainOf(t, first, second)
	op = w.model()
	dispatch(op, abi.BeforeModel, "question")
	assert.Equal(t, "reply!", textOf(dispatch(op, abi.AfterModel, "reply").Subject), "it still transforms")
	assert.Equal(t, []string{"before_model", "after_model", "after_run"}, first.calls())
	assert.Equal(t, []string{"before_model", "close model cancelled", "after_run", "after_model"}, second.calls())
	assert.True(t, second.last(t, abi.AfterModel).Flags.Has(abi.Late|abi.Entered))
}

func TestALateHookTakesNoClose(t *testing.T) {
	var op *chain.Op
	first := responder("first").at(abi.Close, func(context.Context, *abi.Event) (abi.Verdict, error) {
		dispatch(op, abi.AfterModel, "reply")
		return abi.Verdict{Kind: abi.Continue}, nil
	})
	second := responder("second")
	w := chainOf(t, first, second)
	op = w.model()
	dispatch(op, abi.BeforeModel, "question")
	op.End(context.Background(), abi.ReasonCancelled)
	assert.Equal(t, []string{"before_model", "after_model", "close model cancelled"}, second.calls())
	assert.True(t, second.last(t, abi.AfterModel).Flags.Has(abi.Late), "the close was still to come")
}

func TestStrayHooksSettleNothing(t *testing.T) {
	s := transformer("s").at(abi.AfterAgent, continues).at(abi.AfterModel, appends("!"))
	w := chainOf(t, s)
	r := w.begin()
	op := r.Stray(abi.OpModel, abi.Event{Agent: "helper"})
	assert.Equal(t, "reply!", textOf(dispatch(op, abi.AfterModel, "reply").Subject))
	seen := s.last(t, abi.AfterModel)
	assert.False(t, seen.Flags.Has(abi.Entered))
	assert.True(t, seen.Flags.Has(abi.Late))
	_, ops := w.ledger.Open()
	assert.Zero(t, ops)
	require.NoError(t, op.Set("s", "k", []byte("v")))
	_, found := op.Get("s", "k")
	assert.False(t, found, "what is closed keeps no state")
}

func TestAStageThatDidNotEnterIsTold(t *testing.T) {
	s := responder("s")
	w := chainOf(t, s)
	dispatch(w.model(), abi.AfterModel, "reply")
	assert.False(t, s.last(t, abi.AfterModel).Flags.Has(abi.Entered))
	op := w.model()
	dispatch(op, abi.BeforeModel, "question")
	dispatch(op, abi.AfterModel, "reply")
	assert.True(t, s.last(t, abi.AfterModel).Flags.Has(abi.Entered))
}

func TestTheRunIsClosedByAfterRunOrClose(t *testing.T) {
	for name, c := range map[string]struct {
		end    func(w *world, r *chain.Run)
		reason abi.Reason
	}{
		"done":      {func(_ *world, r *chain.Run) { r.Finish(context.Background(), false) }, abi.ReasonDone},
		"cancelled": {func(_ *world, r *chain.Run) { r.Finish(context.Background(), true) }, abi.ReasonCancelled},
		"refused": {func(_ *world, r *chain.Run) {
			r.Deny(chain.Denial{Refusal: abi.Refusal{Code: "x"}})
			r.Finish(context.Background(), false)
		}, abi.ReasonRefused},
		"idle": {func(w *world, r *chain.Run) {
			w.clock.advance(time.Hour)
			assert.Equal(w.t, 1, w.ledger.FinishIdle(context.Background(), time.Minute))
		}, abi.ReasonEnded},
		"twice": {func(_ *world, r *chain.Run) {
			r.Finish(context.Background(), false)
			r.Finish(context.Background(), true)
		}, abi.ReasonDone},
	} {
		t.Run(name, func(t *testing.T) {
			all, pair, late := responder("all"), responder("pair").hears(abi.BeforeRun, abi.Close), responder("late").hears(abi.AfterRun, abi.Close)
			w := chainOf(t, all, pair, late)
			r := w.begin()
			dispatch(r.Root(), abi.BeforeRun, "")
			c.end(w, r)
			assert.Equal(t, []string{"before_run", "after_run"}, all.calls())
			assert.Equal(t, c.reason, all.last(t, abi.AfterRun).Reason)
			assert.Equal(t, []string{"before_run", "close run " + c.reason.String()}, pair.calls())
			assert.Equal(t, []string{"after_run"}, late.calls())
			assert.False(t, late.last(t, abi.AfterRun).Flags.Has(abi.Entered))
			assert.True(t, r.Over())
		})
	}
}

func TestTheSweepGoesFromTheInsideOut(t *testing.T) {
	s := responder("s")
	w := chainOf(t, s)
	r := w.begin()
	var outer, inner, agents []*chain.Op
	for _, kind := range []abi.Operation{abi.OpAgent, abi.OpModel, abi.OpTool, abi.OpAgent, abi.OpTool, abi.OpModel} {
		op := w.open(r, kind)
		dispatch(op, map[abi.Operation]abi.Hook{abi.OpAgent: abi.BeforeAgent, abi.OpModel: abi.BeforeModel, abi.OpTool: abi.BeforeTool}[kind], "")
		switch kind {
		case abi.OpTool:
			inner = append([]*chain.Op{op}, inner...)
		case abi.OpModel:
			outer = append([]*chain.Op{op}, outer...)
		default:
			agents = append([]*chain.Op{op}, agents...)
		}
	}
	r.Finish(context.Background(), false)
	var want, got []string
	for _, op := range append(append(inner, outer...), agents...) {
		want = append(want, op.ID())
	}
	for _, ev := range s.events() {
		if ev.Hook == abi.Close {
			got = append(got, ev.Op.ID())
		}
	}
	assert.Equal(t, want, got, "tools, models, agents, the last opened first")
	assert.Equal(t, "after_run", s.calls()[len(s.calls())-1], "and the run at the end")
}

func TestAnAgentThatIsOpenAtTheEndJustEnded(t *testing.T) {
	s := responder("s")
	w := chainOf(t, s)
	r := w.begin()
	dispatch(w.open(r, abi.OpAgent), abi.BeforeAgent, "")
	r.Finish(context.Background(), false)
	assert.Equal(t, []string{"before_agent", "close agent ended", "after_run"}, s.calls())
	assert.Equal(t, abi.ReasonEnded, s.last(t, abi.AfterRun).Reason, "nobody can tell how the run went")
}

func TestADetachedRecordLivesWhileItHasOpenOperations(t *testing.T) {
	s := responder("s")
	w := chainOf(t, s)
	r := w.ledger.Detach(abi.Event{App: "app"})
	first, second := w.open(r, abi.OpModel), w.open(r, abi.OpTool)
	dispatch(first, abi.BeforeModel, "")
	dispatch(first, abi.AfterModel, "")
	assert.False(t, r.Over())
	dispatch(second, abi.BeforeTool, "")
	dispatch(second, abi.AfterTool, "")
	assert.True(t, r.Over())
	assert.Equal(t, []string{"before_model", "after_model", "before_tool", "after_tool"}, s.calls(), "a run that never began has no after_run")
	runs, _ := w.ledger.Open()
	assert.Zero(t, runs)
}

func TestAStrayHookLeavesNoDetachedRecord(t *testing.T) {
	w := chainOf(t, responder("s"))
	r := w.ledger.Detach(abi.Event{})
	dispatch(r.Stray(abi.OpModel, abi.Event{}), abi.AfterModel, "reply")
	assert.True(t, r.Over())
	runs, _ := w.ledger.Open()
	assert.Zero(t, runs)
}

func TestNothingOpensInARunThatIsOver(t *testing.T) {
	w := chainOf(t, responder("s"))
	r := w.begin()
	r.Finish(context.Background(), false)
	_, ok := r.Open(abi.OpModel, abi.Event{})
	assert.False(t, ok)
}

func TestUsageSeenLastGoesIntoTheClose(t *testing.T) {
	chunk := func(op *chain.Op, u abi.Usage) {
		ev := event(abi.OnModelChunk, "chunk")
		ev.Usage = u
		op.Dispatch(context.Background(), abi.OnModelChunk, ev)
	}
	tokens := func(prompt, candidates int64) abi.Usage {
		return abi.Usage{Mask: abi.HasPrompt | abi.HasCandidates | abi.HasTotal, Prompt: prompt, Candidates: candidates, Total: prompt + candidates}
	}
	s := responder("s")
	w := chainOf(t, s)
	op := w.model()
	var ending abi.Ending
	op.Own("reservation", func(_ context.Context, e abi.Ending) { ending = e })
	dispatch(op, abi.BeforeModel, "question")
	chunk(op, tokens(20, 5))
	chunk(op, tokens(20, 12))
	chunk(op, abi.Usage{})
	op.Run().Finish(context.Background(), false)

	assert.Equal(t, tokens(20, 12), s.last(t, abi.Close).Usage)
	assert.Equal(t, abi.Ending{Reason: abi.ReasonCancelled, Usage: tokens(20, 12)}, ending)
}

func TestCase028ACancelledStreamIsStillSpend(t *testing.T) {
	for name, c := range map[string]struct {
		usages []abi.Usage
		spent  int64
		known  bool
	}{
		"after two partials": {[]abi.Usage{
			{Mask: abi.HasPrompt | abi.HasCandidates | abi.HasTotal, Prompt: 20, Candidates: 5, Total: 25},
			{Mask: abi.HasPrompt | abi.HasCandidates | abi.HasTotal, Prompt: 20, Candidates: 12, Total: 32},
		}, 32, true},
		"before any usage": {nil, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			meter, limit := observer("meter"), responder("limit")
			w := chainOf(t, limit, meter)
			op := w.model()
			released := 0
			op.Own("lease", func(context.Context, abi.Ending) { released++ })
			dispatch(op, abi.BeforeModel, "question")
			for _, u := range c.usages {
				ev := event(abi.OnModelChunk, "chunk")
				ev.Usage = u
				op.Dispatch(context.Background(), abi.OnModelChunk, ev)
			}
			op.Run().Finish(context.Background(), true)

			var records []abi.Event
			for _, ev := range meter.events() {
				if ev.Hook == abi.Close && ev.Of == abi.OpModel {
					records = append(records, ev)
				}
			}
			require.Len(t, records, 1)
			assert.Equal(t, abi.ReasonCancelled, records[0].Reason)
			assert.Equal(t, c.spent, records[0].Usage.Spent())
			assert.Equal(t, c.known, records[0].Usage.Known())
			assert.Equal(t, 1, released)
		})
	}
}

func TestCase029RetriesStepsAndBranchesAddUp(t *testing.T) {
	meter := observer("meter")
	w := chainOf(t, meter)
	r := w.begin()
	call := func() *chain.Op {
		op := w.open(r, abi.OpModel)
		dispatch(op, abi.BeforeModel, "question")
		return op
	}
	answer := func(op *chain.Op, prompt, candidates int64) {
		ev := event(abi.AfterModel, "reply")
		ev.Usage = abi.Usage{Mask: abi.HasPrompt | abi.HasCandidates | abi.HasTotal, Prompt: prompt, Candidates: candidates, Total: prompt + candidates}
		op.Dispatch(context.Background(), abi.AfterModel, ev)
	}
	dispatch(call(), abi.OnModelError, "503")
	answer(call(), 100, 20)
	answer(call(), 150, 30)
	b1, b2 := call(), call()
	answer(b2, 300, 60)
	answer(b1, 200, 40)
	r.Finish(context.Background(), false)

	var ends, failed, turns int
	var prompt, candidates, total int64
	ids := map[string]bool{}
	for _, ev := range meter.events() {
		switch ev.Hook {
		case abi.AfterModel:
			ends++
			prompt, candidates, total = prompt+ev.Usage.Prompt, candidates+ev.Usage.Candidates, total+ev.Usage.Spent()
			ids[ev.Op.ID()] = true
		case abi.OnModelError:
			failed++
			assert.False(t, ev.Usage.Known())
		case abi.AfterRun:
			turns++
			assert.Equal(t, int64(5), ev.ModelCalls)
		}
	}
	assert.Equal(t, []int{4, 1, 1}, []int{ends, failed, turns})
	assert.Equal(t, []int64{750, 150, 900}, []int64{prompt, candidates, total})
	assert.Len(t, ids, 4, "each call has an id of its own")
}

func TestStateLivesAsLongAsItsScope(t *testing.T) {
	w := chainOf(t)
	r := w.begin()
	op := w.open(r, abi.OpModel)
	for _, scope := range []abi.Scope{r.Root(), op} {
		_, found := scope.Get("s", "k")
		assert.False(t, found)
		require.NoError(t, scope.Set("s", "k", nil))
		v, found := scope.Get("s", "k")
		assert.True(t, found, "an empty value is one")
		assert.Empty(t, v)
		_, found = scope.Get("other", "k")
		assert.False(t, found, "another stage has its own")
		require.NoError(t, scope.Set("s", "k", []byte(scope.ID())))
	}
	v, _ := op.Get("s", "k")
	assert.Equal(t, op.ID(), string(v))
	other := w.open(r, abi.OpModel)
	_, found := other.Get("s", "k")
	assert.False(t, found, "another call of the same agent has its own")

	op.End(context.Background(), abi.ReasonDone)
	_, found = op.Get("s", "k")
	assert.False(t, found)
	_, found = r.Root().Get("s", "k")
	assert.True(t, found)
	r.Finish(context.Background(), false)
	_, found = r.Root().Get("s", "k")
	assert.False(t, found)
}

func TestStateIsStillThereAtTheClose(t *testing.T) {
	read := map[abi.Hook]string{}
	s := responder("s")
	remember := func(_ context.Context, ev *abi.Event) (abi.Verdict, error) {
		v, _ := ev.Op.Get("s", "k")
		read[ev.Hook] = string(v)
		return abi.Verdict{Kind: abi.Continue}, ev.Op.Set("s", "k", []byte("set at "+ev.Hook.String()))
	}
	for _, h := range []abi.Hook{abi.BeforeRun, abi.BeforeModel, abi.AfterRun, abi.Close} {
		s.at(h, remember)
	}
	w := chainOf(t, s)
	r := w.begin()
	dispatch(r.Root(), abi.BeforeRun, "")
	dispatch(w.open(r, abi.OpModel), abi.BeforeModel, "")
	r.Finish(context.Background(), true)
	assert.Equal(t, map[abi.Hook]string{
		abi.BeforeRun: "", abi.BeforeModel: "", abi.Close: "set at before_model", abi.AfterRun: "set at before_run",
	}, read)
}

func TestStateIsBounded(t *testing.T) {
	op := chainOf(t).model()
	assert.ErrorIs(t, op.Set("s", "k", make([]byte, abi.MaxState+1)), chain.ErrStateFull)
	assert.ErrorIs(t, op.Set("s", string(make([]byte, abi.MaxKey+1)), nil), chain.ErrStateFull)
	require.NoError(t, op.Set("s", "k", make([]byte, abi.MaxState)))
	var err error
	for i := 0; err == nil && i < 10_000; i++ {
		err = op.Set("s", string(rune('a'+i)), nil)
	}
	assert.ErrorIs(t, err, chain.ErrStateFull)
	require.NoError(t, op.Set("s", "k", nil), "what is there can be set again")
	op.Delete("s", "k")
	require.NoError(t, op.Set("s", "new", nil), "and makes room when it is deleted")
	require.NoError(t, op.Set("other", "k", nil))
}

func TestStateAdds(t *testing.T) {
	op := chainOf(t).model()
	add := func(delta int64) int64 {
		n, err := op.Add("s", "n", delta)
		require.NoError(t, err)
		return n
	}
	assert.Equal(t, int64(5), add(5))
	assert.Equal(t, int64(-2), add(-7))
	assert.Equal(t, int64(1<<63-1), func() int64 { add(1<<63 - 1); return add(1 << 62) }(), "saturates")
	require.NoError(t, op.Set("s", "text", []byte("x")))
	_, err := op.Add("s", "text", 1)
	assert.ErrorIs(t, err, chain.ErrStateType)
	op.Delete("s", "n")
	assert.Equal(t, int64(1), add(1))
}

func TestStateIsAStagesOwnCopy(t *testing.T) {
	op := chainOf(t).model()
	value := []byte("value")
	require.NoError(t, op.Set("s", "k", value))
	value[0] = 'X'
	got, _ := op.Get("s", "k")
	assert.Equal(t, "value", string(got))
}

func TestOwnedResourcesAreReleasedOnceInTheirOrder(t *testing.T) {
	var released []string
	owns := func(scope abi.Scope, key string) {
		scope.Own(key, func(_ context.Context, e abi.Ending) { released = append(released, key+" "+e.Reason.String()) })
	}
	s := responder("s").at(abi.Close, func(context.Context, *abi.Event) (abi.Verdict, error) {
		released = append(released, "told")
		return abi.Verdict{Kind: abi.Continue}, nil
	})
	w := chainOf(t, s)
	r := w.begin()
	op := w.open(r, abi.OpModel)
	dispatch(op, abi.BeforeModel, "")
	owns(r.Root(), "lease")
	owns(op, "first")
	owns(op, "second")
	owns(op, "taken back")
	owns(op, "third")
	op.Disown("taken back")
	op.Disown("never there")
	r.Finish(context.Background(), true)
	want := []string{"told", "first cancelled", "second cancelled", "third cancelled", "lease cancelled"}
	assert.Equal(t, want, released, "after the last stage heard of the end")

	r.Finish(context.Background(), true)
	op.End(context.Background(), abi.ReasonDone)
	assert.Equal(t, want, released)
	owns(op, "too late")
	assert.Equal(t, append(want, "too late cancelled"), released, "what comes after the end goes at once")
}

func TestOneOwnerPerKey(t *testing.T) {
	var released []string
	op := chainOf(t).model()
	for _, what := range []string{"old", "new"} {
		op.Own("key", func(context.Context, abi.Ending) { released = append(released, what) })
	}
	op.End(context.Background(), abi.ReasonDone)
	assert.Equal(t, []string{"new"}, released)
}

func TestReleasesOutliveTheCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	op := chainOf(t).model()
	var err error
	op.Own("lease", func(ctx context.Context, _ abi.Ending) { err = ctx.Err() })
	cancel()
	op.Run().Finish(ctx, true)
	require.NoError(t, err)
	op = chainOf(t).model()
	op.Own("lease", func(ctx context.Context, _ abi.Ending) { err = ctx.Err() })
	op.End(ctx, abi.ReasonDone)
	assert.NoError(t, err)
}

// TestCase035OverlappingCallsDoNotSwap: the estimate is kept in the state of
// the call between its hooks, and the account is settled at its close.
func TestCase035OverlappingCallsDoNotSwap(t *testing.T) {
	const estimate = 6000
	var mu sync.Mutex
	balance := map[string]int64{}
	bucket := func(user string, change int64) {
		mu.Lock()
		defer mu.Unlock()
		if _, there := balance[user]; !there {
			balance[user] = 60_000
		}
		balance[user] += change
	}
	settle := func(_ context.Context, ev *abi.Event) (abi.Verdict, error) {
		reserved, err := ev.Op.Add("limit", "reserved", 0)
		if err == nil {
			bucket(ev.User, reserved-ev.Usage.Spent())
		}
		return abi.Verdict{Kind: abi.Continue}, err
	}
	limit := func() *stage {
		return responder("limit").at(abi.AfterModel, settle).at(abi.OnModelError, settle).
			at(abi.BeforeModel, func(_ context.Context, ev *abi.Event) (abi.Verdict, error) {
				bucket(ev.User, -estimate)
				_, err := ev.Op.Add("limit", "reserved", estimate)
				return abi.Verdict{Kind: abi.Continue}, err
			})
	}
	begin := func(w *world, user string) *chain.Run {
		balance = map[string]int64{}
		r := w.ledger.Begin(abi.Event{App: "app", User: user, Invocation: "the same"})
		w.t.Cleanup(func() { r.Finish(context.Background(), false) })
		return r
	}
	before := func(w *world, r *chain.Run) *chain.Op {
		op := w.open(r, abi.OpModel)
		dispatch(op, abi.BeforeModel, "question")
		return op
	}
	after := func(op *chain.Op, actual int64) {
		ev := event(abi.AfterModel, "reply")
		ev.Usage = abi.Usage{Mask: abi.HasTotal, Total: actual}
		op.Dispatch(context.Background(), abi.AfterModel, ev)
	}

	t.Run("A: two users at once", func(t *testing.T) {
		w := chainOf(t, limit())
		ra, rb := begin(w, "A"), begin(w, "B")
		a, b := before(w, ra), before(w, rb)
		after(b, 3000)
		after(a, 5000)
		assert.Equal(t, map[string]int64{"A": 55_000, "B": 57_000}, balance)
	})
	t.Run("B: two branches of one invocation", func(t *testing.T) {
		w := chainOf(t, limit())
		r := begin(w, "A")
		b1, b2 := before(w, r), before(w, r)
		after(b1, 1000)
		after(b2, 9000)
		assert.Equal(t, int64(50_000), balance["A"])
	})
	t.Run("C: one of them fails", func(t *testing.T) {
		w := chainOf(t, limit())
		r := begin(w, "A")
		b1, b2 := before(w, r), before(w, r)
		dispatch(b1, abi.OnModelError, "503")
		after(b2, 9000)
		assert.Equal(t, int64(51_000), balance["A"])
	})
	t.Run("D: five hundred at once", func(t *testing.T) {
		w := chainOf(t, limit())
		var all sync.WaitGroup
		balance = map[string]int64{}
		for i := range 500 {
			all.Go(func() {
				r := w.ledger.Begin(abi.Event{App: "app", User: string(rune('a' + i)), Invocation: "the same"})
				op, _ := r.Open(abi.OpModel, abi.Event{})
				dispatch(op, abi.BeforeModel, "question")
				after(op, int64(i))
				r.Finish(context.Background(), false)
			})
		}
		all.Wait()
		for i := range 500 {
			assert.Equal(t, int64(60_000-i), balance[string(rune('a'+i))])
		}
		runs, ops := w.ledger.Open()
		assert.Equal(t, []int{0, 0}, []int{runs, ops})
	})
}

func TestClosesAreExactlyOneUnderConcurrency(t *testing.T) {
	s := responder("s").hears(abi.BeforeModel, abi.AfterModel, abi.OnModelError, abi.Close)
	w := chainOf(t, s)
	for range 200 {
		op := w.model()
		dispatch(op, abi.BeforeModel, "")
		var all sync.WaitGroup
		all.Go(func() { op.End(context.Background(), abi.ReasonEnded) })
		all.Go(func() { op.Run().Finish(context.Background(), true) })
		all.Go(func() { op.Run().Finish(context.Background(), false) })
		all.Wait()
	}
	closes := 0
	for _, call := range s.calls() {
		if call != "before_model" {
			closes++
		}
	}
	assert.Equal(t, 200, closes)
}

func TestAPanicInAStageIsItsFailure(t *testing.T) {
	s := responder("s").onError(chain.Open)
	for _, h := range abi.Hooks() {
		s.at(h, panics)
	}
	behind := observer("behind")
	w := chainOf(t, s, behind)
	for _, h := range abi.Hooks() {
		assert.Equal(t, chain.Outcome{}, w.at(h, "value"), h.String())
		assert.Equal(t, h, behind.last(t, h).Hook)
	}
	var failure *chain.Failure
	require.True(t, errors.As(w.trace.steps[0].Err, &failure))
	assert.Equal(t, chain.CauseTrap, failure.Cause)
	assert.NotContains(t, w.trace.steps[0].Err.Error(), "4111", "what a panic says can hold what a user wrote")
}

func TestAReleaseThatPanicsKeepsNoneOfTheOthers(t *testing.T) {
	w := chainOf(t)
	r := w.begin()
	released := []string{}
	r.Own("first", func(context.Context, abi.Ending) { panic("broken") })
	r.Own("second", func(context.Context, abi.Ending) { released = append(released, "second") })

	assert.Panics(t, func() { r.Finish(context.Background(), false) })

	assert.Equal(t, []string{"second"}, released)
	runs, _ := w.ledger.Open()
	assert.Zero(t, runs)
}

func TestAnOperationThatItsBeforeHookKeptFromRunningHasNotBegun(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		verdict abi.Verdict
		ctx     context.Context
		want    bool
	}{
		"refused":                   {abi.Verdict{Kind: abi.Respond, Answer: abi.Answer{Refusal: &abi.Refusal{Code: "no", Text: "no"}}}, context.Background(), true},
		"the caller left before it": {abi.Verdict{Kind: abi.Continue}, cancelled, true},
		"it ran":                    {abi.Verdict{Kind: abi.Continue}, context.Background(), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := responder("s").at(abi.BeforeModel, func(context.Context, *abi.Event) (abi.Verdict, error) { return c.verdict, nil })
			w := chainOf(t, s)
			r := w.begin()
			op := w.open(r, abi.OpModel)
			var end abi.Ending
			op.Own("reservation", func(_ context.Context, e abi.Ending) { end = e })

			op.Dispatch(c.ctx, abi.BeforeModel, event(abi.BeforeModel, "question"))
			r.Finish(context.Background(), true)

			assert.Equal(t, c.want, end.NotBegun)
		})
	}
}
