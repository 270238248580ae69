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

// causes are the ways to fail, with the policy that decides.
var causes = map[chain.Cause]func(*chain.Spec) *chain.Policy{
	chain.CauseTrap:       onError,
	chain.CauseDeadline:   onError,
	chain.CauseMemory:     onError,
	chain.CauseBadVerdict: onError,
	chain.CausePoolFull:   onError,
	chain.CauseFail:       onError,
	chain.CauseLoad:       func(s *chain.Spec) *chain.Policy { return &s.OnLoadError },
	chain.CauseStore:      func(s *chain.Spec) *chain.Policy { return &s.OnStore },
}

func onError(s *chain.Spec) *chain.Policy { return &s.OnError }

// decides sets all policies to the one that does not matter, and the one that
// decides about the cause to p.
func decides(s *stage, c chain.Cause, p chain.Policy) *stage {
	other := chain.Open
	if p == chain.Open {
		other = chain.Closed
	}
	s.spec.OnError, s.spec.OnLoadError, s.spec.OnStore = other, other, other
	*causes[c](&s.spec) = p
	return s
}

func TestTheCauseDecides(t *testing.T) {
	for c := range causes {
		for _, h := range abi.Hooks() {
			t.Run("open "+c.String()+" "+h.String(), func(t *testing.T) {
				s, behind := decides(responder("s").at(h, fails(c)), c, chain.Open), responder("behind")
				w := chainOf(t, s, behind)
				assert.Equal(t, chain.Outcome{}, w.at(h, "value"), "open skips the stage")
				assert.Contains(t, join(behind.calls()), h.String(), "and it alone")
				step := stepOf(t, w, "s", h)
				assert.Equal(t, c, step.Cause)
				assert.Equal(t, chain.Open, step.Policy)
				assert.Zero(t, step.Verdict)
				var failed *chain.StageError
				require.ErrorAs(t, step.Err, &failed)
				assert.Equal(t, h, failed.Hook)
			})
			t.Run("closed "+c.String()+" "+h.String(), func(t *testing.T) {
				s := decides(responder("s").at(h, fails(c)), c, chain.Closed)
				meter := observer("meter")
				w := chainOf(t, s, meter)
				op := w.op(h)
				if h == abi.Close || h == abi.AfterRun {
					w.at(h, "value")
				} else {
					closesWith(t, op, h, dispatch(op, h, "value"))
				}
				assert.Equal(t, chain.Closed, stepOf(t, w, "s", h).Policy)
				assert.Contains(t, join(meter.calls()), h.String(), "an observer still looks on")
			})
		}
	}
}

// closesWith checks what a stage that fails closed does at each hook.
func closesWith(t *testing.T, op *chain.Op, h abi.Hook, out chain.Outcome) {
	t.Helper()
	denial := chain.Denial{Stage: "s", Failed: true, Refusal: abi.Refusal{Code: "stage_failed", Text: "s is not available"}}
	switch h {
	case abi.OnUserMessage:
		d, denied, first := op.Run().Denied()
		assert.True(t, denied && first, "the run is denied, and nobody was told yet")
		assert.Equal(t, denial, d)
		assert.Nil(t, out.Answer)
	case abi.OnModelChunk:
		assert.True(t, out.Hold)
		assert.Nil(t, out.Answer)
	case abi.OnEvent:
		assert.Equal(t, "s is not available", textOf(out.Subject))
		assert.Nil(t, out.Answer)
	default:
		assert.Equal(t, "s is not available", textOf(out.Answer))
		assert.Equal(t, "s", out.AnsweredBy)
		require.NotNil(t, out.Denial)
		assert.Equal(t, denial, *out.Denial)
	}
}

func stepOf(t *testing.T, w *world, stage string, h abi.Hook) chain.Step {
	t.Helper()
	for _, s := range w.trace.steps {
		if s.Stage == stage && s.Hook == h {
			return s
		}
	}
	require.Failf(t, "no step", "%s at %s", stage, h)
	return chain.Step{}
}

func join(calls []string) (all string) {
	for _, c := range calls {
		all += c + "\n"
	}
	return all
}

