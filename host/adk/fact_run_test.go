package adk_test

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/host/demo"
)

var errHook = errors.New("hook failed")

func TestFact01_BeforeRunAnswerIsLost(t *testing.T) {
	for _, shape := range demo.Shapes {
		t.Run(string(shape), func(t *testing.T) {
			p := newProbe(t, shape)
			p.on.OnUserMessageCallback = func(agent.InvocationContext, *genai.Content) (*genai.Content, error) {
				return genai.NewContentFromText("[masked]", genai.RoleUser), nil
			}
			p.on.BeforeRunCallback = func(agent.InvocationContext) (*genai.Content, error) { return modelSays("denied"), nil }

			out := p.say("my secret")
			require.NoError(t, out.Err())
			assert.Equal(t, []string{"my secret"}, out.Texts(), "the caller reads its own message")
			assert.Equal(t, []string{"user: [masked]", "user: my secret"}, p.stored(), "the mask is undone")
			assert.Equal(t, []string{"on_user_message", "before_run", "after_run"}, p.trace())
		})
	}
}

func TestFact01_AnswerOfTheFirstBeforeAgentIsReadOnce(t *testing.T) {
	for _, shape := range demo.Shapes {
		for _, stream := range []bool{false, true} {
			t.Run(string(shape)+map[bool]string{true: " stream"}[stream], func(t *testing.T) {
				p := newProbe(t, shape)
				p.on.BeforeAgentCallback = func(agent.Context) (*genai.Content, error) { return modelSays("denied"), nil }

				out := p.run(t.Context(), demo.Turn{Text: "hello", Stream: stream})
				require.NoError(t, out.Err())
				root := out.Events[0].Author
				assert.Equal(t, []string{"denied"}, out.Texts())
				assert.Equal(t, []string{"user: hello", root + ": denied"}, p.stored())
				assert.Equal(t, []string{
					"on_user_message", "before_run", "before_agent[" + root + "]", "on_event[" + root + "]", "after_run",
				}, p.trace())
				assert.Empty(t, p.model.Requests())
			})
		}
	}
}

func TestFact02_BeforeRunErrorComesWithTheMessage(t *testing.T) {
	p := newProbe(t, demo.LLM)
	p.on.BeforeRunCallback = func(agent.InvocationContext) (*genai.Content, error) { return nil, errHook }

	out := p.say("hello")
	require.ErrorIs(t, out.Err(), errHook)
	require.Len(t, out.Errs, 1)
	assert.Equal(t, []string{"hello"}, out.Texts(), "event and error are one pair")
	assert.Equal(t, []string{"user: hello", "user: hello"}, p.stored())
}

func TestFact03_AfterRunIsDeferred(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*probe)
		turn demo.Turn
	}{
		"denial": {set: func(p *probe) {
			p.on.BeforeRunCallback = func(agent.InvocationContext) (*genai.Content, error) { return modelSays("no"), nil }
		}},
		"error": {set: func(p *probe) { p.model.Replies = []demo.Reply{{Error: "503"}} }},
		"break": {turn: demo.Turn{Stream: true, Each: func(*session.Event) bool { return false }}},
		"panic": {set: func(p *probe) {
			p.on.BeforeModelCallback = func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) { panic("hook") }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProbe(t, demo.LLM, demo.Reply{Chunks: []string{"a", "b"}})
			if c.set != nil {
				c.set(p)
			}
			p.run(t.Context(), c.turn)
			assert.Equal(t, "after_run", p.trace()[len(p.trace())-1])
			assert.Equal(t, 1, p.count("after_run"))
		})
	}
}

func TestFact03_NoAfterRunBeforeBeforeRun(t *testing.T) {
	p := newProbe(t, demo.LLM)
	p.on.OnUserMessageCallback = func(agent.InvocationContext, *genai.Content) (*genai.Content, error) { return nil, errHook }
	require.ErrorIs(t, p.say("hello").Err(), errHook)
	assert.Equal(t, []string{"on_user_message"}, p.trace())

	p = newProbe(t, demo.LLM)
	p.sessions = fullSessions{p.sessions}
	require.ErrorIs(t, p.say("hello").Err(), errFull)
	assert.Equal(t, []string{"on_user_message"}, p.trace())
}

