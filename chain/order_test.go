package chain_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
)

func TestAmendsThread(t *testing.T) {
	for h, kinds := range verdictTable {
		if !contains(kinds, abi.Amend) {
			continue
		}
		t.Run(h.String(), func(t *testing.T) {
			first, looks, second := transformer("first").at(h, appends(" 1")), observer("looks"), responder("second").at(h, appends(" 2"))
			w := chainOf(t, first, looks, second)
			op := w.op(h)
			original := said("value")
			ev := event(h, "")
			ev.Subject = original
			out := op.Dispatch(context.Background(), h, ev)

			assert.Equal(t, "value 1 2", textOf(out.Subject))
			assert.Nil(t, out.Answer)
			assert.Equal(t, "value 1", textOf(looks.last(t, h).Subject), "each sees what the ones before left")
			assert.Equal(t, "value 1", textOf(second.last(t, h).Subject))
			assert.Equal(t, "value", textOf(original), "and nothing shared is written")
		})
	}
}

func TestManifestOrderDecides(t *testing.T) {
	a := func() *stage { return transformer("a").at(abi.AfterModel, appends(" a")) }
	b := func() *stage { return transformer("b").at(abi.AfterModel, appends(" b")) }
	assert.Equal(t, "x a b", textOf(chainOf(t, a(), b()).at(abi.AfterModel, "x").Subject))
	assert.Equal(t, "x b a", textOf(chainOf(t, b(), a()).at(abi.AfterModel, "x").Subject))
}

func TestWhatNobodyChangedIsNil(t *testing.T) {
	w := chainOf(t, observer("meter"), transformer("redact").at(abi.AfterModel, gives(abi.Verdict{Kind: abi.Amend})), responder("limit"))
	assert.Equal(t, chain.Outcome{}, w.at(abi.AfterModel, "value"))
	assert.Equal(t, chain.Outcome{}, chainOf(t).at(abi.BeforeModel, "value"), "an empty chain")
}

func TestAmendsAreTransactional(t *testing.T) {
	halfway := gives(abi.Verdict{Kind: abi.Amend, Edits: []abi.Edit{
		{Op: abi.EditSplice, Pointer: "/content/parts/0/text", Text: "half "},
		{Op: abi.EditRemove, Pointer: "/gone"},
	}})
	w := chainOf(t, transformer("broken").onError(chain.Open).at(abi.AfterModel, halfway), transformer("whole").at(abi.AfterModel, appends("!")))
	assert.Equal(t, "value!", textOf(w.at(abi.AfterModel, "value").Subject))
}

func TestTheFirstResponderEndsTheChain(t *testing.T) {
	before, after := observer("before"), observer("after")
	cache := responder("cache").at(abi.BeforeModel, responds("cached"))
	second := responder("second").at(abi.BeforeModel, responds("never"))
	redact := transformer("late")
	w := chainOf(t, before, cache, redact, second, after)
	out := w.at(abi.BeforeModel, "question")

	assert.Equal(t, "cached", textOf(out.Answer))
	assert.Equal(t, "cache", out.AnsweredBy)
	assert.Nil(t, out.Denial)
	assert.Nil(t, out.Subject)
	assert.Empty(t, second.events(), "nobody else answers")
	assert.NotContains(t, redact.calls(), "before_model")

	asked := before.last(t, abi.BeforeModel)
	assert.Equal(t, "question", textOf(asked.Subject))
	assert.Equal(t, abi.SourceRan, asked.Source)
	told := after.last(t, abi.BeforeModel)
	assert.Equal(t, "cached", textOf(told.Subject), "an observer behind it sees the answer")
	assert.Equal(t, abi.SourceAnswered, told.Source)
	assert.Equal(t, "cache", told.AnsweredBy)
}

func TestObserversAreNeverStarved(t *testing.T) {
	for h, kinds := range verdictTable {
		if !contains(kinds, abi.Respond) {
			continue
		}
		t.Run(h.String(), func(t *testing.T) {
			meter := observer("meter")
			w := chainOf(t, responder("limit").at(h, refuses("limit.turn", "come back later")), meter)
			out := w.at(h, "value")
			require.NotNil(t, out.Denial)
			assert.Equal(t, chain.Denial{Stage: "limit", Refusal: abi.Refusal{Code: "limit.turn", Text: "come back later", Retry: 2 * time.Second}}, *out.Denial)
			told := meter.last(t, h)
			assert.Equal(t, "come back later", textOf(told.Subject))
			assert.Equal(t, abi.SourceAnswered, told.Source)
			assert.Equal(t, "limit", told.AnsweredBy)
		})
	}
}

