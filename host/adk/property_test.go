package adk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/agent/workflowagents/loopagent"
	"google.golang.org/adk/v2/agent/workflowagents/parallelagent"
	"google.golang.org/adk/v2/agent/workflowagents/sequentialagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host/adk"
)

// propertyRuns is how many random cases run; HOOKHOST_PROPERTY_RUNS sets
// another number, and HOOKHOST_PROPERTY_SEED repeats one case.
const propertyRuns = 2000

// TestEveryEnteredStageIsClosedOnce runs random chains under random agents
// with random ends on a real runner. Whatever happens: each stage that entered
// an operation is closed exactly once, what it owned is released exactly once,
// and no operation, run, state or goroutine is left.
func TestEveryEnteredStageIsClosedOnce(t *testing.T) {
	if seed := os.Getenv("HOOKHOST_PROPERTY_SEED"); seed != "" {
		n, err := strconv.ParseUint(seed, 10, 64)
		require.NoError(t, err)
		play(t, n, newTally())
		return
	}
	runs := propertyRuns
	if more := os.Getenv("HOOKHOST_PROPERTY_RUNS"); more != "" {
		n, err := strconv.Atoi(more)
		require.NoError(t, err)
		runs = n
	}
	seen := newTally()
	for seed := range uint64(runs) {
		if play(t, seed, seen); t.Failed() {
			t.Fatalf("HOOKHOST_PROPERTY_SEED=%d", seed)
		}
	}
	if runs >= propertyRuns {
		for _, what := range []string{
			"shape llm", "shape transfer", "shape sequential", "shape parallel", "shape loop", "shape nested",
			"end ok", "end cancel", "end break", "end consumer panic",
			"verdict amend", "verdict respond", "verdict wait", "verdict fail", "verdict panic", "refused",
			"close run done", "close run refused", "close run cancelled",
			"close agent done", "close agent ended", "close agent cancelled", "close agent answered", "close agent refused",
			"close model done", "close model error", "close model cancelled", "close model answered", "close model refused",
			"close tool done", "close tool error", "close tool answered", "close tool refused",
			"late", "wait cut off", "released", "disowned",
		} {
			assert.NotZero(t, seen.of(what), "no case had a %q: the cases say less than they should", what)
		}
	}
	t.Log(seen)
}

// play runs one case.
func play(t *testing.T, seed uint64, seen *tally) {
	before, idle := goroutines()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := &lot{dice: newDice(seed), tally: seen, cancel: cancel, books: newBooks()}
	c.end = pick(c.dice, "ok", "ok", "cancel", "break", "consumer panic")
	c.at = c.dice.n(30)
	seen.add("end " + c.end)

	ledger := chain.NewLedger(c.chain(t), (*lotClock)(c), chain.Tracer{})
	hooks, err := adk.New(ledger, slog.New(slog.NewTextHandler(io.Discard, nil)))
	require.NoError(t, err)
	r, err := runner.New(runner.Config{
		AppName: "app", Agent: c.agent(t), SessionService: session.InMemoryService(), AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{hooks}},
	})
	require.NoError(t, err)
	cfg := agent.RunConfig{StreamingMode: pick(c.dice, agent.StreamingModeNone, agent.StreamingModeSSE)}
	for range 1 + c.dice.n(2) {
		c.consume(r.Run(ctx, "user", "session", genai.NewContentFromText("Hello.", genai.RoleUser), cfg))
	}

	if c.end == "consumer panic" {
		cancel() // as a server does for a handler that panicked: ADK waits for it
	}
	settle(t, "goroutines left", func() bool {
		working, _ := goroutines()
		return working <= before
	})
	runs, ops := ledger.Open()
	if c.end == "consumer panic" {
		// ADK lets hooks run on after after_run (fact 34). What they leave open
		// is the idle limit's; a record with nothing open is a leak.
		assert.LessOrEqual(t, runs, ops, "records left")
		ledger.FinishIdle(context.Background(), 0)
		runs, ops = ledger.Open()
	}
	assert.Zero(t, runs, "runs left")
	assert.Zero(t, ops, "operations left")
	c.books.check(t)
	c.books.count(seen)
	ledger.Close(context.Background())
	settle(t, "workers left", func() bool {
		_, workers := goroutines()
		return workers <= idle
	})
}

