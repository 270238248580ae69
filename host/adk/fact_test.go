// The facts of ADK that hookhost rests on, each against the real runner with a
// plugin that only records. docs/adk.md has the same numbers: when an ADK
// upgrade breaks a test here, its name says which fact is no more.
package adk_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"slices"
	"strings"
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
	"google.golang.org/adk/v2/tool"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/host/demo"
)

// probe is a runner with scripted agents and a plugin that writes down every
// callback it gets. What a callback does besides is set in on.
type probe struct {
	t     *testing.T
	tree  demo.Tree
	model *demo.Model
	desk  *demo.Desk

	on       plugin.Config
	front    []*plugin.Plugin // registered before the recording one
	behind   []*plugin.Plugin // registered after it
	sessions session.Service
	runner   *runner.Runner

	mu    sync.Mutex
	lines []string
}

func newProbe(t *testing.T, shape demo.Shape, replies ...demo.Reply) *probe {
	p := &probe{t: t, model: &demo.Model{Replies: replies}, desk: new(demo.Desk), sessions: session.InMemoryService()}
	p.tree = demo.Tree{Shape: shape, Model: p.model, Tools: p.desk.Tools()}
	return p
}

// say runs one turn to its end, without a stream.
func (p *probe) say(text string) demo.Outcome {
	return p.run(p.t.Context(), demo.Turn{Text: text})
}

// stream runs one turn to its end, in SSE mode.
func (p *probe) stream(text string) demo.Outcome {
	return p.run(p.t.Context(), demo.Turn{Text: text, Stream: true})
}

func (p *probe) run(ctx context.Context, turn demo.Turn) demo.Outcome {
	return demo.Run(ctx, p.start(), turn)
}

// start makes the runner on first use, so that a test can set the probe up.
func (p *probe) start() *runner.Runner {
	if p.runner != nil {
		return p.runner
	}
	root, err := p.tree.Agent()
	require.NoError(p.t, err)
	p.runner = p.runnerFor(root)
	return p.runner
}

// renew makes the runner anew, with the callbacks as they are now.
func (p *probe) renew() {
	p.runner = nil
	p.start()
}

func (p *probe) runnerFor(root agent.Agent) *runner.Runner {
	r, err := runner.New(runner.Config{
		AppName: "app", Agent: root, SessionService: p.sessions, AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: slices.Concat(p.front, []*plugin.Plugin{p.recorder()}, p.behind)},
	})
	require.NoError(p.t, err)
	return r
}

// each changes every LLM agent of the tree.
func (p *probe) each(change func(*llmagent.Config)) { p.tree.Each = change }

func (p *probe) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, fmt.Sprintf(format, args...))
}

// trace is what was recorded: hook[who], who being an agent, a tool or an author.
func (p *probe) trace() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lines)
}

// hooks is the trace of these hooks alone.
func (p *probe) hooks(names ...string) []string {
	return slices.DeleteFunc(p.trace(), func(line string) bool {
		hook, _, _ := strings.Cut(line, "[")
		return !slices.Contains(names, hook)
	})
}

func (p *probe) count(line string) int {
	n := 0
	for _, l := range p.trace() {
		if l == line {
			n++
		}
	}
	return n
}

// stored is the session as it is kept, an event a line.
func (p *probe) stored() []string {
	var out []string
	for _, ev := range p.events() {
		out = append(out, show(ev))
	}
	return out
}

func (p *probe) events() []*session.Event {
	resp, err := p.sessions.Get(context.Background(), &session.GetRequest{AppName: "app", UserID: "user", SessionID: "session"})
	require.NoError(p.t, err)
	return slices.Collect(resp.Session.Events().All())
}

func (p *probe) state(key string) any {
	resp, err := p.sessions.Get(context.Background(), &session.GetRequest{AppName: "app", UserID: "user", SessionID: "session"})
	require.NoError(p.t, err)
	v, err := resp.Session.State().Get(key)
	if err != nil {
		return nil
	}
	return v
}

// lastRead is what the model read in its last call.
func (p *probe) lastRead() demo.Request {
	requests := p.model.Requests()
	require.NotEmpty(p.t, requests, "the model was never called")
	return requests[len(requests)-1]
}

// result is the result of a tool in what the model read last.
func (p *probe) result(name string) map[string]any {
	for _, c := range p.lastRead().Contents {
		for _, part := range c.Parts {
			if part.FunctionResponse != nil && part.FunctionResponse.Name == name {
				return part.FunctionResponse.Response
			}
		}
	}
	require.Fail(p.t, "the model read no result", "of tool[%s]", name)
	return nil
}