var errFull = errors.New("disk is full")

type fullSessions struct{ session.Service }

func (fullSessions) AppendEvent(context.Context, session.Session, *session.Event) error {
	return errFull
}

func TestFact04_AfterRunComesOnADeadContextAfterADisconnect(t *testing.T) {
	for _, shape := range []demo.Shape{demo.LLM, demo.Sequential} {
		t.Run(string(shape), func(t *testing.T) {
			p := newProbe(t, shape, demo.Reply{Chunks: []string{"a", "b", "c"}})
			var atEnd, without error
			p.on.AfterRunCallback = func(c agent.InvocationContext) {
				atEnd, without = c.Err(), context.WithoutCancel(c).Err()
			}
			ctx, cancel := context.WithCancel(t.Context())
			p.run(ctx, demo.Turn{Stream: true, Each: func(*session.Event) bool { cancel(); return true }})

			require.ErrorIs(t, atEnd, context.Canceled)
			assert.NoError(t, without)
		})
	}
}

func TestFact05_HooksRunBetweenABreakAndAfterRun(t *testing.T) {
	p := newProbe(t, demo.LLM)
	p.each(func(c *llmagent.Config) {
		c.Model = llm(func(ctx context.Context, yield func(*model.LLMResponse, error) bool) {
			if !yield(partial("a"), nil) {
				return
			}
			<-ctx.Done()
			yield(nil, ctx.Err())
		})
	})
	var failure, alive error
	p.on.OnModelErrorCallback = func(c agent.Context, _ *model.LLMRequest, err error) (*model.LLMResponse, error) {
		failure, alive = err, c.Err()
		return nil, nil
	}
	p.run(t.Context(), demo.Turn{Stream: true, Each: func(*session.Event) bool { return false }})

	require.ErrorIs(t, failure, context.Canceled)
	require.ErrorIs(t, alive, context.Canceled, "the hook runs on a dead context")
	assert.Equal(t, []string{"on_event[assistant] partial", "on_model_error[assistant]", "after_run"}, p.hooks("on_event", "on_model_error", "after_run"))
	assert.Empty(t, p.hooks("after_agent"))
}

func TestFact05_AfterModelRunsOnADeadContextAfterABreak(t *testing.T) {
	p := newProbe(t, demo.LLM)
	p.each(func(c *llmagent.Config) {
		c.Model = llm(func(ctx context.Context, yield func(*model.LLMResponse, error) bool) {
			if !yield(partial("a"), nil) {
				return
			}
			<-ctx.Done()
			yield(partial("b"), nil) // a model that had it on the way already
		})
	})
	var alive error
	p.on.AfterModelCallback = func(c agent.Context, resp *model.LLMResponse, _ error) (*model.LLMResponse, error) {
		if demo.Text(resp.Content) == "b" {
			alive = c.Err()
		}
		return nil, nil
	}
	p.run(t.Context(), demo.Turn{Stream: true, Each: func(*session.Event) bool { return false }})

	require.ErrorIs(t, alive, context.Canceled)
	assert.Equal(t, "after_run", p.trace()[len(p.trace())-1])
}

func TestFact05_ASiblingStartsAfterABreak(t *testing.T) {
	p := newProbe(t, demo.Parallel, demo.Reply{Agent: "left", Text: "a"}, demo.Reply{Agent: "right", Text: "b"})
	broke := make(chan struct{})
	p.on.BeforeAgentCallback = func(c agent.Context) (*genai.Content, error) {
		if c.AgentName() == "right" {
			within(t, broke, "the break")
			within(t, c.Done(), "the cancel")
		}
		return nil, nil
	}
	p.run(t.Context(), demo.Turn{Each: func(*session.Event) bool { close(broke); return false }})

	assert.Equal(t, 1, p.count("before_model[right]"), "the model hook runs though nobody listens")
	assert.Equal(t, "after_run", p.trace()[len(p.trace())-1])
}