// goroutines counts those that a ledger keeps for stages to come apart from
// all others.
func goroutines() (working, workers int) {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	all := bytes.Count(stacks, []byte("goroutine ")) - bytes.Count(stacks, []byte(" in goroutine "))
	workers = bytes.Count(stacks, []byte("\ngithub.com/hookhost/hookhost/chain.(*workers).work("))
	return all - workers, workers
}

// settle waits until the condition holds.
func settle(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !holds(); time.Sleep(50 * time.Microsecond) {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<20)
			t.Errorf("%s:\n%s", what, stacks[:runtime.Stack(stacks, true)])
			return
		}
	}
}

// lot is one random case.
type lot struct {
	*dice
	*tally
	*books
	end    string
	at     int // the step at which it ends
	steps  atomic.Int64
	calls  atomic.Int64
	cancel context.CancelFunc
	passed atomic.Int64 // ns on the clock
}

// step counts what goes on in the run, and cancels it when it is time to.
func (c *lot) step() {
	if n := int(c.steps.Add(1)); n == c.at && c.end == "cancel" {
		c.cancel()
	}
	if c.chance(4) {
		runtime.Gosched()
	}
}

// consume ranges over a run as a caller does, and breaks off or panics when it
// is time to. It reads the events as one that sends them on.
func (c *lot) consume(events iter.Seq2[*session.Event, error]) {
	defer func() {
		if p := recover(); p != nil && p != errConsumer {
			panic(p)
		}
	}()
	n := 0
	for ev := range events {
		if _, err := json.Marshal(ev); err != nil {
			panic(err)
		}
		if n++; n > c.at%5 {
			switch c.end {
			case "break":
				return
			case "consumer panic":
				panic(errConsumer)
			}
		}
	}
}

var errConsumer = errors.New("the consumer panics")

// lotClock stands still but for the waits. Some of them are cut off.
type lotClock lot

func (c *lotClock) Now() time.Time { return time.Unix(0, c.passed.Load()) }

func (c *lotClock) Sleep(ctx context.Context, d time.Duration) error {
	if c.end == "cancel" {
		c.cancel()
		c.add("wait cut off")
	}
	c.passed.Add(int64(d))
	runtime.Gosched()
	return ctx.Err()
}

// chain makes up to five stages of random kinds.
func (c *lot) chain(t *testing.T) *chain.Chain {
	var entries []chain.Entry
	for i := range 1 + c.n(5) {
		policy := func() chain.Policy { return pick(c.dice, chain.Open, chain.Closed) }
		s := &lotStage{lot: c, hooks: abi.AllHooks, temper: pick(c.dice, 3, 10, 40)}
		for _, h := range abi.Hooks() {
			if h != abi.Close && c.chance(8) {
				s.hooks &^= abi.SetOf(h)
			}
		}
		s.spec = chain.Spec{
			Name:    fmt.Sprintf("s%d", i),
			Role:    pick(c.dice, chain.Observer, chain.Transformer, chain.Responder, chain.Responder),
			Mode:    pick(c.dice, chain.Enforce, chain.Enforce, chain.Enforce, chain.Shadow),
			Timeout: time.Minute, OnError: policy(), OnLoadError: policy(), OnStore: policy(), Refusal: "Not available.",
		}
		if c.chance(5) {
			s.spec.Agents = []string{"left", "worker", "assistant"}
		}
		entries = append(entries, chain.Entry{Spec: s.spec, Stage: s})
	}
	made, err := chain.New("v1", int64(3+c.n(6)), entries...)
	require.NoError(t, err)
	return made
}

// lotStage decides by chance, one call in temper not to go on.
type lotStage struct {
	*lot
	spec   chain.Spec
	hooks  abi.HookSet
	temper int
}

func (s *lotStage) Hooks() abi.HookSet          { return s.hooks }
func (s *lotStage) Close(context.Context) error { return nil }

func (s *lotStage) Call(ctx context.Context, ev *abi.Event) (abi.Verdict, error) {
	s.hear(s.spec.Name, ev)
	s.step()
	s.use(s.spec.Name, ev)
	if !s.chance(s.temper) {
		return abi.Verdict{Kind: abi.Continue, Holds: s.holds(ev)}, nil
	}
	return s.decide(ev)
}