func TestAtTheEndClosedCanOnlyLog(t *testing.T) {
	for _, h := range []abi.Hook{abi.AfterRun, abi.Close} {
		s, behind := responder("s").at(h, fails(chain.CauseTrap)), responder("behind")
		w := chainOf(t, s, behind)
		r := w.begin()
		op := w.open(r, abi.OpModel)
		dispatch(op, abi.BeforeModel, "")
		r.Finish(context.Background(), true)
		assert.Equal(t, []string{"before_model", "close model cancelled", "after_run"}, behind.calls())
		assert.False(t, r.Stopped())
	}
}

func TestLocalIsForTheStoreAndLetsOtherStagesGoOn(t *testing.T) {
	s := responder("s").at(abi.BeforeModel, fails(chain.CauseStore)).set(func(s *chain.Spec) { s.OnStore = chain.Local })
	assert.Equal(t, chain.Outcome{}, chainOf(t, s).at(abi.BeforeModel, "value"))
	assert.NotNil(t, chainOf(t, s.at(abi.BeforeModel, fails(chain.CauseTrap))).at(abi.BeforeModel, "value").Answer)
}

func TestWhatKindOfFailureAnErrorIs(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want chain.Cause
	}{
		"any error":                          {errors.New("boom"), chain.CauseTrap},
		"a typed one":                        {&chain.Failure{Cause: chain.CauseMemory, Err: errors.New("boom")}, chain.CauseMemory},
		"a wrapped one":                      {errors.Join(errors.New("x"), &chain.Failure{Cause: chain.CauseStore, Err: errors.New("boom")}), chain.CauseStore},
		"out of time":                        {context.DeadlineExceeded, chain.CauseDeadline},
		"cancelled, though the caller waits": {context.Canceled, chain.CauseTrap},
		"as cancelled as that":               {&chain.Failure{Cause: chain.CauseCancelled, Err: context.Canceled}, chain.CauseTrap},
	} {
		w := chainOf(t, responder("s").at(abi.AfterModel, errs(c.err)), transformer("redact"))
		out := w.at(abi.AfterModel, "card 4111")
		assert.Equal(t, c.want, w.trace.steps[0].Cause, name)
		assert.Equal(t, "s is not available", textOf(out.Answer), name)
	}
}

func TestAStageThatIsSlowRunsOutOfTime(t *testing.T) {
	s := responder("s").set(func(s *chain.Spec) { s.Timeout = 5 * time.Millisecond }).at(abi.BeforeModel, hangs)
	w := chainOf(t, s)
	out := w.at(abi.BeforeModel, "question")
	assert.Equal(t, chain.CauseDeadline, w.trace.steps[0].Cause)
	assert.ErrorIs(t, w.trace.steps[0].Err, context.DeadlineExceeded)
	assert.True(t, out.Denial.Failed)
	assert.False(t, out.Cancelled)
}

func TestWhoTheCallerLeavesHasNotFailed(t *testing.T) {
	s := responder("s").at(abi.BeforeModel, hangs)
	w := chainOf(t, s)
	op := w.model()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	out := op.Dispatch(ctx, abi.BeforeModel, event(abi.BeforeModel, "question"))
	assert.True(t, out.Cancelled)
	assert.Nil(t, out.Denial)
	assert.Equal(t, chain.CauseCancelled, w.trace.steps[0].Cause)
	assert.Zero(t, w.trace.steps[0].Policy, "no policy speaks about it")
	assert.False(t, op.Run().Stopped())
}

func hangs(ctx context.Context, _ *abi.Event) (abi.Verdict, error) {
	<-ctx.Done()
	return abi.Verdict{}, ctx.Err()
}

func TestAModuleThatDidNotLoad(t *testing.T) {
	s := transformer("redact")
	broken := chain.Broken(abi.SetOf(abi.AfterModel), errors.New("not wasm"))
	c, err := chain.New("v1", 0, chain.Entry{Spec: s.spec, Stage: broken})
	require.NoError(t, err)
	w := chainOf(t)
	w.ledger.Swap(c)
	out := w.at(abi.AfterModel, "card 4111")
	assert.Equal(t, "redact is not available", textOf(out.Answer))
	assert.Equal(t, chain.CauseLoad, w.trace.last().Cause)
	assert.Equal(t, chain.Outcome{}, w.at(abi.BeforeModel, "question"), "not at a hook that it would not hear")
}

