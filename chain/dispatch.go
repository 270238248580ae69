package chain

import (
	"context"
	"fmt"

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
// the caller is gone.
func (op *Op) Dispatch(ctx context.Context, h abi.Hook, with abi.Event) Outcome {
	op.run.enter()
	defer op.run.leave(context.WithoutCancel(ctx))
	if h == abi.BeforeModel {
		op.run.calls.Add(1)
	}
	ev := op.event(h, with)
	if ctx.Err() != nil {
		ev.Flags |= abi.Cancelled
		op.run.cut.Store(true)
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

// event completes what a hook knows with what its operation and run know.
func (op *Op) event(h abi.Hook, with abi.Event) *abi.Event {
	ev := with
	now := op.run.ledger.clock.Now()
	ev.Hook, ev.Op, ev.Run, ev.Of, ev.Time = h, op.scope, &op.run.scope, op.kind, now
	run := &op.run.base
	ev.App, ev.User, ev.Session, ev.Invocation = run.App, run.User, run.Session, run.Invocation
	inherit(&ev.Agent, op.base.Agent)
	inherit(&ev.Branch, op.base.Branch)
	inherit(&ev.Model, op.base.Model)
	inherit(&ev.Tool, op.base.Tool)
	inherit(&ev.CallID, op.base.CallID)
	if ev.State == nil {
		ev.State = op.base.State
	}
	ev.Flags |= run.Flags
	ev.ModelCalls = op.run.calls.Load()
	ev.Elapsed = now.Sub(op.began)

	op.mu.Lock()
	defer op.mu.Unlock()
	if op.kind == abi.OpModel && op.firstChunk == 0 && (h == abi.OnModelChunk || h == abi.AfterModel) {
		op.firstChunk = max(ev.Elapsed, 1)
	}
	ev.FirstChunk = op.firstChunk
	if ev.Usage.Known() {
		op.usage = ev.Usage
	} else {
		ev.Usage = op.usage // the last figure that was seen is the figure
	}
	if op.closed && h != abi.Close {
		ev.Flags |= abi.Late
	}
	if op.recovered && h == abi.AfterModel {
		ev.Flags |= abi.Recovered
	}
	if h == abi.AfterTool || h == abi.AfterModel {
		ev.Source, ev.AnsweredBy = op.source, op.answeredBy
	}
	return &ev
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
		op.End(ctx, abi.ReasonCancelled)
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
		op.End(ctx, reason)
	}
}

// denial makes one of a before_run answer that is none, a plain text: it
// denies the run all the same.
func (op *Op) denial(out Outcome) Denial {
	if out.Denial != nil {
		return *out.Denial
	}
	return Denial{Stage: out.AnsweredBy, Refusal: abi.Refusal{Code: "answered", Text: textOf(out.Answer)}}
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
	p := pass{op: op, ev: op.event(abi.AfterRun, abi.Event{Reason: reason})}
	p.run(ctx)
}

// pass is one walk over the stages at one hook.
type pass struct {
	op         *Op
	ev         *abi.Event
	value      abi.Subject // as the stages so far left it
	changed    bool
	answer     abi.Subject
	answeredBy *entry // nil when the host answered
	denial     *Denial
	hold       bool
	cancelled  bool
}

func (p *pass) outcome() Outcome {
	out := Outcome{Denial: p.denial, Hold: p.hold, Cancelled: p.cancelled, Answer: p.answer}
	if p.changed && p.answer == nil {
		out.Subject = p.value
	}
	if p.answeredBy != nil {
		out.AnsweredBy = p.answeredBy.Spec.Name
	}
	return out
}

func (p *pass) byHost() bool { return p.denial != nil && (p.denial.Stage == "" || p.denial.Failed) }

// run calls the stages in order. After an answer only observers are called,
// with the answer as their value: a chain that ends starves nobody who only
// looks on.
func (p *pass) run(ctx context.Context) {
	for _, e := range p.op.run.chain.entries {
		if !e.hears(p.ev.Hook, p.ev) || p.answer != nil && e.Spec.Role != Observer {
			continue
		}
		if isBefore(p.ev.Hook) && !p.op.enter(e.index) {
			p.cancelled = true // swept meanwhile: what the stage did not see must not run
			return
		}
		p.stage(ctx, e)
		if p.cancelled {
			return
		}
	}
}

func isBefore(h abi.Hook) bool {
	return h == abi.BeforeRun || h == abi.BeforeAgent || h == abi.BeforeModel || h == abi.BeforeTool
}

// isEnd reports whether a hook is the close of the stages that it calls.
func isEnd(h abi.Hook) bool {
	switch h {
	case abi.AfterRun, abi.AfterAgent, abi.AfterModel, abi.OnModelError, abi.AfterTool:
		return true
	}
	return false
}

// stage calls one stage and takes its verdict over.
func (p *pass) stage(ctx context.Context, e *entry) {
	ev := *p.ev
	ev.Subject = p.value
	if p.answer != nil {
		ev.Subject, ev.Source, ev.AnsweredBy = p.answer, abi.SourceAnswered, ""
		if p.answeredBy != nil {
			ev.AnsweredBy = p.answeredBy.Spec.Name
		}
	}
	if p.op.entered(e.index) {
		ev.Flags |= abi.Entered
	}
	if isEnd(ev.Hook) && !ev.Flags.Has(abi.Late) && !p.op.settle(e.index) && ev.Flags.Has(abi.Entered) {
		ev.Flags |= abi.Late // it had its close since this hook began
	}
	if ev.Hook == abi.OnModelChunk && e.Spec.Mode == Enforce {
		ev.Subject = p.op.withTail(e, &ev)
	}
	verdict, failure, step := p.op.run.invoke(ctx, e, &ev)
	if failure == nil && e.Spec.Mode == Enforce {
		failure = p.take(ctx, e, &ev, verdict, &step)
	}
	if failure != nil {
		p.fail(e, &ev, failure, &step)
	}
	p.op.run.tell(step)
}

// take applies a verdict of a stage that enforces.
func (p *pass) take(ctx context.Context, e *entry, ev *abi.Event, v abi.Verdict, step *Step) *Failure {
	next := ev.Subject
	if ev.Hook == abi.OnModelChunk {
		var failure *Failure
		if next, failure = p.op.cutTail(e, ev, v, step); failure != nil {
			return failure
		}
	} else if v.Kind == abi.Amend {
		var err error
		if next, err = ev.Subject.Apply(v.Edits); err != nil {
			return &Failure{Cause: CauseBadVerdict, Err: fmt.Errorf("amend: %w", err)}
		}
	}
	if p.answer == nil && next != p.value {
		p.value, p.changed = next, true
	}
	switch v.Kind {
	case abi.Respond:
		return p.respond(e, ev, v.Answer)
	case abi.Wait:
		if err := p.op.run.ledger.clock.Sleep(ctx, v.Wait); err != nil {
			p.cancelled = true
		}
	}
	return nil
}

func (p *pass) respond(e *entry, ev *abi.Event, a abi.Answer) *Failure {
	answer, err := decode(ev, a)
	if err != nil {
		return &Failure{Cause: CauseBadVerdict, Err: fmt.Errorf("answer: %w", err)}
	}
	p.answer, p.answeredBy = answer, e
	if a.Refusal != nil {
		p.denial = &Denial{Refusal: *a.Refusal, Stage: e.Spec.Name}
	}
	return nil
}

func decode(ev *abi.Event, a abi.Answer) (abi.Subject, error) {
	if ev.Decode == nil {
		return nil, fmt.Errorf("%s has no answer", ev.Hook)
	}
	return ev.Decode(a)
}

// answerByHost refuses in the name of the host.
func (p *pass) answerByHost(d Denial) {
	answer, err := decode(p.ev, abi.Answer{Refusal: &d.Refusal})
	if err != nil {
		return // a hook without an answer has nothing to refuse
	}
	p.answer, p.answeredBy, p.denial = answer, nil, &d
	if d.Stage == "" {
		p.op.run.tell(p.op.run.step(p.ev, Step{Verdict: abi.Respond, Code: d.Code}))
	}
}

// maskAnswer passes a before_model answer through the transformers of
// after_model, which ADK skips: a cached answer is text like any other.
func (p *pass) maskAnswer(ctx context.Context) {
	ev := *p.ev
	ev.Hook, ev.Source, ev.AnsweredBy = abi.AfterModel, abi.SourceAnswered, p.answeredBy.Spec.Name
	ev.Flags |= abi.StreamEnd
	masked := pass{op: p.op, ev: &ev, value: p.answer}
	ctx = context.WithoutCancel(ctx)
	for _, e := range p.op.run.chain.entries {
		if e.Spec.Role == Transformer && e.hears(abi.AfterModel, &ev) && masked.answer == nil {
			masked.stage(ctx, e)
		}
	}
	p.answer = masked.value
	if masked.answer != nil { // a transformer failed closed on it
		p.answer, p.answeredBy, p.denial = masked.answer, masked.answeredBy, masked.denial
	}
}

// fail does what the stage's policy says about this cause.
func (p *pass) fail(e *entry, ev *abi.Event, f *Failure, step *Step) {
	step.Verdict, step.Code, step.Wait = 0, "", 0
	step.Cause, step.Err = f.Cause, &StageError{Stage: e.Spec.Name, Hook: ev.Hook, Err: f}
	if f.Cause == CauseCancelled {
		p.cancelled = true
		return
	}
	step.Policy = e.Spec.policy(f.Cause)
	if e.Spec.Mode == Shadow {
		return
	}
	if step.Policy != Closed {
		if ev.Hook == abi.OnModelChunk {
			p.release(ev)
		}
		return
	}
	d := Denial{Stage: e.Spec.Name, Failed: true, Refusal: abi.Refusal{Code: "stage_failed", Text: e.Spec.Refusal}}
	switch ev.Hook {
	case abi.OnUserMessage:
		p.op.run.Deny(d)
	case abi.OnModelChunk:
		p.op.latchOn(d)
		p.hold = true
	case abi.OnEvent:
		p.replaceText(ev.Subject, e.Spec.Refusal)
	case abi.AfterRun, abi.Close: // nothing to answer with
	default:
		if p.answer == nil {
			p.answerByHost(d)
			p.answeredBy = e
		}
	}
}

// policy is what a failure with this cause does.
func (s *Spec) policy(c Cause) Policy {
	switch c {
	case CauseStore:
		if s.OnStore == Local {
			return Open
		}
		return s.OnStore
	case CauseLoad:
		return s.OnLoadError
	}
	return s.OnError
}

// replaceText puts the refusal in place of all that a person reads, and keeps
// calls and results, which have run already.
func (p *pass) replaceText(s abi.Subject, refusal string) {
	var edits []abi.Edit
	for _, leaf := range s.Leaves() {
		if leaf.Kind == abi.LeafArgument || leaf.Kind == abi.LeafResult {
			continue
		}
		edits = append(edits, abi.Edit{Op: abi.EditSplice, Pointer: leaf.Pointer, End: len(leaf.Text), Text: refusal})
		refusal = ""
	}
	next, err := s.Apply(edits)
	if err != nil {
		next, err = spliceOrRemove(s, edits)
	}
	if err != nil {
		p.hold = true
		return
	}
	p.value, p.changed = next, true
}

// spliceOrRemove takes away what has no room for a text, as a number in a
// struct, from the last to the first so that the pointers stay true.
func spliceOrRemove(s abi.Subject, edits []abi.Edit) (abi.Subject, error) {
	for i := len(edits) - 1; i >= 0; i-- {
		next, err := s.Apply(edits[i : i+1])
		if err != nil {
			next, err = s.Apply([]abi.Edit{{Op: abi.EditRemove, Pointer: edits[i].Pointer}})
		}
		if err != nil {
			return nil, err
		}
		s = next
	}
	return s, nil
}
