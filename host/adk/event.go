package adk

import (
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/session"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
)

// onEvent is the last place before stream and session. It is also where the
// host sees what no other callback shows: a refusal that landed in the
// agent's output key, and an answer of the agent's own before_model callback.
func (a *adapter) onEvent(c agent.InvocationContext, ev *session.Event) (replaced *session.Event, _ error) {
	r, ok := a.lookup(c)
	if !ok || ev == nil {
		return nil, nil
	}
	defer func() {
		if p := recover(); p != nil {
			a.caught("on_event", p)
			replaced = withheld(ev)
		}
	}()
	current := ev
	if r.Chain().Wants(abi.BeforeTool) {
		current = a.arguments.own(ev)
	}
	current = r.tagRefusal(current, ev)
	if r.Chain().Wants(abi.OnEvent) {
		about := eventEvent(c, current)
		if ev.Partial && r.isStreamed(ev.Content) {
			about.Flags |= abi.Streamed
		}
		out := r.Root().Dispatch(c, abi.OnEvent, about)
		switch {
		case out.Hold:
			current = withheld(current)
		case out.Subject != nil:
			current = out.Subject.Value().(*session.Event)
		}
	}
	r.closeAnswered(c, ev)
	if current == ev {
		return nil, nil
	}
	return current, nil
}

// withheld is the event without anything that it said.
func withheld(ev *session.Event) *session.Event {
	empty := *ev
	empty.Content, empty.Output, empty.ErrorMessage = text(unavailable), nil, ""
	empty.InputTranscription, empty.OutputTranscription = nil, nil
	empty.Actions.StateDelta = map[string]any{}
	return &empty
}

func eventEvent(c agent.InvocationContext, ev *session.Event) *abi.Event {
	e := &abi.Event{
		Subject: eventSubject(ev, protocolCalls(c)), State: sessionState(c),
		Agent: ev.Author, Branch: ev.Branch, Author: ev.Author, FinishReason: string(ev.FinishReason),
	}
	if ev.Author == "user" {
		e.Agent = ""
	}
	if ev.Partial {
		e.Flags |= abi.Partial
	}
	if ends(&ev.LLMResponse) {
		e.Flags |= abi.StreamEnd
	}
	return e
}

// RefusalKey is the key in an event's custom metadata under which a program
// finds what a refusal says to it: code, and retry_ms where there is a time.
const RefusalKey = "hookhost_refusal"

// tagRefusal marks the event of a refusal for programs, and keeps its text
// out of the state of the agent (fact 39).
func (r *run) tagRefusal(current, ev *session.Event) *session.Event {
	d, ok := r.delta(&ev.Actions)
	if !ok || ev.Partial {
		return current
	}
	denial := r.denialOf(d)
	if denial == nil {
		return current
	}
	tagged := *current
	tagged.Actions.StateDelta = map[string]any{}
	tagged.CustomMetadata = map[string]any{RefusalKey: refusalMetadata(*denial)}
	for k, v := range current.CustomMetadata {
		tagged.CustomMetadata[k] = v
	}
	return &tagged
}

func (r *run) denialOf(d *delta) *chain.Denial {
	r.mu.Lock()
	defer r.mu.Unlock()
	return d.denial
}

func refusalMetadata(d chain.Denial) map[string]any {
	m := map[string]any{"code": d.Code}
	if d.Retry > 0 {
		m["retry_ms"] = d.Retry.Milliseconds()
	}
	return m
}

// closeAnswered ends a model call whose event passes although no after_model
// came: the agent's own before_model callback answered it (fact 35).
func (r *run) closeAnswered(c agent.InvocationContext, ev *session.Event) {
	if ev.Partial {
		return
	}
	d, ok := r.delta(&ev.Actions)
	if !ok {
		return
	}
	if d.op != nil {
		d.op.End(c, abi.ReasonAnswered)
	}
	r.forget(d)
}
