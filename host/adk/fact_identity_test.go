package adk_test

import (
	"iter"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/host/demo"
)

// What tells operations apart: the pointer, the map or the value itself.
func runOf(c agent.InvocationContext) *agent.RunConfig { return bare(c).RunConfig() }

func agentOf(c agent.Context) agent.InvocationContext { return inner(c.WithDelta(nil)) }

// inner is the invocation context that a bare context is made of; the method
// is not in ADK's interface.
func inner(bare any) agent.InvocationContext {
	return bare.(interface {
		InvocationContext() agent.InvocationContext
	}).InvocationContext()
}

func modelCallOf(c agent.Context) uintptr { return mapOf(c.WithDelta(nil).Actions().StateDelta) }

func mapOf(m map[string]any) uintptr { return reflect.ValueOf(m).Pointer() }

func bare(c agent.InvocationContext) agent.InvocationContext {
	if wrapped, ok := c.(agent.Context); ok {
		return wrapped.WithDelta(nil)
	}
	return c
}

// identities collects what the hooks saw of one kind of operation.
type identities[K comparable] struct {
	mu   sync.Mutex
	seen map[K][]string
	hold []any // keeps the keyed objects alive, so that no address comes twice
}

func (i *identities[K]) add(k K, keep any, hook string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.seen == nil {
		i.seen = map[K][]string{}
	}
	i.seen[k] = append(i.seen[k], hook)
	i.hold = append(i.hold, keep)
}

func (i *identities[K]) groups() [][]string {
	var out [][]string
	for _, hooks := range i.seen {
		out = append(out, hooks)
	}
	return out
}

func TestFact24_CallbackContextsHideSessionAgentAndRunConfig(t *testing.T) {
	p := newProbe(t, demo.LLM, calls("lookup"), demo.Reply{Text: "done"})
	check := func(c agent.Context) {
		assert.Nil(t, c.Session())
		assert.Nil(t, c.Agent())
		assert.Nil(t, c.RunConfig())
		assert.Equal(t, []string{"user", "session", "app", "assistant", ""},
			[]string{c.UserID(), c.SessionID(), c.AppName(), c.AgentName(), c.Branch()})

		u := c.WithDelta(nil)
		assert.NotNil(t, u.Session())
		assert.Equal(t, "assistant", u.Agent().Name())
		assert.NotNil(t, u.RunConfig())
		p.note("checked")
	}
	p.on.BeforeAgentCallback = func(c agent.Context) (*genai.Content, error) { check(c); return nil, nil }
	p.on.BeforeModelCallback = func(c agent.Context, _ *model.LLMRequest) (*model.LLMResponse, error) { check(c); return nil, nil }
	p.on.BeforeToolCallback = func(c agent.Context, _ tool.Tool, _ map[string]any) (map[string]any, error) {
		check(c)
		return nil, nil
	}
	require.NoError(t, p.say("hello").Err())
	assert.Equal(t, 4, p.count("checked"))
}

func TestFact42_ARunIsItsRunConfig(t *testing.T) {
	for _, shape := range demo.Shapes {
		t.Run(string(shape), func(t *testing.T) {
			p := newProbe(t, shape)
			p.model.Repeat, p.tree.Iterations = true, 1
			p.model.Replies = []demo.Reply{calls("lookup"), {Text: "done"}}
			if shape == demo.Transfer {
				p.model.Replies = append([]demo.Reply{transferTo("specialist")}, p.model.Replies...)
			}
			var runs identities[*agent.RunConfig]
			see := func(c agent.InvocationContext, hook string) { runs.add(runOf(c), nil, hook) }
			p.watchRuns(see)

			require.NoError(t, p.say("one").Err())
			require.NoError(t, p.say("two").Err())
			require.Len(t, runs.seen, 2, "two turns, two runs")
			for run, hooks := range runs.seen {
				assert.NotNil(t, run)
				assert.Subset(t, hooks, []string{
					"on_user_message", "before_run", "before_agent", "before_model", "after_model", "on_event", "after_agent", "after_run",
				})
			}
		})
	}
}