func TestAnObserverThatFailsBehindAnAnswerLeavesIt(t *testing.T) {
	meter := observer("meter").onError(chain.Closed).at(abi.BeforeModel, panics)
	out := chainOf(t, responder("cache").at(abi.BeforeModel, responds("cached")), meter).at(abi.BeforeModel, "question")
	assert.Equal(t, "cached", textOf(out.Answer))
	assert.Equal(t, "cache", out.AnsweredBy)
}

func TestAFailureIsNoDenialAndADenialNoFailure(t *testing.T) {
	failed := chainOf(t, responder("s").at(abi.BeforeModel, fails(chain.CauseStore)))
	out := failed.at(abi.BeforeModel, "question")
	assert.True(t, out.Denial.Failed)
	assert.NotContains(t, out.Denial.Text, "4111")
	assert.Zero(t, failed.trace.steps[0].Verdict)

	denied := chainOf(t, responder("s").at(abi.BeforeModel, refuses("limit.turn", "no")))
	assert.False(t, denied.at(abi.BeforeModel, "question").Denial.Failed)
	assert.Zero(t, denied.trace.steps[0].Cause)
	assert.NoError(t, denied.trace.steps[0].Err)
}

func TestClosedAtAnEventKeepsCallsAndReplacesTexts(t *testing.T) {
	s, behind := responder("s").at(abi.OnEvent, panics), transformer("behind").at(abi.OnEvent, replaces("s is", "it is"))
	w := chainOf(t, s, behind)
	m := &message{Content: &content{Parts: []*part{says("card 4111"), thinks("4111?"), says("")}}, Args: map[string]any{"card": "4111"}, Tokens: 4111}
	ev := event(abi.OnEvent, "")
	ev.Subject = subjectOf(m, false, true)
	out := w.begin().Root().Dispatch(context.Background(), abi.OnEvent, ev)

	got := out.Subject.Value().(*message)
	assert.Equal(t, "it is not available|()|", textOf(out.Subject), "read once, and the stages behind it go on")
	assert.Equal(t, map[string]any{"card": "4111"}, got.Args)
	assert.Zero(t, got.Tokens, "a number that has no room for a text goes")
	assert.Equal(t, 4111, m.Tokens)
	assert.False(t, out.Hold)
}

// stubborn is a value that cannot be edited.
type stubborn struct{ abi.Subject }

func (stubborn) Apply([]abi.Edit) (abi.Subject, error) { return nil, abi.ErrBadEdit }

func TestAnEventThatCannotBeCleanedIsHeld(t *testing.T) {
	ev := event(abi.OnEvent, "card 4111")
	ev.Subject = stubborn{ev.Subject}
	out := chainOf(t, responder("s").at(abi.OnEvent, panics)).begin().Root().Dispatch(context.Background(), abi.OnEvent, ev)
	assert.True(t, out.Hold)
}

func TestTheLatch(t *testing.T) {
	calls := 0
	redact := transformer("redact").at(abi.OnModelChunk, func(ctx context.Context, ev *abi.Event) (abi.Verdict, error) {
		if calls++; calls == 2 {
			panic("boom")
		}
		return continues(ctx, ev)
	})
	meter := observer("meter")
	w := chainOf(t, redact, meter)
	op := w.model()
	dispatch(op, abi.BeforeModel, "question")
	assert.False(t, dispatch(op, abi.OnModelChunk, "one").Hold)
	assert.True(t, dispatch(op, abi.OnModelChunk, "two").Hold)
	assert.True(t, dispatch(op, abi.OnModelChunk, "three").Hold, "later chunks are held though the stage is well again")
	out := dispatch(op, abi.AfterModel, "one two three")

	assert.Equal(t, "redact is not available", textOf(out.Answer), "and the final one is the refusal")
	require.NotNil(t, out.Denial)
	assert.True(t, out.Denial.Failed)
	assert.Equal(t, []string{"before_model", "on_model_chunk", "on_model_chunk", "on_model_chunk", "close model done"}, redact.calls())
	assert.Equal(t, "redact is not available", textOf(meter.last(t, abi.AfterModel).Subject))
	assert.True(t, op.Run().Stopped())

	other := w.model()
	assert.False(t, dispatch(other, abi.OnModelChunk, "one").Hold, "another call has a latch of its own")
}