func (p *probe) recorder() *plugin.Plugin {
	on := p.on
	rec, err := plugin.New(plugin.Config{
		Name:      cmp.Or(on.Name, "recorder"),
		CloseFunc: on.CloseFunc,
		OnUserMessageCallback: func(c agent.InvocationContext, msg *genai.Content) (*genai.Content, error) {
			p.note("on_user_message")
			if on.OnUserMessageCallback != nil {
				return on.OnUserMessageCallback(c, msg)
			}
			return nil, nil
		},
		BeforeRunCallback: func(c agent.InvocationContext) (*genai.Content, error) {
			p.note("before_run")
			if on.BeforeRunCallback != nil {
				return on.BeforeRunCallback(c)
			}
			return nil, nil
		},
		AfterRunCallback: func(c agent.InvocationContext) {
			p.note("after_run")
			if on.AfterRunCallback != nil {
				on.AfterRunCallback(c)
			}
		},
		OnEventCallback: func(c agent.InvocationContext, ev *session.Event) (*session.Event, error) {
			p.note("on_event[%s]%s", ev.Author, mark(ev.Partial))
			if on.OnEventCallback != nil {
				return on.OnEventCallback(c, ev)
			}
			return nil, nil
		},
		BeforeAgentCallback: func(c agent.Context) (*genai.Content, error) {
			p.note("before_agent[%s]", c.AgentName())
			if on.BeforeAgentCallback != nil {
				return on.BeforeAgentCallback(c)
			}
			return nil, nil
		},
		AfterAgentCallback: func(c agent.Context) (*genai.Content, error) {
			p.note("after_agent[%s]", c.AgentName())
			if on.AfterAgentCallback != nil {
				return on.AfterAgentCallback(c)
			}
			return nil, nil
		},
		BeforeModelCallback: func(c agent.Context, req *model.LLMRequest) (*model.LLMResponse, error) {
			p.note("before_model[%s]", c.AgentName())
			if on.BeforeModelCallback != nil {
				return on.BeforeModelCallback(c, req)
			}
			return nil, nil
		},
		AfterModelCallback: func(c agent.Context, resp *model.LLMResponse, failure error) (*model.LLMResponse, error) {
			p.note("after_model[%s]%s", c.AgentName(), mark(resp.Partial))
			if on.AfterModelCallback != nil {
				return on.AfterModelCallback(c, resp, failure)
			}
			return nil, nil
		},
		OnModelErrorCallback: func(c agent.Context, req *model.LLMRequest, failure error) (*model.LLMResponse, error) {
			p.note("on_model_error[%s]", c.AgentName())
			if on.OnModelErrorCallback != nil {
				return on.OnModelErrorCallback(c, req, failure)
			}
			return nil, nil
		},
		BeforeToolCallback: func(c agent.Context, t tool.Tool, args map[string]any) (map[string]any, error) {
			p.note("before_tool[%s]", t.Name())
			if on.BeforeToolCallback != nil {
				return on.BeforeToolCallback(c, t, args)
			}
			return nil, nil
		},
		AfterToolCallback: func(c agent.Context, t tool.Tool, args, result map[string]any, failure error) (map[string]any, error) {
			p.note("after_tool[%s]", t.Name())
			if on.AfterToolCallback != nil {
				return on.AfterToolCallback(c, t, args, result, failure)
			}
			return nil, nil
		},
		OnToolErrorCallback: func(c agent.Context, t tool.Tool, args map[string]any, failure error) (map[string]any, error) {
			p.note("on_tool_error[%s]", t.Name())
			if on.OnToolErrorCallback != nil {
				return on.OnToolErrorCallback(c, t, args, failure)
			}
			return nil, nil
		},
	})
	require.NoError(p.t, err)
	return rec
}

func mark(partial bool) string {
	if partial {
		return " partial"
	}
	return ""
}

// show puts an event in a line: who, and what in which order.
func show(ev *session.Event) string {
	if ev.Content == nil {
		return ev.Author + ":"
	}
	var parts []string
	for _, p := range ev.Content.Parts {
		switch {
		case p.FunctionCall != nil:
			parts = append(parts, "call "+p.FunctionCall.Name)
		case p.FunctionResponse != nil:
			parts = append(parts, "result "+p.FunctionResponse.Name)
		default:
			parts = append(parts, p.Text)
		}
	}
	return strings.TrimSpace(ev.Author + ": " + strings.Join(parts, ", "))
}

func modelSays(text string) *genai.Content { return genai.NewContentFromText(text, genai.RoleModel) }

func answer(text string) *model.LLMResponse { return &model.LLMResponse{Content: modelSays(text)} }

// calls is a reply that calls tools, each on order A-1.
func calls(tools ...string) demo.Reply {
	var r demo.Reply
	for i, name := range tools {
		r.Calls = append(r.Calls, demo.Call{
			ID: fmt.Sprintf("%s-%d", name, i+1), Name: name, Args: map[string]any{"order": "A-1"},
		})
	}
	return r
}

func transferTo(agent string) demo.Reply {
	return demo.Reply{Calls: []demo.Call{{ID: "t1", Name: "transfer_to_agent", Args: map[string]any{"agent_name": agent}}}}
}

// llm is a model made of a function, for what no script can say.
type llm func(ctx context.Context, yield func(*model.LLMResponse, error) bool)

func (llm) Name() string { return "function" }

func (f llm) GenerateContent(ctx context.Context, _ *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) { f(ctx, yield) }
}

func partial(text string) *model.LLMResponse {
	return &model.LLMResponse{Content: modelSays(text), Partial: true}
}

// within waits for the channel, or fails the test.
func within[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(10 * time.Second):
		require.Fail(t, "waited in vain", what)
		panic("unreachable")
	}
}

// dies runs the rest of the test in a process of its own, because it may
// die of it. It returns true there; in the test itself it returns false and
// what the process printed, after the process ended badly.
func dies(t *testing.T) (child bool, output string) {
	t.Helper()
	if os.Getenv("HOOKHOST_FACT_CHILD") == t.Name() {
		return true, ""
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=30s")
	cmd.Env = append(os.Environ(), "HOOKHOST_FACT_CHILD="+t.Name())
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "the process lived: %s", out)
	assert.NotContains(t, string(out), "test timed out")
	return false, string(out)
}