func TestFact05_AfterAgentAfterACancelDependsOnTheRoot(t *testing.T) {
	for shape, want := range map[demo.Shape][]string{
		demo.LLM:        {},
		demo.Transfer:   {},
		demo.Custom:     {"after_agent[assistant]", "after_agent[custom]"},
		demo.Sequential: {"after_agent[first]", "after_agent[second]", "after_agent[sequence]"},
		demo.Loop:       {"after_agent[worker]", "after_agent[loop]"},
		demo.Parallel:   {"after_agent[panel]"},
		demo.Workflow:   {"after_agent[flow]"},
	} {
		t.Run(string(shape), func(t *testing.T) {
			p := newProbe(t, shape, demo.Reply{Chunks: []string{"a", "b", "c"}})
			p.model.Repeat, p.tree.Iterations = true, 1
			ctx, cancel := context.WithCancel(t.Context())
			p.run(ctx, demo.Turn{Stream: true, Each: func(*session.Event) bool { cancel(); return true }})
			assert.Equal(t, want, p.hooks("after_agent"))
		})
	}
}

func TestFact18_BeforeAgentContentEndsThatAgentAlone(t *testing.T) {
	for shape, names := range map[demo.Shape][2]string{
		demo.Sequential: {"first", "second"},
		demo.Parallel:   {"left", "right"},
		demo.Workflow:   {"first", "second"},
	} {
		t.Run(string(shape), func(t *testing.T) {
			p := newProbe(t, shape, demo.Reply{Text: "I go on"})
			p.on.BeforeAgentCallback = func(c agent.Context) (*genai.Content, error) {
				if c.AgentName() == names[0] {
					return modelSays("denied"), nil
				}
				return nil, nil
			}
			out := p.say("hello")
			require.NoError(t, out.Err())
			assert.ElementsMatch(t, []string{"denied", "I go on"}, out.Texts())
			assert.NotContains(t, p.trace(), "after_agent["+names[0]+"]")
		})
	}
}

func TestFact19_BeforeAgentErrorFailsOpen(t *testing.T) {
	for _, shape := range []demo.Shape{demo.Custom, demo.Sequential, demo.Parallel, demo.Loop, demo.Workflow} {
		t.Run(string(shape), func(t *testing.T) {
			p := newProbe(t, shape, demo.Reply{Text: "unguarded"})
			p.model.Repeat, p.tree.Iterations = true, 1
			p.on.BeforeAgentCallback = func(c agent.Context) (*genai.Content, error) {
				if len(p.hooks("before_agent")) == 1 {
					return nil, errHook
				}
				return nil, nil
			}
			out := p.say("hello")
			require.ErrorIs(t, out.Err(), errHook)
			assert.Contains(t, out.Texts(), "unguarded", "the model was asked all the same")
		})
	}
}

func TestFact19_AnLLMRootFailsClosed(t *testing.T) {
	p := newProbe(t, demo.LLM, demo.Reply{Text: "unguarded"})
	p.on.BeforeAgentCallback = func(agent.Context) (*genai.Content, error) { return nil, errHook }

	out := p.say("hello")
	require.ErrorIs(t, out.Err(), errHook)
	assert.Empty(t, p.model.Requests())
}

func TestFact20_ParallelAgentsRunHooksAtOnce(t *testing.T) {
	p := newProbe(t, demo.Parallel, demo.Reply{Text: "a"}, demo.Reply{Text: "b"})
	meet := rendezvous(t)
	p.on.BeforeModelCallback = func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) { meet(); return nil, nil }
	require.NoError(t, p.say("hello").Err())
}

func TestFact20_AChildsErrorCancelsItsSiblings(t *testing.T) {
	p := newProbe(t, demo.Parallel, demo.Reply{Agent: "left", Error: "503"}, demo.Reply{Agent: "right", Text: "b"})
	var sibling error
	p.on.BeforeModelCallback = func(c agent.Context, _ *model.LLMRequest) (*model.LLMResponse, error) {
		if c.AgentName() == "right" {
			within(t, c.Done(), "the cancel")
			sibling = c.Err()
		}
		return nil, nil
	}
	require.ErrorContains(t, p.say("hello").Err(), "503")
	require.ErrorIs(t, sibling, context.Canceled)
}