func TestOpenLatchesNothing(t *testing.T) {
	s := transformer("s").onError(chain.Open).at(abi.OnModelChunk, panics)
	w := chainOf(t, s)
	op := w.model()
	assert.Equal(t, chain.Outcome{}, dispatch(op, abi.OnModelChunk, "one"))
	assert.Equal(t, chain.Outcome{}, dispatch(op, abi.AfterModel, "one"))
}

func TestCase034EachStageFailsByItsOwnPolicy(t *testing.T) {
	const reply, card = "Card 4111 1111 1111 1111", "4111 1111 1111 1111"
	boom := func(p chain.Policy, h abi.Hook) *stage {
		return transformer("boom").onError(p).at(h, func(_ context.Context, ev *abi.Event) (abi.Verdict, error) {
			panic(textOf(ev.Subject))
		})
	}
	redact := func() *stage { return transformer("redact").at(abi.AfterModel, replaces(card, "<CARD>")) }
	silent := func(t *testing.T, w *world, out chain.Outcome) {
		t.Helper()
		assert.NotContains(t, textOf(out.Answer)+textOf(out.Subject), "4111")
		for _, s := range w.trace.steps {
			if s.Err != nil {
				assert.NotContains(t, s.Err.Error(), "4111")
			}
		}
	}
	t.Run("a: redact, then boom, open", func(t *testing.T) {
		w := chainOf(t, redact(), boom(chain.Open, abi.AfterModel))
		assert.Equal(t, "Card <CARD>", textOf(w.at(abi.AfterModel, reply).Subject))
	})
	t.Run("b: closed at after_model", func(t *testing.T) {
		w := chainOf(t, boom(chain.Closed, abi.AfterModel))
		out := w.at(abi.AfterModel, reply)
		assert.Equal(t, "boom is not available", textOf(out.Answer))
		silent(t, w, out)
	})
	t.Run("c: closed at after_tool", func(t *testing.T) {
		w := chainOf(t, boom(chain.Closed, abi.AfterTool))
		out := w.at(abi.AfterTool, reply)
		assert.Equal(t, "boom is not available", textOf(out.Answer))
		silent(t, w, out)
	})
	t.Run("d: closed at before_run", func(t *testing.T) {
		s := responder("boom").at(abi.BeforeRun, panics)
		w := chainOf(t, s)
		r := w.begin()
		out := dispatch(r.Root(), abi.BeforeRun, reply)
		d, denied, _ := r.Denied()
		assert.True(t, denied)
		assert.Equal(t, "boom is not available", d.Text)
		silent(t, w, out)
	})
	t.Run("e: a policy that is misspelt", func(t *testing.T) {
		var p chain.Policy
		assert.ErrorContains(t, p.UnmarshalText([]byte("opne")), `unknown policy "opne"`)
	})
	t.Run("f: no policy is no policy", func(t *testing.T) {
		s := redact().onError(0)
		_, err := chain.New("v1", 0, chain.Entry{Spec: s.spec, Stage: s})
		assert.Error(t, err, "the manifest has to have filled in a default")
	})
	t.Run("g: boom, open, then redact", func(t *testing.T) {
		w := chainOf(t, boom(chain.Open, abi.AfterModel), redact())
		assert.Equal(t, "Card <CARD>", textOf(w.at(abi.AfterModel, reply).Subject))
	})
}

func TestNames(t *testing.T) {
	for _, r := range []chain.Role{chain.Observer, chain.Transformer, chain.Responder} {
		var back chain.Role
		require.NoError(t, back.UnmarshalText([]byte(r.String())))
		assert.Equal(t, r, back)
	}
	for _, m := range []chain.Mode{chain.Enforce, chain.Shadow, chain.Off} {
		var back chain.Mode
		require.NoError(t, back.UnmarshalText([]byte(m.String())))
		assert.Equal(t, m, back)
	}
	for _, p := range []chain.Policy{chain.Open, chain.Closed, chain.Local} {
		var back chain.Policy
		require.NoError(t, back.UnmarshalText([]byte(p.String())))
		assert.Equal(t, p, back)
	}
	var r chain.Role
	assert.Error(t, r.UnmarshalText(nil))
	assert.Equal(t, []string{"?", "?", "?", "?"}, []string{chain.Role(0).String(), chain.Mode(9).String(), chain.Policy(0).String(), chain.Cause(0).String()})
}