func TestCase031ATransformerDoesNotStarveTheMeter(t *testing.T) {
	const reply, masked = "Card 4111 1111 1111 1111, see doc 7", "Card <CARD>, see doc 7"
	step := func(w *world, op *chain.Op, text string, prompt, candidates int64) chain.Outcome {
		dispatch(op, abi.BeforeModel, "question")
		ev := event(abi.AfterModel, text)
		ev.Usage = abi.Usage{Mask: abi.HasPrompt | abi.HasCandidates | abi.HasTotal, Prompt: prompt, Candidates: candidates, Total: prompt + candidates}
		return op.Dispatch(context.Background(), abi.AfterModel, ev)
	}
	for name, c := range map[string]struct {
		order []string
		meter string // what it was given
	}{
		"redact, meter, cite": {[]string{"redact", "meter", "cite"}, masked},
		"meter, cite, redact": {[]string{"meter", "cite", "redact"}, reply},
		"cite first":          {[]string{"cite", "redact", "meter"}, masked + " [1]"},
	} {
		t.Run(name, func(t *testing.T) {
			all := map[string]*stage{
				"redact": transformer("redact").at(abi.AfterModel, replaces("4111 1111 1111 1111", "<CARD>")),
				"meter":  observer("meter"),
				"cite":   transformer("cite").at(abi.AfterModel, appends(" [1]")),
			}
			var stages []*stage
			for _, name := range c.order {
				stages = append(stages, all[name])
			}
			w := chainOf(t, stages...)
			r := w.begin()
			step(w, w.open(r, abi.OpModel), "calls a tool", 40, 10)
			out := step(w, w.open(r, abi.OpModel), reply, 40, 10)
			assert.Equal(t, masked+" [1]", textOf(out.Subject))

			var records []int64
			for _, ev := range all["meter"].events() {
				if ev.Hook == abi.AfterModel {
					records = append(records, ev.Usage.Spent())
				}
			}
			assert.Equal(t, []int64{50, 50}, records, "one record for each model call")
			assert.Equal(t, c.meter, textOf(all["meter"].last(t, abi.AfterModel).Subject))
		})
	}
}

func TestAnAnswerPassesTheAfterModelTransformers(t *testing.T) {
	cache := responder("cache").at(abi.BeforeModel, responds("card 4111"))
	redact := transformer("redact").at(abi.AfterModel, replaces("4111", "<CARD>"))
	meter, late := observer("meter"), responder("late").at(abi.AfterModel, responds("never"))
	w := chainOf(t, meter, redact, cache, late)
	out := w.at(abi.BeforeModel, "question")

	assert.Equal(t, "card <CARD>", textOf(out.Answer))
	assert.Equal(t, "cache", out.AnsweredBy)
	seen := redact.last(t, abi.AfterModel)
	assert.Equal(t, abi.SourceAnswered, seen.Source)
	assert.Equal(t, "cache", seen.AnsweredBy)
	assert.True(t, seen.Flags.Has(abi.Entered|abi.StreamEnd))
	assert.Equal(t, []string{"before_model", "after_model"}, redact.calls(), "that was its close")
	assert.Equal(t, []string{"before_model", "close model answered"}, meter.calls())
	assert.Empty(t, late.calls(), "only transformers, and none but observers after an answer")
}

func TestATransformerBehindTheCacheMasksWithoutHavingEntered(t *testing.T) {
	redact := transformer("redact").at(abi.AfterModel, replaces("4111", "<CARD>"))
	w := chainOf(t, responder("cache").at(abi.BeforeModel, responds("card 4111")), redact)
	assert.Equal(t, "card <CARD>", textOf(w.at(abi.BeforeModel, "question").Answer))
	assert.False(t, redact.last(t, abi.AfterModel).Flags.Has(abi.Entered))
	assert.Equal(t, []string{"after_model"}, redact.calls())
}

