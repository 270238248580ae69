package adk_test

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host/adk"
)

// listener is a stage that continues and writes down what it hears.
type listener struct {
	mu     sync.Mutex
	heard  []string
	events []abi.Event
}

func (l *listener) Hooks() abi.HookSet {
	return abi.AllHooks &^ abi.SetOf(abi.OnUserMessage, abi.OnEvent)
}
func (l *listener) Close(context.Context) error { return nil }

func (l *listener) Call(_ context.Context, ev *abi.Event) (abi.Verdict, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := ev.Hook.String()
	if ev.Hook == abi.Close || ev.Hook == abi.AfterRun {
		line += " " + ev.Of.String() + " " + ev.Reason.String()
	}
	l.heard, l.events = append(l.heard, line), append(l.events, *ev)
	return abi.Verdict{Kind: abi.Continue}, nil
}

// house is a runner with a listener in the chain.
type house struct {
	t      *testing.T
	ledger *chain.Ledger
	runner *runner.Runner
	*listener
}

func newHouse(t *testing.T, root agent.Agent) *house {
	h := &house{t: t, listener: &listener{}}
	made, err := chain.New("v1", 0, chain.Entry{Stage: h.listener, Spec: chain.Spec{
		Name: "listener", Role: chain.Observer, Mode: chain.Enforce, Timeout: time.Minute,
		OnError: chain.Open, OnLoadError: chain.Open, OnStore: chain.Open,
	}})
	require.NoError(t, err)
	h.ledger = chain.NewLedger(made, chain.WallClock{}, chain.Tracer{})
	hooks, err := adk.New(h.ledger, slog.New(slog.NewTextHandler(io.Discard, nil)))
	require.NoError(t, err)
	h.runner, err = runner.New(runner.Config{
		AppName: "app", Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{hooks}},
	})
	require.NoError(t, err)
	return h
}

func (h *house) run() {
	msg := genai.NewContentFromText("Hello.", genai.RoleUser)
	for _, err := range h.runner.Run(h.t.Context(), "user", "session", msg, agent.RunConfig{}) {
		require.NoError(h.t, err)
	}
}

// closed checks that nothing is left open.
func (h *house) closed() {
	h.t.Helper()
	runs, ops := h.ledger.Open()
	assert.Equal(h.t, []int{0, 0}, []int{runs, ops}, "runs and operations left")
}

// script is a model that gives its replies one after the other.
type script struct {
	mu      sync.Mutex
	replies []*genai.Part
}

func (*script) Name() string { return "script" }

func (s *script) GenerateContent(context.Context, *model.LLMRequest, bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		s.mu.Lock()
		reply := s.replies[0]
		s.replies = s.replies[1:]
		s.mu.Unlock()
		yield(&model.LLMResponse{Content: &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{reply}}}, nil)
	}
}

func scripted(t *testing.T, cfg llmagent.Config, replies ...*genai.Part) agent.Agent {
	cfg.Name, cfg.Model = "assistant", &script{replies: replies}
	a, err := llmagent.New(cfg)
	require.NoError(t, err)
	return a
}

func TestAToolTheModelInventedIsClosedByItsError(t *testing.T) {
	h := newHouse(t, scripted(t, llmagent.Config{},
		&genai.Part{FunctionCall: &genai.FunctionCall{Name: "invented", ID: "c1"}}, &genai.Part{Text: "Sorry."}))
	h.run()
	assert.Equal(t, []string{
		"before_run", "before_agent",
		"before_model", "after_model",
		"on_tool_error",
		"before_model", "after_model",
		"after_agent", "after_run run done",
	}, h.heard)
	h.closed()
}

func TestAnAgentsOwnAnswerClosesTheModelCall(t *testing.T) {
	own := func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) {
		return &model.LLMResponse{Content: genai.NewContentFromText("My own.", genai.RoleModel)}, nil
	}
	h := newHouse(t, scripted(t, llmagent.Config{BeforeModelCallbacks: []llmagent.BeforeModelCallback{own}}))
	h.run()
	assert.Equal(t, []string{
		"before_run", "before_agent", "before_model", "close model answered", "after_agent", "after_run run done",
	}, h.heard)
	h.closed()
}

func TestHooksAfterTheRunShareADetachedRecord(t *testing.T) {
	over, done := make(chan struct{}), make(chan struct{})
	late := scripted(t, llmagent.Config{}, &genai.Part{Text: "Too late."})
	root, err := agent.New(agent.Config{Name: "root", Run: func(c agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			go func() {
				defer close(done)
				<-over
				for range late.Run(c) {
				}
			}()
			yield(&session.Event{LLMResponse: model.LLMResponse{Content: genai.NewContentFromText("Bye.", genai.RoleModel)}}, nil)
		}
	}})
	require.NoError(t, err)
	h := newHouse(t, root)
	h.run()
	ended := len(h.heard)
	assert.Equal(t, "after_run run done", h.heard[ended-1])
	h.closed()

	close(over)
	<-done
	assert.Equal(t, []string{"before_agent", "before_model", "after_model", "after_agent"}, h.heard[ended:], "a run that never began has no end")
	for _, ev := range h.events[ended+2:] {
		assert.True(t, ev.Flags.Has(abi.Entered), "%s knows its before-hook", ev.Hook)
		assert.False(t, ev.Flags.Has(abi.Late))
		assert.Equal(t, h.events[ended].Run.ID(), ev.Run.ID(), "and all are of one record")
	}
	assert.NotEqual(t, h.events[0].Run.ID(), h.events[ended].Run.ID())
	h.closed()
}
