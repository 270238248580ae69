package chain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookhost/hookhost/abi"
)

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
	wait       time.Duration // that the stage asked for
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
		if isBefore(p.ev.Hook) {
			p.waiting(ctx, e)
		} else {
			p.stage(ctx, e)
		}
		if p.cancelled {
			return
		}
	}
}

// waiting calls a stage that may ask for a wait, and waits.
func (p *pass) waiting(ctx context.Context, e *entry) {
	ledger := p.op.run.ledger
	ledger.workers.do(func() { p.stage(ctx, e) })
	if p.wait > 0 {
		p.cancelled = ledger.clock.Sleep(ctx, p.wait) != nil
		p.wait = 0
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
	var step Step
	verdict, failure := p.op.run.invoke(ctx, e, &ev, &step)
	if failure == nil && e.Spec.Mode == Enforce {
		failure = p.take(ctx, e, &ev, verdict, &step)
	}
	if failure != nil {
		p.fail(e, &ev, failure, &step)
	}
	p.op.run.tell(&step)
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
			return &Failure{Cause: CauseBadVerdict, Err: fmt.Errorf("amend: %w", inOurWords(err))}
		}
		if failure := commit(v); failure != nil {
			return failure
		}
	}
	if p.answer == nil && next != p.value {
		p.value, p.changed = next, true
	}
	switch v.Kind {
	case abi.Respond:
		return p.respond(e, ev, v.Answer)
	case abi.Wait:
		p.wait = v.Wait
	}
	return nil
}

// inOurWords keeps what a stage wrote, such as the pointer or the JSON of an
// edit, out of the error about it: it may hold what a user said, and the error
// goes to the log.
func inOurWords(err error) error {
	for _, known := range []error{abi.ErrNotFound, abi.ErrBadEdit} {
		if errors.Is(err, known) {
			return known
		}
	}
	return fmt.Errorf("refused (%T)", err)
}

// commit does what an amend changes beside the subject. It keeps a panic of a
// native stage from taking the process down.
func commit(v abi.Verdict) (failure *Failure) {
	if v.Kind != abi.Amend || v.Commit == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			failure = &Failure{Cause: CauseTrap, Err: fmt.Errorf("%w: %T", errPanic, p)}
		}
	}()
	if err := v.Commit(); err != nil {
		return &Failure{Cause: CauseBadVerdict, Err: fmt.Errorf("commit: %w", err)}
	}
	return nil
}

func (p *pass) respond(e *entry, ev *abi.Event, a abi.Answer) *Failure {
	if a.Refusal != nil {
		refusal := readable(*a.Refusal)
		a.Refusal = &refusal
	}
	answer, err := decode(ev, a)
	if err != nil {
		return &Failure{Cause: CauseBadVerdict, Err: fmt.Errorf("answer: %w", inOurWords(err))}
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
		step := Step{Verdict: abi.Respond, Code: d.Code}
		p.op.run.place(p.ev, &step)
		p.op.run.tell(&step)
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