func TestARefusalOfAStageIsMaskedAndOneOfTheHostIsNot(t *testing.T) {
	shouts := func() *stage { return transformer("shouts").at(abi.AfterModel, appends("!")) }

	stage := chainOf(t, responder("limit").at(abi.BeforeModel, refuses("limit.turn", "no")), shouts())
	assert.Equal(t, "no!", textOf(stage.at(abi.BeforeModel, "question").Answer))

	failed := chainOf(t, responder("limit").at(abi.BeforeModel, fails(chain.CauseTrap)), shouts())
	assert.Equal(t, "limit is not available", textOf(failed.at(abi.BeforeModel, "question").Answer))

	s := shouts()
	w := chainOf(t)
	w.ledger.Swap(capped(t, "v2", 1, s))
	r := w.begin()
	dispatch(w.open(r, abi.OpModel), abi.BeforeModel, "question")
	out := dispatch(w.open(r, abi.OpModel), abi.BeforeModel, "question")
	require.NotNil(t, out.Denial)
	assert.Equal(t, out.Denial.Text, textOf(out.Answer))
}

func TestATransformerThatFailsClosedOnAnAnswerReplacesIt(t *testing.T) {
	redact := transformer("redact").at(abi.AfterModel, fails(chain.CauseTrap))
	w := chainOf(t, responder("cache").at(abi.BeforeModel, responds("card 4111")), redact)
	out := w.at(abi.BeforeModel, "question")
	assert.Equal(t, "redact is not available", textOf(out.Answer))
	assert.Equal(t, "redact", out.AnsweredBy)
	require.NotNil(t, out.Denial)
	assert.True(t, out.Denial.Failed)
}

func TestWaitsAreTheHosts(t *testing.T) {
	limit, behind := responder("limit").at(abi.BeforeModel, waits(3*time.Second)), observer("behind")
	w := chainOf(t, limit, behind)
	began := w.clock.Now()
	w.clock.during = func(context.Context) {
		limit.mu.Lock()
		defer limit.mu.Unlock()
		assert.Zero(t, limit.running, "no call goes on while the host waits")
	}
	out := w.at(abi.BeforeModel, "question")

	assert.Equal(t, chain.Outcome{}, out, "after the wait the value goes on as it was")
	assert.Equal(t, []time.Duration{3 * time.Second}, w.clock.sleeps)
	assert.Equal(t, []string{"before_model"}, limit.calls(), "and the stage is not asked again")
	assert.Equal(t, began.Add(3*time.Second), w.clock.Now())
	assert.Equal(t, []string{"before_model"}, behind.calls())
	assert.Equal(t, 3*time.Second, w.trace.steps[0].Wait)
}

func TestAWaitIsNotBoundByTheStagesTimeout(t *testing.T) {
	limit := responder("limit").at(abi.BeforeModel, waits(time.Hour)).set(func(s *chain.Spec) { s.Timeout = time.Millisecond })
	w := chainOf(t, limit)
	w.clock.during = func(ctx context.Context) {
		_, bounded := ctx.Deadline()
		assert.False(t, bounded)
	}
	assert.False(t, w.at(abi.BeforeModel, "question").Cancelled)
}

func TestAWaitEndsWhenTheCallerGoesAway(t *testing.T) {
	ctx, leave := context.WithCancel(context.Background())
	limit, behind := responder("limit").at(abi.BeforeModel, waits(time.Hour)), observer("behind")
	w := chainOf(t, limit, behind)
	w.clock.during = func(context.Context) { leave() }
	op := w.model()
	out := op.Dispatch(ctx, abi.BeforeModel, event(abi.BeforeModel, "question"))

	assert.True(t, out.Cancelled)
	assert.Equal(t, []string{"before_model", "close model cancelled"}, limit.calls())
	assert.True(t, limit.last(t, abi.Close).Flags.Has(abi.NotBegun), "no model was called")
	assert.Empty(t, behind.calls(), "who had not entered is not told")
	assert.True(t, op.Closed())
}

func TestTheWallClockWaitsOnTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	assert.ErrorIs(t, chain.WallClock{}.Sleep(ctx, time.Hour), context.Canceled)
	began := time.Now()
	require.NoError(t, chain.WallClock{}.Sleep(context.Background(), time.Millisecond))
	assert.GreaterOrEqual(t, time.Since(began), time.Millisecond)
}

func TestABeforeHookOnADeadContextTakesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	limit := responder("limit")
	w := chainOf(t, limit)
	for _, kind := range []abi.Operation{abi.OpAgent, abi.OpModel, abi.OpTool} {
		op := w.open(w.begin(), kind)
		h := map[abi.Operation]abi.Hook{abi.OpAgent: abi.BeforeAgent, abi.OpModel: abi.BeforeModel, abi.OpTool: abi.BeforeTool}[kind]
		assert.True(t, op.Dispatch(ctx, h, event(h, "")).Cancelled)
		assert.True(t, op.Closed())
	}
	assert.Empty(t, limit.calls())
}