// watchRuns hands every context to see.
func (p *probe) watchRuns(see func(agent.InvocationContext, string)) {
	p.on.OnUserMessageCallback = func(c agent.InvocationContext, _ *genai.Content) (*genai.Content, error) {
		see(c, "on_user_message")
		return nil, nil
	}
	p.on.BeforeRunCallback = func(c agent.InvocationContext) (*genai.Content, error) { see(c, "before_run"); return nil, nil }
	p.on.AfterRunCallback = func(c agent.InvocationContext) { see(c, "after_run") }
	p.on.OnEventCallback = func(c agent.InvocationContext, _ *session.Event) (*session.Event, error) {
		see(c, "on_event")
		return nil, nil
	}
	p.on.BeforeAgentCallback = func(c agent.Context) (*genai.Content, error) { see(c, "before_agent"); return nil, nil }
	p.on.AfterAgentCallback = func(c agent.Context) (*genai.Content, error) { see(c, "after_agent"); return nil, nil }
	p.on.BeforeModelCallback = func(c agent.Context, _ *model.LLMRequest) (*model.LLMResponse, error) {
		see(c, "before_model")
		return nil, nil
	}
	p.on.AfterModelCallback = func(c agent.Context, _ *model.LLMResponse, _ error) (*model.LLMResponse, error) {
		see(c, "after_model")
		return nil, nil
	}
	p.on.BeforeToolCallback = func(c agent.Context, _ tool.Tool, _ map[string]any) (map[string]any, error) {
		see(c, "before_tool")
		return nil, nil
	}
	p.on.AfterToolCallback = func(c agent.Context, _ tool.Tool, _, _ map[string]any, _ error) (map[string]any, error) {
		see(c, "after_tool")
		return nil, nil
	}
	p.on.OnToolErrorCallback = func(c agent.Context, _ tool.Tool, _ map[string]any, _ error) (map[string]any, error) {
		see(c, "on_tool_error")
		return nil, nil
	}
	p.on.OnModelErrorCallback = func(c agent.Context, _ *model.LLMRequest, _ error) (*model.LLMResponse, error) {
		see(c, "on_model_error")
		return nil, nil
	}
}

func TestFact42_AnAgentIsItsInvocationContext(t *testing.T) {
	for shape, n := range map[demo.Shape]int{
		demo.LLM: 1, demo.Transfer: 2, demo.Sequential: 3, demo.Parallel: 3, demo.Loop: 3, demo.Custom: 2, demo.Workflow: 3,
	} {
		t.Run(string(shape), func(t *testing.T) {
			p := newProbe(t, shape, demo.Reply{Text: "done"})
			p.model.Repeat, p.tree.Iterations = true, 2
			if shape == demo.Transfer {
				p.model.Replies = []demo.Reply{transferTo("specialist"), {Text: "done"}}
			}
			var agents identities[agent.InvocationContext]
			p.watchAgents(&agents)
			require.NoError(t, p.say("hello").Err())
			require.Len(t, agents.seen, n)
			for _, hooks := range agents.groups() {
				assert.Equal(t, []string{"before_agent", "after_agent"}, hooks)
			}
		})
	}
}

func (p *probe) watchAgents(agents *identities[agent.InvocationContext]) {
	p.on.BeforeAgentCallback = func(c agent.Context) (*genai.Content, error) {
		agents.add(agentOf(c), agentOf(c), "before_agent")
		return nil, nil
	}
	p.on.AfterAgentCallback = func(c agent.Context) (*genai.Content, error) {
		agents.add(agentOf(c), agentOf(c), "after_agent")
		return nil, nil
	}
}