// use keeps state and resources in the scopes of the event.
func (s *lotStage) use(stage string, ev *abi.Event) {
	for _, scope := range []abi.Scope{ev.Op, ev.Run} {
		if s.chance(2) {
			if err := scope.Set(stage, "k", []byte("v")); err != nil {
				panic(err)
			}
		}
		if s.chance(4) {
			if _, err := scope.Add(stage, "n", 1); err != nil {
				panic(err)
			}
		}
	}
	if s.chance(3) {
		s.own(ev.Op, s.chance(5))
	}
}

func (s *lotStage) holds(ev *abi.Event) []abi.Hold {
	if ev.Hook != abi.OnModelChunk || s.spec.Role == chain.Observer || !s.chance(2) {
		return nil
	}
	leaves := ev.Subject.Leaves()
	if len(leaves) == 0 {
		return nil
	}
	return []abi.Hold{{Pointer: leaves[len(leaves)-1].Pointer, Bytes: s.n(9)}}
}

func (s *lotStage) decide(ev *abi.Event) (abi.Verdict, error) {
	switch s.n(8) {
	case 0:
		s.add("verdict fail")
		return abi.Verdict{Kind: abi.Fail}, nil
	case 1:
		s.add("verdict panic")
		panic("a stage panics")
	case 2:
		cause := pick(s.dice, chain.CauseTrap, chain.CauseDeadline, chain.CauseStore, chain.CausePoolFull, chain.CauseCancelled)
		return abi.Verdict{}, &chain.Failure{Cause: cause, Err: errors.New("a stage fails")}
	case 3:
		return abi.Verdict{Kind: abi.Kind(s.n(7))}, nil
	}
	var kinds []abi.Kind
	for k := abi.Amend; k <= abi.Wait; k++ {
		if abi.Allowed(ev.Hook, k) {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 {
		return abi.Verdict{Kind: abi.Continue}, nil
	}
	v := abi.Verdict{Kind: pick(s.dice, kinds...)}
	s.add("verdict " + v.Kind.String())
	switch v.Kind {
	case abi.Amend:
		for _, leaf := range ev.Subject.Leaves() {
			if !leaf.ReadOnly && s.chance(2) {
				v.Edits = append(v.Edits, abi.Edit{Op: abi.EditSplice, Pointer: leaf.Pointer, Text: "*"})
			}
		}
	case abi.Wait:
		v.Wait = time.Duration(1+s.n(5000)) * time.Millisecond
	case abi.Respond:
		if v.Answer.Text = "An answer."; s.chance(2) {
			s.add("refused")
			v.Answer = abi.Answer{Refusal: &abi.Refusal{Code: "limit.turn", Text: "Not now.", Retry: time.Second}}
		}
	}
	return v, nil
}

// agent makes a tree of a random shape.
func (c *lot) agent(t *testing.T) agent.Agent {
	work, err := functiontool.New(functiontool.Config{Name: "work", Description: "Works."}, c.work)
	require.NoError(t, err)
	llm := func(name string, sub ...agent.Agent) agent.Agent {
		cfg := llmagent.Config{Name: name, Description: name, Model: &lotModel{c}, Tools: []tool.Tool{work}, SubAgents: sub}
		if c.chance(8) {
			cfg.BeforeModelCallbacks = append(cfg.BeforeModelCallbacks, c.ownAnswer)
		}
		a, err := llmagent.New(cfg)
		require.NoError(t, err)
		return a
	}
	over := func(name string, sub ...agent.Agent) agent.Config {
		return agent.Config{Name: name, Description: name, SubAgents: sub}
	}
	made := func(a agent.Agent, err error) agent.Agent {
		require.NoError(t, err)
		return a
	}
	parallel := func(name string) agent.Agent {
		return made(parallelagent.New(parallelagent.Config{AgentConfig: over(name, llm("left"), llm("right"))}))
	}
	loop := func(name string) agent.Agent {
		return made(loopagent.New(loopagent.Config{AgentConfig: over(name, llm("worker")), MaxIterations: uint(1 + c.n(3))}))
	}
	shape := pick(c.dice, "llm", "transfer", "sequential", "parallel", "loop", "nested")
	c.add("shape " + shape)
	switch shape {
	case "transfer":
		return llm("front", llm("assistant"))
	case "sequential":
		return made(sequentialagent.New(sequentialagent.Config{AgentConfig: over("sequence", llm("left"), llm("right"))}))
	case "parallel":
		return parallel("panel")
	case "loop":
		return loop("loop")
	case "nested":
		return made(sequentialagent.New(sequentialagent.Config{AgentConfig: over("sequence", parallel("panel"), loop("loop"))}))
	}
	return llm("assistant")
}

// ownAnswer is a callback of the agent's own, behind the plugin.
func (c *lot) ownAnswer(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) {
	if c.chance(2) {
		return nil, nil
	}
	return &model.LLMResponse{Content: genai.NewContentFromText("My own.", genai.RoleModel)}, nil
}

type lotOrder struct {
	Card string `json:"card"`
}

func (c *lot) work(_ agent.Context, o lotOrder) (lotOrder, error) {
	c.step()
	if c.end == "cancel" && c.chance(4) {
		c.cancel()
	}
	if c.chance(4) {
		return o, errors.New("the tool fails")
	}
	return o, nil
}

// lotModel replies by chance.
type lotModel struct{ *lot }

func (*lotModel) Name() string { return "lot" }

func (m *lotModel) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		m.step()
		if ctx.Err() != nil {
			yield(nil, ctx.Err())
			return
		}
		reply := []*genai.Part{{Text: "Thinking.", Thought: true}, {Text: "The card is 4111 1111."}}
		many := m.calls.Add(1) > 8
		switch {
		case m.chance(8):
			yield(nil, errors.New("503"))
			return
		case m.chance(2) && !many:
			reply = m.toolCalls(req)
		}
		if stream && !m.chunks(ctx, reply, yield) {
			return
		}
		yield(&model.LLMResponse{
			Content: &genai.Content{Role: genai.RoleModel, Parts: reply}, TurnComplete: true, FinishReason: genai.FinishReasonStop,
			UsageMetadata: m.usage(),
		}, nil)
	}
}

