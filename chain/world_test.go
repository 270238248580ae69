package chain_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/subject"
	"github.com/hookhost/hookhost/chain"
)

// world is a ledger with its clock and its trace.
type world struct {
	t      *testing.T
	clock  *clock
	ledger *chain.Ledger
	trace  *trace
}

// chainOf makes a world in which these stages run in this order. When its
// test is over and its runs are finished nothing may be left.
func chainOf(t *testing.T, stages ...*stage) *world {
	t.Helper()
	w := &world{t: t, clock: &clock{now: time.Unix(1_000_000, 0)}, trace: &trace{}}
	w.ledger = chain.NewLedger(version(t, "v1", stages...), w.clock, chain.Tracer{Step: w.trace.add, Span: w.trace.addSpan})
	t.Cleanup(func() {
		runs, ops := w.ledger.Open()
		assert.Zero(t, runs, "runs left")
		assert.Zero(t, ops, "operations left")
		w.ledger.Close(context.Background())
	})
	return w
}

func version(t *testing.T, name string, stages ...*stage) *chain.Chain {
	t.Helper()
	return capped(t, name, 0, stages...)
}

func capped(t *testing.T, name string, maxModelCalls int64, stages ...*stage) *chain.Chain {
	t.Helper()
	var entries []chain.Entry
	for _, s := range stages {
		entries = append(entries, chain.Entry{Spec: s.spec, Stage: s})
	}
	c, err := chain.New(name, maxModelCalls, entries...)
	require.NoError(t, err)
	return c
}

// begin opens a run, which is finished at the end of the test if it was not
// before.
func (w *world) begin() *chain.Run {
	r := w.ledger.Begin(abi.Event{App: "app", User: "ann", Session: "s1", Invocation: "i1"})
	w.t.Cleanup(func() { r.Finish(context.Background(), false) })
	return r
}

func (w *world) open(r *chain.Run, kind abi.Operation) *chain.Op {
	w.t.Helper()
	op, ok := r.Open(kind, abi.Event{Agent: "helper", Model: "m1"})
	require.True(w.t, ok)
	return op
}

// model opens a model call in a run of its own.
func (w *world) model() *chain.Op { return w.open(w.begin(), abi.OpModel) }

// op is the operation of a hook, in a run of its own.
func (w *world) op(h abi.Hook) *chain.Op {
	w.t.Helper()
	r := w.begin()
	if h.Operation() == abi.OpRun {
		return r.Root()
	}
	return w.open(r, h.Operation())
}

// at dispatches a hook on an operation of its kind in a run of its own, with
// a value where the hook has one.
func (w *world) at(h abi.Hook, value string) chain.Outcome {
	w.t.Helper()
	switch op := w.op(h); h {
	case abi.AfterRun:
		op.Run().Finish(context.Background(), false)
		return chain.Outcome{}
	case abi.Close:
		op = w.open(op.Run(), abi.OpModel)
		dispatch(op, abi.BeforeModel, value)
		op.End(context.Background(), abi.ReasonEnded)
		return chain.Outcome{}
	default:
		return dispatch(op, h, value)
	}
}

// dispatch gives a hook to the chain the way the host does: with a value that
// can be answered in place of.
func dispatch(op *chain.Op, h abi.Hook, value string) chain.Outcome {
	return op.Dispatch(context.Background(), h, event(h, value))
}

func event(h abi.Hook, value string) *abi.Event {
	ev := &abi.Event{Subject: said(value)}
	if abi.Allowed(h, abi.Respond) {
		ev.Decode = decode
	}
	return ev
}

func decode(a abi.Answer) (abi.Subject, error) {
	switch {
	case a.Refusal != nil:
		return said(a.Refusal.Text), nil
	case a.JSON != nil:
		return nil, errors.New("not an answer")
	}
	return said(a.Text), nil
}

// message is the value of all hooks here: texts and thoughts, and a call.
type message struct {
	Content *content       `json:"content,omitempty"`
	Args    map[string]any `json:"args,omitempty"`
	Tokens  int            `json:"tokens,omitempty"`
}

type content struct {
	Role  string  `json:"role,omitempty"`
	Parts []*part `json:"parts"`
}

