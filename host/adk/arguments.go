package adk

import (
	"maps"
	"reflect"
	"sync"

	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/abi/subject"
)

// arguments keeps apart what before_tool writes and what everybody else
// reads. ADK passes a tool the one map that the model's response, the session,
// the delivered event and the next request also hold (fact 23), and there is
// no way to give the tool another. So each event gets calls of its own, and
// the map itself is amended only while the tool runs.
type arguments struct {
	mu   sync.Mutex
	lent map[uintptr]loan // by the identity of the map
}

// loan is a map that holds amended arguments for now.
type loan struct {
	held     map[string]any // keeps the address from being reused
	original map[string]any
}

func identity(args map[string]any) uintptr { return reflect.ValueOf(args).Pointer() }

// amend puts the amended arguments in place until the tool is done. It reports
// false where there is no place: a call without arguments has no map.
func (a *arguments) amend(args, amended map[string]any) bool {
	if args == nil {
		return len(amended) == 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	id := identity(args)
	if _, lent := a.lent[id]; !lent {
		if a.lent == nil {
			a.lent = make(map[uintptr]loan)
		}
		a.lent[id] = loan{held: args, original: maps.Clone(args)}
	}
	clear(args)
	maps.Copy(args, amended)
	return true
}

// giveBack puts the arguments back as they were: on a resume the map is the
// session's own.
func (a *arguments) giveBack(args map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := identity(args)
	l, lent := a.lent[id]
	if !lent {
		return
	}
	delete(a.lent, id)
	clear(args)
	maps.Copy(args, l.original)
}

// own gives the event calls of its own, as they were before any before_tool.
func (a *arguments) own(ev *session.Event) *session.Event {
	if !hasCalls(ev.Content) {
		return ev
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	copied, content := *ev, *ev.Content
	content.Parts = make([]*genai.Part, len(ev.Content.Parts))
	for i, p := range ev.Content.Parts {
		content.Parts[i] = a.ownPart(p)
	}
	copied.Content = &content
	return &copied
}

func hasCalls(c *genai.Content) bool {
	if c == nil {
		return false
	}
	for _, p := range c.Parts {
		if p != nil && p.FunctionCall != nil && p.FunctionCall.Args != nil {
			return true
		}
	}
	return false
}

func (a *arguments) ownPart(p *genai.Part) *genai.Part {
	if p == nil || p.FunctionCall == nil || p.FunctionCall.Args == nil {
		return p
	}
	part := *p
	part.FunctionCall = a.ownCall(p.FunctionCall)
	return &part
}

func (a *arguments) ownCall(call *genai.FunctionCall) *genai.FunctionCall {
	own, args := *call, call.Args
	if l, lent := a.lent[identity(args)]; lent {
		args = l.original
	}
	asked, confirms := args[originalCall].(*genai.FunctionCall)
	own.Args = subject.Clone(args).(map[string]any)
	if confirms && asked != nil && asked.Args != nil {
		own.Args[originalCall] = a.ownCall(asked)
	}
	return &own
}

// originalCall is the key under which a confirmation request holds the call.
const originalCall = "originalFunctionCall"