func TestAfterHooksAreHeardThoughTheCallerIsGone(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	limit := responder("limit").at(abi.AfterModel, func(ctx context.Context, ev *abi.Event) (abi.Verdict, error) {
		return abi.Verdict{Kind: abi.Continue}, ctx.Err()
	})
	w := chainOf(t, limit)
	op := w.model()
	dispatch(op, abi.BeforeModel, "question")
	cancel()
	out := op.Dispatch(ctx, abi.AfterModel, event(abi.AfterModel, "reply"))
	assert.Equal(t, chain.Outcome{}, out)
	assert.True(t, limit.last(t, abi.AfterModel).Flags.Has(abi.Cancelled))
}

func TestMaxModelCalls(t *testing.T) {
	meter, limit := observer("meter"), responder("limit")
	w := chainOf(t)
	w.ledger.Swap(capped(t, "v2", 2, limit, meter))
	r := w.begin()
	for n := int64(1); n <= 2; n++ {
		op := w.open(r, abi.OpModel)
		require.Nil(t, dispatch(op, abi.BeforeModel, "question").Answer)
		assert.Equal(t, n, limit.last(t, abi.BeforeModel).ModelCalls, "this one included")
		dispatch(op, abi.AfterModel, "reply")
	}
	out := dispatch(w.open(r, abi.OpModel), abi.BeforeModel, "question")

	require.NotNil(t, out.Denial)
	assert.Equal(t, "max_model_calls", out.Denial.Code)
	assert.Empty(t, out.AnsweredBy)
	assert.False(t, out.Denial.Failed)
	assert.True(t, r.Stopped(), "it stops the run")
	assert.Len(t, limit.calls(), 4, "no stage but an observer hears of a call that the host refused")
	assert.Equal(t, "close model refused", meter.calls()[5])
	told := meter.events()[4]
	assert.Equal(t, abi.SourceAnswered, told.Source)
	assert.Empty(t, told.AnsweredBy)
	assert.Equal(t, int64(3), told.ModelCalls)
}

func TestFiveHundredModelCallsUnlessToldOtherwise(t *testing.T) {
	w := chainOf(t)
	r := w.begin()
	for range chain.DefaultMaxModelCalls {
		op := w.open(r, abi.OpModel)
		require.Nil(t, dispatch(op, abi.BeforeModel, "").Denial)
		op.End(context.Background(), abi.ReasonDone)
	}
	assert.NotNil(t, dispatch(w.open(r, abi.OpModel), abi.BeforeModel, "").Denial)
}

func TestShadowDropsWhatItDecides(t *testing.T) {
	for name, v := range map[string]verdict{
		"amend": appends("!"), "respond": responds("answer"), "refuse": refuses("limit.turn", "no"), "wait": waits(time.Second),
		"fail": fails(chain.CauseFail), "trap": fails(chain.CauseTrap), "store": fails(chain.CauseStore), "bad verdict": gives(abi.Verdict{}),
	} {
		t.Run(name, func(t *testing.T) {
			s, behind := responder("s").shadow().at(abi.BeforeModel, v), responder("behind")
			w := chainOf(t, s, behind)
			assert.Equal(t, chain.Outcome{}, w.at(abi.BeforeModel, "value"))
			assert.Empty(t, w.clock.sleeps)
			assert.Equal(t, "value", textOf(behind.last(t, abi.BeforeModel).Subject))
			assert.Equal(t, abi.SourceRan, behind.last(t, abi.BeforeModel).Source)
			step := w.trace.steps[0]
			assert.Equal(t, chain.Shadow, step.Mode, "but the trace has it")
			assert.True(t, step.Verdict != 0 || step.Cause != 0)
		})
	}
}