type part struct {
	Text    string `json:"text"`
	Thought bool   `json:"thought,omitempty"`
}

func says(text string) *part   { return &part{Text: text} }
func thinks(text string) *part { return &part{Text: text, Thought: true} }

func said(text string) abi.Subject { return whole(says(text)) }

// whole is a message that nothing follows.
func whole(parts ...*part) abi.Subject { return subjectOf(messageOf(parts), false, true) }

func messageOf(parts []*part) *message {
	if parts == nil {
		return &message{}
	}
	return &message{Content: &content{Role: "model", Parts: parts}}
}

func subjectOf(m *message, chunk, end bool) abi.Subject {
	return subject.New(m, func(v any, emit func(abi.Leaf)) {
		m := v.(*message)
		if m.Content != nil {
			for i, p := range m.Content.Parts {
				kind := abi.LeafText
				if p.Thought {
					kind = abi.LeafThought
				}
				emit(abi.Leaf{
					Kind: kind, Pointer: fmt.Sprintf("/content/parts/%d/text", i), Text: p.Text,
					Final: chunk && (end || i < len(m.Content.Parts)-1),
				})
			}
		}
		subject.Scalars(m.Args, "/args", func(at, text string, number bool) {
			emit(abi.Leaf{Kind: abi.LeafArgument, Pointer: at, Text: text, Number: number})
		})
		if m.Tokens != 0 {
			emit(abi.Leaf{Kind: abi.LeafOutput, Pointer: "/tokens", Text: fmt.Sprint(m.Tokens), Number: true})
		}
	})
}

// textOf reads a value; nil is "".
func textOf(s abi.Subject) string {
	if s == nil {
		return ""
	}
	m := s.Value().(*message)
	if m.Content == nil {
		return ""
	}
	var texts []string
	for _, p := range m.Content.Parts {
		if p.Thought {
			texts = append(texts, "("+p.Text+")")
		} else {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "|")
}

// stage is a fake with a verdict for each hook; where it has none it
// continues.
type stage struct {
	spec  chain.Spec
	hooks abi.HookSet

	mu      sync.Mutex
	verdict map[abi.Hook]verdict
	seen    []abi.Event
	running int
	closed  int
}

type verdict func(context.Context, *abi.Event) (abi.Verdict, error)

func observer(name string) *stage    { return newStage(name, chain.Observer, chain.Open) }
func transformer(name string) *stage { return newStage(name, chain.Transformer, chain.Closed) }
func responder(name string) *stage   { return newStage(name, chain.Responder, chain.Closed) }

func newStage(name string, role chain.Role, policy chain.Policy) *stage {
	return &stage{
		hooks: abi.AllHooks, verdict: make(map[abi.Hook]verdict),
		spec: chain.Spec{
			Name: name, Role: role, Mode: chain.Enforce, Timeout: time.Minute,
			OnError: policy, OnLoadError: policy, OnStore: policy, Refusal: name + " is not available",
		},
	}
}

// at scripts a verdict.
func (s *stage) at(h abi.Hook, v verdict) *stage {
	s.verdict[h] = v
	return s
}

// hears narrows the hooks that the stage asks for.
func (s *stage) hears(hooks ...abi.Hook) *stage {
	s.hooks = abi.SetOf(hooks...)
	return s
}

func (s *stage) set(change func(*chain.Spec)) *stage {
	change(&s.spec)
	return s
}

func (s *stage) shadow() *stage { return s.set(func(spec *chain.Spec) { spec.Mode = chain.Shadow }) }

func (s *stage) onError(p chain.Policy) *stage {
	return s.set(func(spec *chain.Spec) { spec.OnError = p })
}

func (s *stage) Hooks() abi.HookSet { return s.hooks }

func (s *stage) Call(ctx context.Context, ev *abi.Event) (abi.Verdict, error) {
	s.mu.Lock()
	s.seen = append(s.seen, *ev)
	s.running++
	v := s.verdict[ev.Hook]
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running--
	}()
	if v == nil {
		v = continues
	}
	return v(ctx, ev)
}

func (s *stage) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
	return nil
}