func TestFact27_AgentHooksNestOnATransfer(t *testing.T) {
	p := newProbe(t, demo.Transfer, transferTo("specialist"), demo.Reply{Text: "here"}, demo.Reply{Text: "again"})
	p.say("hello")
	assert.Equal(t, []string{
		"before_agent[front]", "before_tool[transfer_to_agent]", "after_tool[transfer_to_agent]",
		"before_agent[specialist]", "after_agent[specialist]", "after_agent[front]",
	}, p.hooks("before_agent", "after_agent", "before_tool", "after_tool"))

	p.say("and now?")
	assert.Equal(t, []string{"before_agent[specialist]", "after_agent[specialist]"}, p.hooks("before_agent", "after_agent")[4:],
		"the next turn starts at the sub-agent, without the root")
}

func TestFact29_NothingClosesAPlugin(t *testing.T) {
	closed := false
	p := newProbe(t, demo.LLM, demo.Reply{Text: "hello"})
	p.on.CloseFunc = func() error { closed = true; return nil }
	require.NoError(t, p.say("hello").Err())

	assert.False(t, closed)
	_, has := reflect.TypeFor[*runner.Runner]().MethodByName("Close")
	assert.False(t, has, "a runner can be closed now")
}

func TestFact32_TheRunnerTakesTheUserAsItIsGiven(t *testing.T) {
	p := newProbe(t, demo.LLM, demo.Reply{Text: "hello"})
	var seen []string
	p.on.BeforeAgentCallback = func(c agent.Context) (*genai.Content, error) {
		seen = []string{c.UserID(), c.SessionID(), c.AppName()}
		return nil, nil
	}
	odd := "bob'; \x00{admin}\n"
	require.NoError(t, p.run(t.Context(), demo.Turn{User: odd, Session: "s"}).Err())
	assert.Equal(t, []string{odd, "s", "app"}, seen)
}

func TestFact34_HooksFireAfterAfterRunWhenTheConsumerPanics(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := newProbe(t, demo.LLM, demo.Reply{Chunks: []string{"a", "b", "c", "d"}})
	over, late := make(chan struct{}), make(chan struct{})
	p.on.AfterRunCallback = func(agent.InvocationContext) { close(over) }
	p.on.AfterModelCallback = func(_ agent.Context, resp *model.LLMResponse, _ error) (*model.LLMResponse, error) {
		if resp.Partial && demo.Text(resp.Content) != "a" {
			within(t, over, "after_run")
		}
		if !resp.Partial {
			close(late)
		}
		return nil, nil
	}
	assert.PanicsWithValue(t, "consumer", func() {
		p.run(ctx, demo.Turn{Stream: true, Each: func(*session.Event) bool { panic("consumer") }})
	})
	within(t, late, "the after_models that come late")
	trace := p.trace()
	after := trace[slices.Index(trace, "after_run")+1:]
	assert.Contains(t, after, "after_model[assistant]")
}

func TestFact34_NoAfterRunForADroppedPull(t *testing.T) {
	p := newProbe(t, demo.LLM, demo.Reply{Chunks: []string{"a", "b"}})
	r := p.start()
	next, stop := iter.Pull2(r.Run(t.Context(), "user", "session", genai.NewContentFromText("hi", genai.RoleUser),
		agent.RunConfig{StreamingMode: agent.StreamingModeSSE}))
	_, err, ok := next()
	require.True(t, ok)
	require.NoError(t, err)
	assert.Empty(t, p.hooks("after_run"), "dropped here, it would never come")

	stop()
	assert.Equal(t, []string{"after_run"}, p.hooks("after_run"))
}

