package chain

import (
	"context"
	"strings"
	"time"

	"github.com/hookhost/hookhost/abi"
)

// Outcome is what the stages made of one hook.
type Outcome struct {
	Subject    abi.Subject // the amended value; nil when nothing changed
	Answer     abi.Subject // the answer in place of the value; nil for none
	AnsweredBy string      // the stage; empty for the host
	Denial     *Denial     // when the answer is a refusal
	Hold       bool        // at on_model_chunk and on_event: nothing of it goes out
	Cancelled  bool        // the caller went away while a before-hook ran or waited
}

// Dispatch runs the stages that ask for the event's hook, and closes the
// operation where the hook is its end. Only before-hooks follow the caller's
// context; all that comes after an operation began has to be heard, also when
// the caller is gone. The event is the chain's from here on.
func (op *Op) Dispatch(ctx context.Context, h abi.Hook, ev *abi.Event) Outcome {
	if ctx.Err() != nil {
		op.run.cut.Store(true)
	}
	if !op.run.chain.Wants(h) && op.passes(h, ev.Usage) {
		return Outcome{}
	}
	op.run.called(ctx)
	op.run.enter()
	defer op.run.leave(context.WithoutCancel(ctx))
	if h == abi.BeforeModel {
		op.run.calls.Add(1)
	}
	op.complete(h, ev)
	if ctx.Err() != nil {
		ev.Flags |= abi.Cancelled
	}
	switch h {
	case abi.BeforeRun, abi.BeforeAgent, abi.BeforeModel, abi.BeforeTool:
		return op.before(ctx, ev)
	case abi.OnModelChunk:
		return op.chunk(context.WithoutCancel(ctx), ev)
	default:
		return op.after(context.WithoutCancel(ctx), ev)
	}
}

// passes is all there is to do at a hook that no stage asks for and that ends
// nothing. It reports false for the others.
func (op *Op) passes(h abi.Hook, usage abi.Usage) bool {
	switch h {
	case abi.OnUserMessage, abi.OnEvent:
	case abi.OnModelChunk:
		op.mu.Lock()
		op.saw(h, usage, op.run.ledger.clock.Now().Sub(op.began))
		op.mu.Unlock()
	default:
		return false
	}
	op.run.touch()
	return true
}

// saw keeps what a response tells of its call. The last figure that was seen
// is the figure. It wants the lock.
func (op *Op) saw(h abi.Hook, usage abi.Usage, elapsed time.Duration) {
	if op.kind == abi.OpModel && op.firstChunk == 0 && (h == abi.OnModelChunk || h == abi.AfterModel) {
		op.firstChunk = max(elapsed, 1)
	}
	if usage.Known() {
		op.usage = usage
	}
}

// complete adds to what a hook knows what its operation and run know.
func (op *Op) complete(h abi.Hook, ev *abi.Event) {
	now := op.run.ledger.clock.Now()
	ev.Hook, ev.Op, ev.Run, ev.Of, ev.Time = h, op.scope, &op.run.scope, op.kind, now
	run := &op.run.base
	ev.App, ev.User, ev.Session, ev.Invocation = run.App, run.User, run.Session, run.Invocation
	inherit(&ev.Agent, op.about.agent)
	inherit(&ev.Branch, op.about.branch)
	inherit(&ev.Model, op.about.model)
	inherit(&ev.Tool, op.about.tool)
	inherit(&ev.CallID, op.about.call)
	if ev.State == nil {
		ev.State = op.about.state
	}
	ev.Flags |= run.Flags
	ev.ModelCalls = op.run.calls.Load()
	ev.Elapsed = now.Sub(op.began)

	op.mu.Lock()
	defer op.mu.Unlock()
	op.saw(h, ev.Usage, ev.Elapsed)
	ev.FirstChunk, ev.Usage = op.firstChunk, op.usage
	if op.closed && h != abi.Close {
		ev.Flags |= abi.Late
	}
	if op.recovered && h == abi.AfterModel {
		ev.Flags |= abi.Recovered
	}
	if h == abi.AfterTool || h == abi.AfterModel {
		ev.Source, ev.AnsweredBy = op.source, op.answeredBy
	}
}

func inherit(s *string, from string) {
	if *s == "" {
		*s = from
	}
}