// calls lists the hooks that the stage was called at, with the reason of a
// close.
func (s *stage) calls() []string {
	var calls []string
	for _, ev := range s.events() {
		call := ev.Hook.String()
		if ev.Hook == abi.Close {
			call += " " + ev.Of.String() + " " + ev.Reason.String()
		}
		calls = append(calls, call)
	}
	return calls
}

func (s *stage) events() []abi.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// last is the last event that the stage saw at a hook.
func (s *stage) last(t *testing.T, h abi.Hook) abi.Event {
	t.Helper()
	events := s.events()
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Hook == h {
			return events[i]
		}
	}
	require.Failf(t, "never called", "%s at %s", s.spec.Name, h)
	return abi.Event{}
}

// The verdicts.

func gives(v abi.Verdict) verdict {
	return func(context.Context, *abi.Event) (abi.Verdict, error) { return v, nil }
}

func continues(context.Context, *abi.Event) (abi.Verdict, error) {
	return abi.Verdict{Kind: abi.Continue}, nil
}

// appends amends the last text.
func appends(text string) verdict {
	return func(_ context.Context, ev *abi.Event) (abi.Verdict, error) {
		leaves := ev.Subject.Leaves()
		last := leaves[len(leaves)-1]
		return abi.Verdict{Kind: abi.Amend, Edits: []abi.Edit{
			{Op: abi.EditSplice, Pointer: last.Pointer, Start: len(last.Text), End: len(last.Text), Text: text},
		}}, nil
	}
}

// replaces amends every text.
func replaces(old, with string) verdict {
	return func(_ context.Context, ev *abi.Event) (abi.Verdict, error) {
		v := abi.Verdict{Kind: abi.Continue}
		for _, leaf := range ev.Subject.Leaves() {
			if i := strings.Index(leaf.Text, old); i >= 0 {
				v.Kind = abi.Amend
				v.Edits = append(v.Edits, abi.Edit{Op: abi.EditSplice, Pointer: leaf.Pointer, Start: i, End: i + len(old), Text: with})
			}
		}
		return v, nil
	}
}

func responds(text string) verdict {
	return gives(abi.Verdict{Kind: abi.Respond, Answer: abi.Answer{Text: text}})
}

func refuses(code, text string) verdict {
	return gives(abi.Verdict{Kind: abi.Respond, Answer: abi.Answer{Refusal: &abi.Refusal{Code: code, Text: text, Retry: 2 * time.Second}}})
}

func waits(d time.Duration) verdict { return gives(abi.Verdict{Kind: abi.Wait, Wait: d}) }

func errs(err error) verdict {
	return func(context.Context, *abi.Event) (abi.Verdict, error) { return abi.Verdict{}, err }
}

func fails(c chain.Cause) verdict {
	if c == chain.CauseFail {
		return gives(abi.Verdict{Kind: abi.Fail})
	}
	return errs(&chain.Failure{Cause: c, Err: errors.New("secret detail 4111")})
}

func panics(context.Context, *abi.Event) (abi.Verdict, error) { panic("secret detail 4111") }

// clock stands still but for its sleeps.
type clock struct {
	mu     sync.Mutex
	now    time.Time
	sleeps []time.Duration
	during func(context.Context) // runs in a sleep
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	if c.during != nil {
		c.during(ctx)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.advance(d)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sleeps = append(c.sleeps, d)
	return nil
}

// trace keeps the steps.
type trace struct {
	mu    sync.Mutex
	steps []chain.Step
	spans []chain.Span
}

func (t *trace) addSpan(s chain.Span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spans = append(t.spans, s)
}

func (t *trace) add(s chain.Step) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps = append(t.steps, s)
}

func (t *trace) last() chain.Step {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.steps[len(t.steps)-1]
}

// lines are the steps as a person reads them: who, where, and the verdict or
// the cause and what the policy did.
func (t *trace) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for _, s := range t.steps {
		who, what := s.Stage, s.Verdict.String()
		if who == "" {
			who = "host"
		}
		if s.Cause != 0 {
			what = s.Cause.String() + " " + s.Policy.String()
		}
		lines = append(lines, who+" "+s.Hook.String()+" "+what)
	}
	return lines
}