func TestFact34_ACustomAgentCanLeaveAnAgentRunning(t *testing.T) {
	p := newProbe(t, demo.LLM, demo.Reply{Text: "late"})
	over, done := make(chan struct{}), make(chan struct{})
	sub, err := p.tree.Agent()
	require.NoError(t, err)
	root, err := agent.New(agent.Config{Name: "root", SubAgents: []agent.Agent{sub}, Run: func(c agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(func(*session.Event, error) bool) {
			go func() {
				defer close(done)
				<-over
				for range sub.Run(c) {
				}
			}()
		}
	}})
	require.NoError(t, err)
	p.on.AfterRunCallback = func(agent.InvocationContext) { close(over) }
	p.runner = p.runnerFor(root)

	p.say("hello")
	within(t, done, "the agent that was left running")
	trace := p.trace()
	assert.Equal(t, []string{"after_run", "before_agent[assistant]", "before_model[assistant]", "after_model[assistant]", "after_agent[assistant]"},
		trace[slices.Index(trace, "after_run"):])
}

func TestFact34_AToolCanLeaveAnAgentRunning(t *testing.T) {
	p := newProbe(t, demo.LLM, calls("delegate"), demo.Reply{Text: "done"}, demo.Reply{Agent: "helper", Text: "late"})
	over, done := make(chan struct{}), make(chan struct{})
	p.tree.Tools = []tool.Tool{p.leaver(over, done)}
	p.on.AfterRunCallback = func(agent.InvocationContext) { close(over) }

	assert.Equal(t, []string{"done"}, p.say("hello").Texts())
	within(t, done, "the agent that was left running")
	trace := p.trace()
	assert.Equal(t, []string{"after_run", "before_agent[helper]", "before_model[helper]", "after_model[helper]", "after_agent[helper]"},
		trace[slices.Index(trace, "after_run"):])
}

// leaver is a tool that leaves an agent running: it starts once over is
// closed, and done is closed after it.
func (p *probe) leaver(over <-chan struct{}, done chan<- struct{}) tool.Tool {
	helper, err := llmagent.New(llmagent.Config{Name: "helper", Model: p.model.For("helper")})
	require.NoError(p.t, err)
	delegate, err := functiontool.New(functiontool.Config{Name: "delegate", Description: "Lets the helper do it."},
		func(c agent.Context, _ demo.Order) (demo.Status, error) {
			go func() {
				defer close(done)
				<-over
				for range helper.Run(bare(c)) {
				}
			}()
			return demo.Status{Status: "on its way"}, nil
		})
	require.NoError(p.t, err)
	return delegate
}

func TestFact34_AnInvocationGoesOnAfterAnAfterRunOfIt(t *testing.T) {
	p := newProbe(t, demo.LLM, calls("lookup"), demo.Reply{Text: "done"})
	p.model.Repeat = true
	require.NoError(t, p.say("hello").Err())
	var invocations identities[string]
	waits, over := make(chan struct{}), make(chan struct{})
	p.on.BeforeModelCallback = func(c agent.Context, _ *model.LLMRequest) (*model.LLMResponse, error) {
		if c.UserContent().Parts[0].FunctionResponse.Response["slow"] == true {
			close(waits)
			within(t, over, "the after_run of the other")
		}
		invocations.add(c.InvocationID(), nil, "before_model")
		return nil, nil
	}
	p.on.AfterModelCallback = func(c agent.Context, _ *model.LLMResponse, _ error) (*model.LLMResponse, error) {
		invocations.add(c.InvocationID(), nil, "after_model")
		return nil, nil
	}
	p.on.AfterRunCallback = func(c agent.InvocationContext) { invocations.add(c.InvocationID(), nil, "after_run") }
	p.renew()

	slow := borrows("lookup")
	slow.Parts[0].FunctionResponse.Response["slow"] = true
	var runs sync.WaitGroup
	runs.Go(func() { p.run(t.Context(), demo.Turn{Content: slow}) })
	within(t, waits, "the first run")
	p.run(t.Context(), demo.Turn{Content: borrows("lookup")})
	close(over)
	runs.Wait()

	assert.Equal(t, [][]string{{"before_model", "after_model", "after_run", "before_model", "after_model", "after_run"}},
		invocations.groups(), "to the id the second half looks late")
}

