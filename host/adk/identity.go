package adk

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
)

// adapter tells runs and operations apart by the identity of the objects that
// ADK uses for them, since ids and names repeat (fact 42). Each key is held as
// long as it is in a map, so that its address is not reused.
type adapter struct {
	ledger *chain.Ledger
	log    *slog.Logger

	arguments arguments
	finals    finals

	mu   sync.Mutex
	runs map[any]*run
}

// run is a run of the chain with ADK's keys for what is open in it.
type run struct {
	*chain.Run
	mu     sync.Mutex
	agents map[agent.InvocationContext]*chain.Op
	tools  map[agent.Context]*chain.Op
	deltas map[uintptr]*delta
	chunks map[*genai.Content]string // texts as they left on_model_chunk
}

// delta is a model call, or a refusal, known by the state delta that ADK
// makes for it and puts into its events.
type delta struct {
	held   map[string]any // keeps the address from being reused
	op     *chain.Op      // nil for a refused agent
	denial *chain.Denial
}

// runKey is the identity of a run: the RunConfig of the one call of Run, or
// for a live run, which has none, its invocation id.
func runKey(c agent.InvocationContext) any {
	if cfg := c.RunConfig(); cfg != nil {
		return cfg
	}
	return "live " + c.InvocationID()
}

// begin opens the run that ADK is about to start, unless it is known.
func (a *adapter) begin(c agent.InvocationContext) *run {
	return a.known(c, func() *chain.Run {
		base := runBase(c)
		if c.RunConfig() == nil {
			base.Flags |= abi.Live
		}
		return a.ledger.Begin(base)
	})
}

// find gives the run that a hook belongs to. The hooks of a run that is over,
// or that never began, share a detached one, which ends by itself.
func (a *adapter) find(c agent.InvocationContext) *run {
	return a.known(c, func() *chain.Run { return a.ledger.Detach(runBase(c)) })
}

// known gives the run with the identity of the context, or makes one. It is
// known until the ledger ends it.
func (a *adapter) known(c agent.InvocationContext, begin func() *chain.Run) *run {
	key := runKey(c)
	a.mu.Lock()
	if r, ok := a.runs[key]; ok && !r.Over() {
		a.mu.Unlock()
		return r
	}
	r := newRun(begin())
	a.runs[key] = r
	a.mu.Unlock()
	r.Own("adk", func(context.Context, abi.Ending) { a.forget(key, r) })
	return r
}

func (a *adapter) forget(key any, r *run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.runs[key] == r {
		delete(a.runs, key)
	}
}

func newRun(r *chain.Run) *run {
	return &run{
		Run: r, agents: make(map[agent.InvocationContext]*chain.Op), tools: make(map[agent.Context]*chain.Op),
		deltas: make(map[uintptr]*delta), chunks: make(map[*genai.Content]string),
	}
}

func runBase(c agent.InvocationContext) abi.Event {
	ev := abi.Event{
		App: c.Session().AppName(), User: c.Session().UserID(), Session: c.Session().ID(), Invocation: c.InvocationID(),
	}
	if resumes(c.UserContent()) {
		ev.Flags |= abi.Resumed
	}
	return ev
}

func resumes(c *genai.Content) bool {
	if c == nil {
		return false
	}
	for _, p := range c.Parts {
		if p != nil && p.FunctionResponse != nil {
			return true
		}
	}
	return false
}

// open begins an operation in the run that it belongs to, or in the one that
// takes its place when that run ends at this moment.
func (a *adapter) open(c agent.InvocationContext, kind abi.Operation, base abi.Event) (*run, *chain.Op) {
	for {
		r := a.find(c)
		if op, ok := r.Open(kind, base); ok {
			return r, op
		}
	}
}

// lookup is find without opening anything.
func (a *adapter) lookup(c agent.InvocationContext) (*run, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, ok := a.runs[runKey(c)]
	return r, ok
}

// bare is the context behind the wrapper that callbacks get, on which the
// methods work that the wrapper refuses (fact 24).
func bare(c agent.Context) agent.Context { return c.WithDelta(nil) }

// agentKey is the identity of one call of an agent: the context that ADK made
// for it.
func agentKey(u agent.Context) agent.InvocationContext {
	if c, ok := u.(interface {
		InvocationContext() agent.InvocationContext
	}); ok {
		return c.InvocationContext()
	}
	return u
}

func (a *adapter) openAgent(u agent.Context) *chain.Op {
	r, op := a.open(u, abi.OpAgent, agentBase(u))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.agents[agentKey(u)] = op
	return op
}

func (r *run) closeAgent(u agent.Context) *chain.Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := agentKey(u)
	op := r.agents[key]
	delete(r.agents, key)
	if op == nil {
		op = r.Stray(abi.OpAgent, agentBase(u))
	}
	return op
}

func agentBase(u agent.Context) abi.Event {
	return abi.Event{Agent: u.AgentName(), Branch: u.Branch(), State: stateOf(u)}
}

func stateOf(u agent.Context) func(string) (any, bool) {
	return func(key string) (any, bool) {
		v, err := u.State().Get(key)
		return v, err == nil
	}
}

func (a *adapter) openModel(u agent.Context, model string) (*run, *chain.Op) {
	base := agentBase(u)
	base.Model = model
	r, op := a.open(u, abi.OpModel, base)
	r.keep(u.Actions(), &delta{op: op})
	return r, op
}

func (r *run) model(u agent.Context) *chain.Op {
	if d, ok := r.delta(u.Actions()); ok && d.op != nil {
		return d.op
	}
	return r.Stray(abi.OpModel, agentBase(u))
}

// keep files a delta under the identity of the state delta.
func (r *run) keep(actions *session.EventActions, d *delta) {
	d.held = actions.StateDelta
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deltas[reflect.ValueOf(d.held).Pointer()] = d
}

func (r *run) delta(actions *session.EventActions) (*delta, bool) {
	if actions == nil || actions.StateDelta == nil {
		return nil, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	d, ok := r.deltas[reflect.ValueOf(actions.StateDelta).Pointer()]
	return d, ok
}

func (r *run) forget(d *delta) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.deltas, reflect.ValueOf(d.held).Pointer())
}

// refused notes that the operation with these actions was refused, so that
// its event can be told from others.
func (r *run) refused(actions *session.EventActions, denial chain.Denial) {
	d, ok := r.delta(actions)
	if !ok {
		d = &delta{}
		r.keep(actions, d)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	d.denial = &denial
}

func (a *adapter) openTool(c agent.Context, name string) (*run, *chain.Op) {
	u := bare(c)
	base := agentBase(u)
	base.Tool, base.CallID = name, u.FunctionCallID()
	r, op := a.open(u, abi.OpTool, base)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tools[c] = op
	return r, op
}

// tool gives the open call, and whether there was one.
func (r *run) tool(c agent.Context) (*chain.Op, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	op, ok := r.tools[c]
	return op, ok
}

func (r *run) closeTool(c agent.Context, name string) *chain.Op {
	r.mu.Lock()
	op, ok := r.tools[c]
	delete(r.tools, c)
	r.mu.Unlock()
	if ok {
		return op
	}
	u := bare(c)
	base := agentBase(u)
	base.Tool, base.CallID = name, u.FunctionCallID()
	return r.Stray(abi.OpTool, base)
}

func typeName(v any) string { return fmt.Sprintf("%T", v) }

// gone reports whether the caller of the run went away.
func gone(ctx context.Context) bool { return ctx.Err() != nil }