func TestShadowHoldsNothingAndLatchesNothing(t *testing.T) {
	s := transformer("s").shadow().at(abi.OnModelChunk, gives(abi.Verdict{Kind: abi.Continue, Holds: []abi.Hold{{Pointer: "/content/parts/0/text", Bytes: 3}}}))
	assert.Equal(t, chain.Outcome{}, chainOf(t, s).at(abi.OnModelChunk, "value"))
	s.at(abi.OnModelChunk, panics)
	assert.Equal(t, chain.Outcome{}, chainOf(t, s).at(abi.OnModelChunk, "value"))
	s.at(abi.OnEvent, panics).at(abi.OnUserMessage, panics)
	assert.Equal(t, chain.Outcome{}, chainOf(t, s).at(abi.OnEvent, "value"))
	w := chainOf(t, s)
	r := w.begin()
	dispatch(r.Root(), abi.OnUserMessage, "value")
	assert.False(t, r.Stopped())
}

func TestAStageThatIsOffIsNotCalled(t *testing.T) {
	s := responder("s").set(func(spec *chain.Spec) { spec.Mode = chain.Off }).at(abi.BeforeModel, responds("x"))
	w := chainOf(t, s)
	assert.False(t, w.ledger.Current().Wants(abi.BeforeModel))
	w.at(abi.BeforeModel, "value")
	assert.Empty(t, s.calls())
}

func TestAStageIsCalledAtWhatItWantsAndTheManifestAllows(t *testing.T) {
	s := responder("s").hears(abi.BeforeModel, abi.AfterModel)
	s.spec.Hooks = abi.SetOf(abi.AfterModel, abi.BeforeTool)
	w := chainOf(t, s)
	for _, h := range abi.Hooks() {
		assert.Equal(t, h == abi.AfterModel, w.ledger.Current().Wants(h), h.String())
	}
	w.at(abi.BeforeModel, "")
	w.at(abi.BeforeTool, "")
	assert.Empty(t, s.calls())
	w.at(abi.AfterModel, "")
	assert.Equal(t, []string{"after_model"}, s.calls())
}