func TestFact34_ABreakWaitsForTheModel(t *testing.T) {
	for _, shape := range []demo.Shape{demo.LLM, demo.Parallel} {
		t.Run(string(shape), func(t *testing.T) {
			p := newProbe(t, shape)
			p.each(func(c *llmagent.Config) {
				c.Model = llm(func(ctx context.Context, yield func(*model.LLMResponse, error) bool) {
					defer p.note("model returned")
					if yield(partial("a"), nil) {
						<-ctx.Done()
					}
				})
			})
			p.run(t.Context(), demo.Turn{Stream: true, Each: func(*session.Event) bool { return false }})
			trace := p.trace()
			assert.Equal(t, "after_run", trace[len(trace)-1])
			assert.Contains(t, trace, "model returned")
		})
	}
}

func TestFact37_AfterAgentAfterAFailedModel(t *testing.T) {
	for shape, want := range map[demo.Shape][]string{
		demo.LLM:        {},
		demo.Transfer:   {},
		demo.Custom:     {"after_agent[assistant]", "after_agent[custom]"},
		demo.Sequential: {"after_agent[first]", "after_agent[second]", "after_agent[sequence]"},
		demo.Loop:       {"after_agent[worker]", "after_agent[loop]"},
		demo.Parallel:   {"after_agent[panel]"},
		demo.Workflow:   {"after_agent[flow]"},
	} {
		t.Run(string(shape), func(t *testing.T) {
			p := newProbe(t, shape, demo.Reply{Error: "503"})
			p.model.Repeat, p.tree.Iterations = true, 1
			require.ErrorContains(t, p.say("hello").Err(), "503")
			assert.Equal(t, want, p.hooks("after_agent"))
		})
	}
}

func TestFact37_NoAfterAgentOnBreakPanicOrOwnAnswer(t *testing.T) {
	p := newProbe(t, demo.LLM, demo.Reply{Chunks: []string{"a", "b"}})
	p.run(t.Context(), demo.Turn{Stream: true, Each: func(*session.Event) bool { return false }})
	assert.Empty(t, p.hooks("after_agent"), "break")

	p = newProbe(t, demo.LLM, demo.Reply{Text: "a"})
	p.on.AfterModelCallback = func(agent.Context, *model.LLMResponse, error) (*model.LLMResponse, error) { panic("hook") }
	p.say("hello")
	assert.Empty(t, p.hooks("after_agent"), "panic")

	p = newProbe(t, demo.LLM)
	p.each(func(c *llmagent.Config) {
		c.BeforeAgentCallbacks = []agent.BeforeAgentCallback{func(agent.Context) (*genai.Content, error) { return modelSays("mine"), nil }}
	})
	assert.Equal(t, []string{"mine"}, p.say("hello").Texts())
	assert.Equal(t, []string{"before_agent[assistant]"}, p.hooks("before_agent", "after_agent"), "the agent's own answer")
}

func TestFact38_ARefusalInBeforeModelSpinsAnUnboundedLoop(t *testing.T) {
	refuse := func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) { return answer("busy"), nil }
	fail := func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) { return nil, errHook }
	for name, hook := range map[string]llmagent.BeforeModelCallback{"refusal": refuse, "error": fail} {
		t.Run(name, func(t *testing.T) {
			p := newProbe(t, demo.Loop)
			p.on.BeforeModelCallback = hook
			r, rounds := p.start(), 0
			for range r.Run(t.Context(), "user", "session", modelSays("hi"), agent.RunConfig{}) {
				if rounds++; rounds == 100 {
					break
				}
			}
			assert.Equal(t, 100, rounds, "it went on until the caller had enough")
		})
	}
}

func TestFact38_EscalateWithoutPartsStopsALoop(t *testing.T) {
	p := newProbe(t, demo.Loop)
	p.on.BeforeModelCallback = func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) { return answer("busy"), nil }
	p.on.BeforeAgentCallback = func(c agent.Context) (*genai.Content, error) {
		if len(p.hooks("before_model")) == 0 {
			return nil, nil
		}
		c.WithDelta(nil).Actions().Escalate = true
		return &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{}}, nil
	}
	out := p.say("hello")
	require.NoError(t, out.Err())
	assert.Equal(t, []string{"busy"}, out.Texts())
	assert.Equal(t, []string{"before_agent[loop]", "before_agent[worker]", "after_agent[worker]", "before_agent[worker]", "after_agent[loop]"},
		p.hooks("before_agent", "after_agent"))
}