func TestFact42_OneAgentTwiceAtOnceIsTwoAgents(t *testing.T) {
	p := newProbe(t, demo.LLM, demo.Reply{Text: "done"})
	p.model.Repeat = true
	sub, err := p.tree.Agent()
	require.NoError(t, err)
	root, err := agent.New(agent.Config{Name: "root", SubAgents: []agent.Agent{sub}, Run: twiceAtOnce})
	require.NoError(t, err)

	var agents identities[agent.InvocationContext]
	p.watchAgents(&agents)
	meet := rendezvous(t)
	p.on.BeforeModelCallback = func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) { meet(); return nil, nil }
	p.runner = p.runnerFor(root)
	require.NoError(t, p.say("hello").Err())

	require.Len(t, agents.seen, 3, "the root, and the agent two times")
	for _, hooks := range agents.groups() {
		assert.Equal(t, []string{"before_agent", "after_agent"}, hooks)
	}
}

// twiceAtOnce runs the first sub-agent two times side by side.
func twiceAtOnce(c agent.InvocationContext) iter.Seq2[*session.Event, error] {
	return func(yield func(*session.Event, error) bool) {
		events := make(chan *session.Event, 16)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for ev := range c.Agent().SubAgents()[0].Run(c) {
					events <- ev
				}
			})
		}
		wg.Wait()
		close(events)
		for ev := range events {
			if !yield(ev, nil) {
				return
			}
		}
	}
}

func TestFact42_AModelCallIsItsStateDelta(t *testing.T) {
	p := newProbe(t, demo.Parallel,
		demo.Reply{Agent: "left", Chunks: []string{"a", "b"}},
		demo.Reply{Agent: "right", Error: "503"})
	p.on.OnModelErrorCallback = nil
	var modelCalls identities[uintptr]
	see := func(c agent.Context, hook string) {
		delta := c.WithDelta(nil).Actions().StateDelta
		modelCalls.add(mapOf(delta), delta, hook)
	}
	p.on.BeforeModelCallback = func(c agent.Context, _ *model.LLMRequest) (*model.LLMResponse, error) {
		see(c, "before_model")
		return nil, nil
	}
	p.on.AfterModelCallback = func(c agent.Context, resp *model.LLMResponse, _ error) (*model.LLMResponse, error) {
		see(c, "after_model"+mark(resp.Partial))
		return nil, nil
	}
	p.on.OnModelErrorCallback = func(c agent.Context, _ *model.LLMRequest, _ error) (*model.LLMResponse, error) {
		see(c, "on_model_error")
		return answer("sorry"), nil
	}
	p.on.OnEventCallback = func(_ agent.InvocationContext, ev *session.Event) (*session.Event, error) {
		modelCalls.add(mapOf(ev.Actions.StateDelta), ev.Actions.StateDelta, "on_event"+mark(ev.Partial))
		return nil, nil
	}
	require.NoError(t, p.stream("hello").Err())
	assert.ElementsMatch(t, [][]string{
		{"before_model", "after_model partial", "on_event partial", "after_model partial", "on_event partial", "after_model", "on_event"},
		{"before_model", "on_model_error", "after_model", "on_event"},
	}, modelCalls.groups())
}

func TestFact42_ModelCallsOfOneAgentAreApart(t *testing.T) {
	p := newProbe(t, demo.LLM, calls("lookup"), demo.Reply{Text: "done"})
	var modelCalls identities[uintptr]
	p.on.BeforeModelCallback = func(c agent.Context, _ *model.LLMRequest) (*model.LLMResponse, error) {
		modelCalls.add(modelCallOf(c), c, "before_model")
		return nil, nil
	}
	p.on.AfterModelCallback = func(c agent.Context, _ *model.LLMResponse, _ error) (*model.LLMResponse, error) {
		modelCalls.add(modelCallOf(c), c, "after_model")
		return nil, nil
	}
	require.NoError(t, p.say("hello").Err())
	assert.Equal(t, [][]string{{"before_model", "after_model"}, {"before_model", "after_model"}}, modelCalls.groups())
}