// before runs a before-hook. An answer ends the operation, but for a tool's:
// ADK runs after_tool on it.
func (op *Op) before(ctx context.Context, ev *abi.Event) Outcome {
	if ctx.Err() != nil {
		op.cancel(ctx)
		return Outcome{Cancelled: true}
	}
	p := pass{op: op, ev: ev, value: ev.Subject}
	if ev.Hook == abi.BeforeModel && ev.ModelCalls > op.run.chain.maxCalls {
		p.answerByHost(tooManyCalls)
	}
	p.run(ctx)
	out := p.outcome()
	switch {
	case out.Cancelled:
		op.cancel(ctx)
		return out
	case p.answer == nil:
		return out
	}
	if ev.Hook == abi.BeforeModel && !p.byHost() {
		p.maskAnswer(ctx)
		out = p.outcome()
	}
	op.answered(ctx, ev.Hook, out)
	return out
}

// cancel ends an operation whose caller went away before it began. The run
// itself still gets its after_run.
func (op *Op) cancel(ctx context.Context) {
	if op.kind != abi.OpRun {
		op.endBefore(ctx, abi.ReasonCancelled)
	}
}

// tooManyCalls is the refusal that bounds a run which would call models for
// ever.
var tooManyCalls = Denial{Refusal: abi.Refusal{
	Code: "max_model_calls",
	Text: "This request took too many steps, so the work stopped early.",
}}

// answered ends an operation that a stage answered in its place.
func (op *Op) answered(ctx context.Context, h abi.Hook, out Outcome) {
	reason := abi.ReasonAnswered
	if out.Denial != nil {
		reason = abi.ReasonRefused
	}
	switch h {
	case abi.BeforeRun:
		op.run.Deny(op.denial(out))
	case abi.BeforeTool:
		op.mu.Lock()
		op.source, op.answeredBy, op.reason = abi.SourceAnswered, out.AnsweredBy, reason
		op.mu.Unlock()
	default:
		if out.Denial != nil {
			op.run.stop(*out.Denial)
		}
		op.endBefore(ctx, reason)
	}
}

// denial makes one of a before_run answer that is none: it denies the run all
// the same.
func (op *Op) denial(out Outcome) Denial {
	if out.Denial != nil {
		return *out.Denial
	}
	refusal := readable(abi.Refusal{Code: "answered", Text: textOf(out.Answer)})
	return Denial{Stage: out.AnsweredBy, Refusal: refusal, Answer: out.Answer}
}

// readable gives a refusal that says nothing a text: nobody is refused in
// silence.
func readable(r abi.Refusal) abi.Refusal {
	if strings.TrimSpace(r.Text) == "" {
		r.Text = "This request was declined."
	}
	return r
}

func textOf(s abi.Subject) string {
	var text string
	for _, leaf := range s.Leaves() {
		if leaf.Kind == abi.LeafText {
			text += leaf.Text
		}
	}
	return text
}

// after runs every other hook: those that follow an operation, and those that
// belong to none.
func (op *Op) after(ctx context.Context, ev *abi.Event) Outcome {
	p := pass{op: op, ev: ev, value: ev.Subject}
	if latch := op.latched(); latch != nil && ev.Hook == abi.AfterModel {
		p.answerByHost(*latch)
	}
	p.run(ctx)
	out := p.outcome()
	if out.Denial != nil && op.kind == abi.OpModel {
		op.run.stop(*out.Denial)
	}
	switch ev.Hook {
	case abi.OnModelError:
		op.mu.Lock()
		op.recovered = out.Answer != nil
		op.mu.Unlock()
		if ev.Flags.Has(abi.Cancelled) {
			op.End(ctx, abi.ReasonCancelled)
		} else {
			op.End(ctx, abi.ReasonError)
		}
	case abi.OnToolError:
		op.mu.Lock()
		op.source = abi.SourceError
		op.mu.Unlock()
	case abi.AfterAgent, abi.AfterModel, abi.AfterTool:
		op.End(ctx, op.endReason())
	}
	return out
}

// endReason is how an operation ended that came to its after-hook.
func (op *Op) endReason() abi.Reason {
	op.mu.Lock()
	defer op.mu.Unlock()
	switch {
	case op.source == abi.SourceError:
		return abi.ReasonError
	case op.source == abi.SourceAnswered:
		return op.reason
	}
	return abi.ReasonDone
}

func (op *Op) latched() *Denial {
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.latch
}

// dispatchAfterRun gives after_run to the stages that ask for it. It is the
// close of those that entered the run.
func (op *Op) dispatchAfterRun(ctx context.Context, reason abi.Reason) {
	p := pass{op: op, ev: &abi.Event{Reason: reason}}
	op.complete(abi.AfterRun, p.ev)
	p.run(ctx)
}
