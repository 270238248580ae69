package adk

import (
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/subject"
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
	current := r.detached(ev)
	current = r.tagRefusal(current, ev)
	if r.Chain().Wants(abi.OnEvent) {
		out := r.Root().Dispatch(c, abi.OnEvent, eventEvent(c, current))
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

func eventEvent(c agent.InvocationContext, ev *session.Event) abi.Event {
	e := abi.Event{
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

// snapshot keeps the arguments of the model's calls as they are now. The
// tools get the map itself, which before_tool may amend; the event gets the
// copy.
func (r *run) snapshot(resp *model.LLMResponse) {
	if resp.Content == nil || !r.Chain().Wants(abi.BeforeTool) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range resp.Content.Parts {
		if p != nil && p.FunctionCall != nil && p.FunctionCall.Args != nil {
			r.calls[p.FunctionCall] = subject.Clone(p.FunctionCall.Args).(map[string]any)
		}
	}
}

// detached gives the event calls of its own, with the arguments as the model
// gave them, so that stream and session neither see nor race with what
// before_tool does to the tool's.
func (r *run) detached(ev *session.Event) *session.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.calls) == 0 || ev.Content == nil {
		return ev
	}
	var parts []*genai.Part
	for i, p := range ev.Content.Parts {
		own := r.ownCall(p)
		if own == nil {
			continue
		}
		if parts == nil {
			parts = append([]*genai.Part(nil), ev.Content.Parts...)
		}
		parts[i] = own
	}
	if parts == nil {
		return ev
	}
	copied, content := *ev, *ev.Content
	content.Parts = parts
	copied.Content = &content
	return &copied
}

// ownCall copies a part whose call, or the call inside its confirmation
// request, was snapshot.
func (r *run) ownCall(p *genai.Part) *genai.Part {
	if p == nil || p.FunctionCall == nil {
		return nil
	}
	call := *p.FunctionCall
	if args, ok := r.calls[p.FunctionCall]; ok {
		call.Args = args
	} else if asked, ok := call.Args[originalCall].(*genai.FunctionCall); ok && r.calls[asked] != nil {
		original := *asked
		original.Args = r.calls[asked]
		call.Args = map[string]any{}
		for k, v := range p.FunctionCall.Args {
			call.Args[k] = v
		}
		call.Args[originalCall] = &original
	} else {
		return nil
	}
	part := *p
	part.FunctionCall = &call
	return &part
}

// originalCall is the key under which a confirmation request holds the call.
const originalCall = "originalFunctionCall"

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