func TestScopes(t *testing.T) {
	for name, c := range map[string]struct {
		set   func(*chain.Spec)
		hears bool
	}{
		"no scope":               {func(s *chain.Spec) {}, true},
		"this agent":             {func(s *chain.Spec) { s.Agents = []string{"other", "help*"} }, true},
		"another agent":          {func(s *chain.Spec) { s.Agents = []string{"other"} }, false},
		"this model":             {func(s *chain.Spec) { s.Models = []string{"m?"} }, true},
		"another model":          {func(s *chain.Spec) { s.Models = []string{"gpt-*"} }, false},
		"this app":               {func(s *chain.Spec) { s.Apps = []string{"app"} }, true},
		"another app":            {func(s *chain.Spec) { s.Apps = []string{"ap"} }, false},
		"one fits and one not":   {func(s *chain.Spec) { s.Agents, s.Apps = []string{"helper"}, []string{"other"} }, false},
		"a tool, at no tool":     {func(s *chain.Spec) { s.Tools = []string{"refund"} }, true},
		"a class of characters":  {func(s *chain.Spec) { s.Models = []string{"m[0-9]"} }, true},
		"no part of a name only": {func(s *chain.Spec) { s.Models = []string{"m"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := responder("s").set(c.set)
			w := chainOf(t, s)
			w.at(abi.BeforeModel, "")
			assert.Equal(t, c.hears, len(s.calls()) > 0)
			if c.set(&s.spec); len(s.spec.Apps) == 0 {
				r := w.begin()
				dispatch(r.Root(), abi.BeforeRun, "")
				assert.Contains(t, s.calls(), "before_run", "a run begins for all its agents, tools and models")
			}
		})
	}
}

func TestToolScope(t *testing.T) {
	s := responder("s").set(func(s *chain.Spec) { s.Tools = []string{"refund*"} })
	w := chainOf(t, s)
	r := w.begin()
	for _, tool := range []string{"lookup", "refund_all"} {
		op, _ := r.Open(abi.OpTool, abi.Event{Tool: tool})
		dispatch(op, abi.BeforeTool, "")
		dispatch(op, abi.AfterTool, "")
	}
	assert.Equal(t, []string{"before_tool", "after_tool"}, s.calls())
	assert.Equal(t, "refund_all", s.last(t, abi.AfterTool).Tool)
}

func TestAChainThatCannotBeMade(t *testing.T) {
	for name, set := range map[string]func(*chain.Spec){
		"no name":    func(s *chain.Spec) { s.Name = "" },
		"no role":    func(s *chain.Spec) { s.Role = 0 },
		"no mode":    func(s *chain.Spec) { s.Mode = 0 },
		"no policy":  func(s *chain.Spec) { s.OnStore = 0 },
		"no timeout": func(s *chain.Spec) { s.Timeout = 0 },
		"bad glob":   func(s *chain.Spec) { s.Tools = []string{"["} },
	} {
		s := responder("s").set(set)
		_, err := chain.New("v1", 0, chain.Entry{Spec: s.spec, Stage: s})
		assert.ErrorContains(t, err, "stage[", name)
	}
}

func TestTimesAreMeasuredOnTheClock(t *testing.T) {
	meter := observer("meter")
	w := chainOf(t, meter)
	op := w.model()
	dispatch(op, abi.BeforeModel, "question")
	began := meter.last(t, abi.BeforeModel)
	assert.Zero(t, began.Elapsed)
	assert.Zero(t, began.FirstChunk, "before it came")

	w.clock.advance(300 * time.Millisecond)
	dispatch(op, abi.OnModelChunk, "a")
	w.clock.advance(time.Second)
	dispatch(op, abi.OnModelChunk, "b")
	w.clock.advance(700 * time.Millisecond)
	dispatch(op, abi.AfterModel, "ab")

	done := meter.last(t, abi.AfterModel)
	assert.Equal(t, 2*time.Second, done.Elapsed)
	assert.Equal(t, 300*time.Millisecond, done.FirstChunk)
	assert.Equal(t, w.clock.Now(), done.Time)
}

func TestWithoutAStreamTheFirstChunkIsTheResponse(t *testing.T) {
	meter := observer("meter")
	w := chainOf(t, meter)
	op := w.model()
	w.clock.advance(time.Second)
	dispatch(op, abi.AfterModel, "ab")
	assert.Equal(t, time.Second, meter.last(t, abi.AfterModel).FirstChunk)

	w.at(abi.AfterModel, "at once")
	assert.Positive(t, meter.last(t, abi.AfterModel).FirstChunk, "came, even if it took no time")
}

func TestEventsKnowTheirRunAndOperation(t *testing.T) {
	meter := observer("meter")
	w := chainOf(t, meter)
	r := w.begin()
	op := w.open(r, abi.OpModel)
	dispatch(op, abi.BeforeModel, "")
	ev := meter.last(t, abi.BeforeModel)
	assert.Equal(t, []string{"app", "ann", "s1", "i1", "helper", "m1"}, []string{ev.App, ev.User, ev.Session, ev.Invocation, ev.Agent, ev.Model})
	assert.Equal(t, abi.OpModel, ev.Of)
	assert.Equal(t, r.ID(), ev.Run.ID())
	assert.Equal(t, op.ID(), ev.Op.ID())
	assert.NotEqual(t, ev.Run.ID(), ev.Op.ID())

	same, other := w.open(r, abi.OpModel), w.begin()
	assert.NotEqual(t, op.ID(), same.ID(), "the same names, but another call")
	assert.NotEqual(t, r.ID(), other.ID(), "the same invocation, but another run")
}

func TestTheTraceTellsWhatTheChainDecided(t *testing.T) {
	note := []abi.Note{{Key: "k", Value: "v"}}
	w := chainOf(t,
		observer("meter").at(abi.BeforeModel, gives(abi.Verdict{Kind: abi.Continue, Notes: note})),
		transformer("redact").at(abi.BeforeModel, appends("!")),
		transformer("broken").onError(chain.Open).at(abi.BeforeModel, errs(errors.New("boom"))),
		responder("limit").at(abi.BeforeModel, refuses("limit.turn", "no")),
	)
	w.at(abi.BeforeModel, "question")
	assert.Equal(t, []string{
		"meter before_model continue",
		"redact before_model amend",
		"broken before_model trap open",
		"limit before_model respond",
		"redact after_model continue",
		"broken after_model continue",
		"meter close continue",
		"limit close continue",
	}, w.trace.lines())
	first, refusal := w.trace.steps[0], w.trace.steps[3]
	assert.Equal(t, note, first.Notes)
	assert.Equal(t, "v1", first.Version)
	assert.Equal(t, []string{"helper", "m1"}, []string{first.Agent, first.Model})
	assert.Equal(t, "limit.turn", refusal.Code)
	assert.ErrorContains(t, w.trace.steps[2].Err, "stage[broken] before_model: trap: boom")
	assert.ErrorIs(t, w.trace.steps[2].Err, chain.ErrFailed)
}
