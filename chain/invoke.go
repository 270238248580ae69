package chain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookhost/hookhost/abi"
)

// invoke calls a stage under its timeout and checks its verdict against its
// role and the hook. It fills the step in, which is not told yet: policy and
// effect are still to come.
func (r *Run) invoke(ctx context.Context, e *entry, ev *abi.Event, step *Step) (abi.Verdict, *Failure) {
	timed, cancel := Within(ctx, e.Spec.Timeout)
	defer cancel()
	began := time.Now()
	verdict, err := guarded(timed, e.Stage, ev)
	step.Stage, step.Mode, step.Verdict, step.Took = e.Spec.Name, e.Spec.Mode, verdict.Kind, time.Since(began)
	step.Notes, step.Fuel = verdict.Notes, verdict.Fuel
	r.place(ev, step)
	if err != nil {
		return verdict, failureOf(ctx, err)
	}
	if verdict.Kind == abi.Fail {
		return verdict, &Failure{Cause: CauseFail, Err: errUndecided}
	}
	if err := e.Spec.Role.check(ev.Hook, verdict); err != nil {
		return verdict, &Failure{Cause: CauseBadVerdict, Err: err}
	}
	step.Wait = verdict.Wait
	if refusal := verdict.Answer.Refusal; refusal != nil {
		step.Code = refusal.Code
	}
	return verdict, nil
}

// call is for hooks that take nothing but continue.
func (r *Run) call(ctx context.Context, e *entry, op *Op, ev *abi.Event) {
	p := pass{op: op, ev: ev}
	var step Step
	if _, failure := r.invoke(ctx, e, ev, &step); failure != nil {
		p.fail(e, ev, failure, &step)
	}
	r.tell(&step)
}

var (
	errPanic     = errors.New("stage panicked")
	errUndecided = errors.New("the stage could not decide")
)

// guarded keeps a panic of a native stage from taking the process down.
func guarded(ctx context.Context, s Stage, ev *abi.Event) (v abi.Verdict, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = abi.Verdict{}, &Failure{Cause: CauseTrap, Err: fmt.Errorf("%w: %T", errPanic, p)}
		}
	}()
	return s.Call(ctx, ev)
}

// ErrVerdict is a verdict that the stage may not give here.
var ErrVerdict = errors.New("bad verdict")

// highest is the last verdict in the order of their numbers that a role may
// give.
var highest = [...]abi.Kind{Observer: abi.Continue, Transformer: abi.Amend, Responder: abi.Wait}

func (r Role) check(h abi.Hook, v abi.Verdict) error {
	if !abi.Allowed(h, v.Kind) {
		return fmt.Errorf("%w: %s at %s", ErrVerdict, v.Kind, h)
	}
	if v.Kind > highest[r] {
		return fmt.Errorf("%w: %s by a stage with the role %s", ErrVerdict, v.Kind, r)
	}
	if len(v.Holds) > 0 && (r == Observer || h != abi.OnModelChunk) {
		return fmt.Errorf("%w: hold at %s by a stage with the role %s", ErrVerdict, h, r)
	}
	if v.Kind == abi.Wait && (v.Wait <= 0 || v.Wait > abi.MaxWait) {
		return fmt.Errorf("%w: a wait of %s", ErrVerdict, v.Wait)
	}
	return nil
}

// place fills in what a trace line has from its event.
func (r *Run) place(ev *abi.Event, s *Step) {
	s.Time, s.Version, s.Run, s.Op, s.Operation, s.Hook = ev.Time, r.chain.version, r.id, ev.Op.ID(), ev.Of, ev.Hook
	s.Agent, s.Model, s.Tool = ev.Agent, ev.Model, ev.Tool
	s.Reason, s.Source, s.Flags = ev.Reason, ev.Source, ev.Flags
}

// tell hands a step to the tracer.
func (r *Run) tell(s *Step) {
	if r.ledger.trace.Step != nil {
		told(r.ledger.trace.Step, *s)
	}
}

// told calls a tracer. One that panics loses that line and nothing else: what
// is traced has happened, and the close of a run goes on.
func told[T any](tracer func(T), line T) {
	defer func() { _ = recover() }()
	tracer(line)
}