// chunks yields a reply in partial responses, and reports whether it may go on.
func (m *lotModel) chunks(ctx context.Context, reply []*genai.Part, yield func(*model.LLMResponse, error) bool) bool {
	for i, p := range reply {
		if p.FunctionCall != nil {
			continue
		}
		for word := range strings.SplitAfterSeq(p.Text, " ") {
			m.step()
			if m.end == "cancel" && ctx.Err() != nil {
				return yield(nil, ctx.Err()) && false
			}
			chunk := &model.LLMResponse{
				Partial: true, UsageMetadata: m.usage(),
				Content: &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{Text: word, Thought: p.Thought}}},
			}
			if i == len(reply)-1 && m.chance(3) {
				chunk.FinishReason = genai.FinishReasonStop
			}
			if !yield(chunk, nil) {
				return false
			}
			if m.chance(30) {
				return yield(nil, errors.New("the stream breaks")) && false
			}
		}
	}
	return true
}

func (m *lotModel) toolCalls(req *model.LLMRequest) []*genai.Part {
	parts := []*genai.Part{{Text: "I look."}}
	for i := range 1 + m.n(3) {
		call := &genai.FunctionCall{ID: fmt.Sprint("c", i), Name: "work", Args: map[string]any{"card": "4111 1111"}}
		if m.chance(6) {
			call.Name = "invented"
		}
		if _, can := req.Tools["transfer_to_agent"]; can && m.chance(3) {
			call.Name, call.Args = "transfer_to_agent", map[string]any{"agent_name": "assistant"}
		}
		parts = append(parts, &genai.Part{FunctionCall: call})
	}
	return parts
}

func (m *lotModel) usage() *genai.GenerateContentResponseUsageMetadata {
	if m.chance(2) {
		return nil
	}
	return &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 10, CandidatesTokenCount: 5, TotalTokenCount: 15}
}

// books say who entered and was closed, and what was owned and released.
type books struct {
	mu       sync.Mutex
	entries  map[string]*entered // by operation and stage
	scopes   map[string]abi.Scope
	owned    map[string]int // by key: 1 owned, 0 disowned
	released map[string]int
	faults   []string
	late     int
}

type entered struct {
	operation string
	entered   bool
	closes    []string
	reasons   []string
}

func newBooks() *books {
	return &books{
		entries: make(map[string]*entered), scopes: make(map[string]abi.Scope),
		owned: make(map[string]int), released: make(map[string]int),
	}
}