func TestFact42_AToolCallIsItsContext(t *testing.T) {
	twice := calls("lookup", "lookup", "ledger")
	twice.Calls[1].ID = twice.Calls[0].ID // the model repeats an id
	p := newProbe(t, demo.LLM, twice, demo.Reply{Text: "done"})
	var toolCalls identities[agent.Context]
	var ids sync.Map
	p.on.BeforeToolCallback = func(c agent.Context, _ tool.Tool, _ map[string]any) (map[string]any, error) {
		toolCalls.add(c, c, "before_tool")
		ids.Store(c.FunctionCallID(), true)
		return nil, nil
	}
	p.on.OnToolErrorCallback = func(c agent.Context, _ tool.Tool, _ map[string]any, _ error) (map[string]any, error) {
		toolCalls.add(c, c, "on_tool_error")
		return nil, nil
	}
	p.on.AfterToolCallback = func(c agent.Context, _ tool.Tool, _, _ map[string]any, _ error) (map[string]any, error) {
		toolCalls.add(c, c, "after_tool")
		return nil, nil
	}
	require.NoError(t, p.say("hello").Err())
	assert.ElementsMatch(t, [][]string{
		{"before_tool", "after_tool"}, {"before_tool", "after_tool"}, {"before_tool", "on_tool_error", "after_tool"},
	}, toolCalls.groups())
	n := 0
	ids.Range(func(any, any) bool { n++; return true })
	assert.Equal(t, 2, n, "three calls, but two ids")
}

func TestFact42_AToolCallBelongsToTheAgentOfItsModelCall(t *testing.T) {
	p := newProbe(t, demo.LLM, calls("lookup", "ledger"), demo.Reply{Text: "done"})
	var flow agent.InvocationContext
	p.on.BeforeModelCallback = func(c agent.Context, _ *model.LLMRequest) (*model.LLMResponse, error) {
		flow = inner(agentOf(c))
		return nil, nil
	}
	p.on.BeforeToolCallback = func(c agent.Context, _ tool.Tool, _ map[string]any) (map[string]any, error) {
		assert.Same(t, flow, agentOf(c))
		return nil, nil
	}
	require.NoError(t, p.say("hello").Err())
}

func TestFact42_BranchAndNameAreAmbiguous(t *testing.T) {
	p := newProbe(t, demo.Loop, demo.Reply{Text: "done"})
	p.model.Repeat, p.tree.Iterations = true, 2
	var names identities[[3]string]
	p.on.BeforeAgentCallback = func(c agent.Context) (*genai.Content, error) {
		names.add([3]string{c.InvocationID(), c.Branch(), c.AgentName()}, nil, "before_agent")
		return nil, nil
	}
	require.NoError(t, p.say("hello").Err())
	assert.ElementsMatch(t, [][]string{{"before_agent"}, {"before_agent", "before_agent"}}, names.groups())
}

func TestFact35_AnAgentsOwnAnswerHasNoAfterModel(t *testing.T) {
	p := newProbe(t, demo.LLM)
	p.each(func(c *llmagent.Config) {
		c.BeforeModelCallbacks = []llmagent.BeforeModelCallback{
			func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) { return answer("cached"), nil },
		}
	})
	var call, event uintptr
	p.on.BeforeModelCallback = func(c agent.Context, _ *model.LLMRequest) (*model.LLMResponse, error) {
		call = modelCallOf(c)
		return nil, nil
	}
	p.on.OnEventCallback = func(_ agent.InvocationContext, ev *session.Event) (*session.Event, error) {
		event = mapOf(ev.Actions.StateDelta)
		return nil, nil
	}
	assert.Equal(t, []string{"cached"}, p.say("hello").Texts())
	assert.Equal(t, []string{"before_model[assistant]"}, p.hooks("before_model", "after_model", "on_model_error"))
	assert.Equal(t, call, event, "the event carries the call's state delta")
	assert.NotZero(t, call)
}
