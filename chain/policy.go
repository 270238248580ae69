package chain

import (
	"github.com/hookhost/hookhost/abi"
)

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