// hear books one call of a stage.
func (b *books) hear(stage string, ev *abi.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.scopes[ev.Op.ID()], b.scopes[ev.Run.ID()] = ev.Op, ev.Run
	key := ev.Op.ID() + " " + stage
	e := b.entries[key]
	if e == nil {
		e = &entered{operation: ev.Of.String()}
		b.entries[key] = e
	}
	switch ev.Hook {
	case abi.BeforeRun, abi.BeforeAgent, abi.BeforeModel, abi.BeforeTool:
		e.entered = true
	case abi.Close:
		e.closes = append(e.closes, "close")
		e.reasons = append(e.reasons, ev.Reason.String())
		if !ev.Flags.Has(abi.Entered) {
			b.faults = append(b.faults, key+": close without entered")
		}
	case abi.AfterRun, abi.AfterAgent, abi.AfterModel, abi.AfterTool, abi.OnModelError:
		if ev.Flags.Has(abi.Late) {
			b.late++
			return
		}
		if ev.Flags.Has(abi.Entered) {
			e.closes = append(e.closes, ev.Hook.String())
			e.reasons = append(e.reasons, reasonOf(ev))
		}
	}
}

// reasonOf is how an operation ended that came to its after-hook.
func reasonOf(ev *abi.Event) string {
	switch {
	case ev.Hook == abi.AfterRun:
		return ev.Reason.String()
	case ev.Hook == abi.OnModelError, ev.Source == abi.SourceError:
		return abi.ReasonError.String()
	case ev.Source == abi.SourceAnswered:
		return abi.ReasonAnswered.String()
	}
	return abi.ReasonDone.String()
}

// own gives the scope a resource, and may take it back again.
func (b *books) own(scope abi.Scope, backAgain bool) {
	b.mu.Lock()
	key := fmt.Sprint("resource ", len(b.owned))
	b.owned[key] = 1
	b.mu.Unlock()
	scope.Own(key, func(ctx context.Context, _ abi.Ending) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.released[key]++
		if ctx.Err() != nil {
			b.faults = append(b.faults, key+": released on a context that is done")
		}
	})
	if !backAgain {
		return
	}
	scope.Disown(key)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.released[key] == 0 {
		b.owned[key] = 0
	}
}

func (b *books) check(t *testing.T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, e := range b.entries {
		switch {
		case e.entered && len(e.closes) != 1:
			assert.Failf(t, "not closed once", "%s %s: %v %v", e.operation, key, e.closes, e.reasons)
		case !e.entered && len(e.closes) != 0:
			assert.Failf(t, "closed, though it never entered", "%s %s: %v", e.operation, key, e.closes)
		}
	}
	for key, owned := range b.owned {
		assert.Equal(t, owned, b.released[key], "released %s", key)
	}
	for id, scope := range b.scopes {
		for _, stage := range []string{"s0", "s1", "s2", "s3", "s4"} {
			_, text := scope.Get(stage, "k")
			_, number := scope.Get(stage, "n")
			assert.False(t, text || number, "state of %s left in %s", stage, id)
		}
	}
	assert.Empty(t, b.faults)
}

func (b *books) count(seen *tally) {
	for _, e := range b.entries {
		for _, reason := range e.reasons {
			seen.add("close " + e.operation + " " + reason)
		}
	}
	seen.many("late", b.late)
	for _, owned := range b.owned {
		seen.many("released", owned)
		seen.many("disowned", 1-owned)
	}
}

// dice are shared by all goroutines of a case.
type dice struct {
	mu  sync.Mutex
	rnd *rand.Rand
}

func newDice(seed uint64) *dice { return &dice{rnd: rand.New(rand.NewPCG(seed, seed))} }

func (d *dice) n(below int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rnd.IntN(below)
}

// chance is true once in so many times.
func (d *dice) chance(in int) bool { return d.n(in) == 0 }

func pick[T any](d *dice, from ...T) T { return from[d.n(len(from))] }

// tally counts what the cases had in them.
type tally struct {
	mu    sync.Mutex
	count map[string]int
}

func newTally() *tally { return &tally{count: make(map[string]int)} }

func (s *tally) add(what string) { s.many(what, 1) }

func (s *tally) many(what string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count[what] += n
}

func (s *tally) of(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[what]
}

func (s *tally) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(s.count)) {
		lines = append(lines, fmt.Sprintf("%s: %d", what, s.count[what]))
	}
	return strings.Join(lines, "\n")
}