func TestFact38_EscalateInOnEventStopsALoopAtOnce(t *testing.T) {
	p := newProbe(t, demo.Loop)
	p.on.BeforeModelCallback = func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) { return answer("busy"), nil }
	p.on.OnEventCallback = func(_ agent.InvocationContext, ev *session.Event) (*session.Event, error) {
		ev.Actions.Escalate = true // on the event itself: the loop does not see one that takes its place
		return nil, nil
	}
	assert.Equal(t, []string{"busy"}, p.say("hello").Texts())
	assert.Equal(t, []string{"user: hello", "worker: busy"}, p.stored(), "no second, silent event")
}

func TestFact38_SilentAnswersStopEveryShape(t *testing.T) {
	for shape, silent := range map[demo.Shape][]string{
		demo.LLM: {}, demo.Transfer: {}, demo.Custom: {},
		demo.Sequential: {"second:"}, demo.Loop: {"worker:"}, demo.Workflow: {"second:"},
	} {
		t.Run(string(shape), func(t *testing.T) {
			p := newProbe(t, shape)
			p.on.BeforeModelCallback = func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) { return answer("busy"), nil }
			p.on.BeforeAgentCallback = func(c agent.Context) (*genai.Content, error) {
				if len(p.hooks("before_model")) == 0 {
					return nil, nil
				}
				c.WithDelta(nil).Actions().Escalate = true
				return &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{}}, nil
			}
			out := p.say("hello")
			require.NoError(t, out.Err())
			assert.Equal(t, []string{"busy"}, out.Texts())
			assert.Equal(t, silent, p.stored()[2:], "what a silenced agent leaves in the session")
		})
	}
}

func TestFact38_SiblingsGoOnAfterARefusal(t *testing.T) {
	p := newProbe(t, demo.Sequential)
	p.on.BeforeModelCallback = func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) { return answer("busy"), nil }
	assert.Equal(t, []string{"busy", "busy"}, p.say("hello").Texts())

	p = newProbe(t, demo.Parallel)
	p.on.BeforeModelCallback = func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) { return answer("busy"), nil }
	assert.Equal(t, []string{"busy", "busy"}, p.say("hello").Texts())
}

func TestFact45_TheCallersStateDeltaIsInTheSessionUnchecked(t *testing.T) {
	p := newProbe(t, demo.LLM, demo.Reply{Text: "hello"})
	var seen any
	p.on.BeforeRunCallback = func(c agent.InvocationContext) (*genai.Content, error) {
		seen, _ = c.Session().State().Get("idempotency_key")
		return nil, nil
	}
	p.run(t.Context(), demo.Turn{Text: "hello", Options: []runner.RunOption{
		runner.WithStateDelta(map[string]any{"idempotency_key": "somebody else's"}),
	}})
	assert.Equal(t, "somebody else's", seen)
	assert.Equal(t, "somebody else's", p.state("idempotency_key"))
}

// gathering lets n goroutines through when all are there.
func gathering(t *testing.T, n int32) func() {
	var here atomic.Int32
	all := make(chan struct{})
	return func() {
		if here.Add(1) == n {
			close(all)
		}
		select {
		case <-all:
		case <-time.After(10 * time.Second):
			assert.Fail(t, "somebody is missing", "%d of %d that should run at once", here.Load(), n)
		}
	}
}

// rendezvous lets two goroutines through when both are there.
func rendezvous(t *testing.T) func() {
	met := make(chan struct{})
	return func() {
		select {
		case met <- struct{}{}:
		case <-met:
		case <-time.After(10 * time.Second):
			assert.Fail(t, "nobody came", "hooks that should run at once")
		}
	}
}
