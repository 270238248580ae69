package adk_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/platform"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/toolconfirmation"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/host/demo"
)

var toolHooks = []string{"before_tool", "on_tool_error", "after_tool"}

func TestFact12_AnErrorOfAToolHookIsReadByTheModel(t *testing.T) {
	p := newProbe(t, demo.LLM, calls("lookup"), demo.Reply{Text: "done"})
	p.on.BeforeToolCallback = func(agent.Context, tool.Tool, map[string]any) (map[string]any, error) {
		return nil, errors.New("dial redis://ops:s3cret@10.0.0.7:6379")
	}
	out := p.say("hello")
	require.NoError(t, out.Err(), "the run goes on")
	assert.Equal(t, []string{"done"}, out.Texts())
	assert.Equal(t, map[string]any{"error": "dial redis://ops:s3cret@10.0.0.7:6379"}, p.result("lookup"))
}

func TestFact12_AToolsErrorIsReadByTheModel(t *testing.T) {
	p := newProbe(t, demo.LLM, calls("ledger"), demo.Reply{Text: "done"})
	require.NoError(t, p.say("hello").Err())
	assert.Equal(t, map[string]any{"error": demo.ErrLedgerDown.Error()}, p.result("ledger"))

	p = newProbe(t, demo.LLM, calls("crash"), demo.Reply{Text: "done"})
	require.NoError(t, p.say("hello").Err())
	assert.Contains(t, p.result("crash")["error"], "goroutine", "the stack of a tool that panics, too")
}

func TestFact13_ABeforeToolAnswerRunsAfterTool(t *testing.T) {
	p := newProbe(t, demo.LLM, calls("lookup"), demo.Reply{Text: "done"})
	p.on.BeforeToolCallback = func(agent.Context, tool.Tool, map[string]any) (map[string]any, error) {
		return map[string]any{"status": "cached"}, nil
	}
	p.on.AfterToolCallback = func(_ agent.Context, _ tool.Tool, _, result map[string]any, failure error) (map[string]any, error) {
		assert.Equal(t, map[string]any{"status": "cached"}, result)
		assert.NoError(t, failure)
		return nil, nil
	}
	require.NoError(t, p.say("hello").Err())
	assert.Equal(t, []string{"before_tool[lookup]", "after_tool[lookup]"}, p.hooks(toolHooks...))
	assert.Empty(t, p.desk.Lookups())
}

func TestFact13_ABeforeToolErrorRunsBothHooks(t *testing.T) {
	p := newProbe(t, demo.LLM, calls("lookup"), demo.Reply{Text: "done"})
	p.on.BeforeToolCallback = func(agent.Context, tool.Tool, map[string]any) (map[string]any, error) { return nil, errHook }
	p.on.AfterToolCallback = func(_ agent.Context, _ tool.Tool, _, result map[string]any, failure error) (map[string]any, error) {
		assert.Nil(t, result)
		assert.ErrorIs(t, failure, errHook)
		return nil, nil
	}
	require.NoError(t, p.say("hello").Err())
	assert.Equal(t, []string{"before_tool[lookup]", "on_tool_error[lookup]", "after_tool[lookup]"}, p.hooks(toolHooks...))
	assert.Empty(t, p.desk.Lookups())
}

func TestFact13_AnAnsweredToolErrorReachesAfterToolAsAResult(t *testing.T) {
	p := newProbe(t, demo.LLM, calls("ledger"), demo.Reply{Text: "done"})
	p.on.OnToolErrorCallback = func(agent.Context, tool.Tool, map[string]any, error) (map[string]any, error) {
		return map[string]any{"error": "the ledger is away"}, nil
	}
	p.on.AfterToolCallback = func(_ agent.Context, _ tool.Tool, _, result map[string]any, failure error) (map[string]any, error) {
		assert.NoError(t, failure)
		assert.Equal(t, map[string]any{"error": "the ledger is away"}, result)
		return nil, nil
	}
	require.NoError(t, p.say("hello").Err())
	assert.Equal(t, map[string]any{"error": "the ledger is away"}, p.result("ledger"))
}

func TestFact14_AnInventedToolHasOnToolErrorAlone(t *testing.T) {
	p := newProbe(t, demo.LLM, calls("teleport"), demo.Reply{Text: "done"})
	require.NoError(t, p.say("hello").Err())
	assert.Equal(t, []string{"on_tool_error[teleport]"}, p.hooks(toolHooks...))
	assert.Contains(t, p.result("teleport")["error"], "tool 'teleport' not found")
	assert.Contains(t, p.result("teleport")["error"], "lookup", "and the names of those that exist")
}

func TestFact17_APanicInAToolHookKillsTheProcess(t *testing.T) {
	child, output := dies(t)
	if !child {
		assert.Contains(t, output, "panic: tool hook")
		return
	}
	p := newProbe(t, demo.LLM, calls("lookup"), demo.Reply{Text: "done"})
	p.on.BeforeToolCallback = func(agent.Context, tool.Tool, map[string]any) (map[string]any, error) { panic("tool hook") }
	defer func() { _ = recover() }() // in vain: it is another goroutine
	p.say("hello")
	select {} // the panic may still be on its way
}

func TestFact17_ToolCallsRunWhereTheTaskRunnerRunsThem(t *testing.T) {
	p := newProbe(t, demo.LLM, calls("lookup"), demo.Reply{Text: "done"})
	p.on.BeforeToolCallback = func(agent.Context, tool.Tool, map[string]any) (map[string]any, error) { panic("tool hook") }
	ctx := platform.WithTaskRunner(t.Context(), func(ctx context.Context, tasks []func(context.Context)) {
		for _, task := range tasks {
			task(ctx)
		}
	})
	err := p.run(ctx, demo.Turn{Text: "hello"}).Err()
	require.ErrorContains(t, err, `node "assistant" panicked: tool hook`)
}

func TestFact17_APanicInAModelHookIsAnErrorUnderAnLLMRoot(t *testing.T) {
	p := newProbe(t, demo.LLM, demo.Reply{Text: "a"})
	p.on.BeforeModelCallback = func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) { panic("model hook") }
	require.ErrorContains(t, p.say("hello").Err(), `node "assistant" panicked: model hook`)

	p = newProbe(t, demo.Sequential, demo.Reply{Text: "a"})
	p.on.BeforeModelCallback = func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) { panic("model hook") }
	assert.PanicsWithValue(t, "model hook", func() { p.say("hello") }, "and hits the caller under others")
}

func TestFact17_APanicInBeforeRunHitsTheCaller(t *testing.T) {
	p := newProbe(t, demo.LLM)
	p.on.BeforeRunCallback = func(agent.InvocationContext) (*genai.Content, error) { panic("run hook") }
	assert.PanicsWithValue(t, "run hook", func() { p.say("hello") })
}

func TestFact20_ParallelToolCallsRunHooksAtOnce(t *testing.T) {
	p := newProbe(t, demo.LLM, calls("lookup", "refund"), demo.Reply{Text: "done"})
	meet := rendezvous(t)
	p.on.BeforeToolCallback = func(agent.Context, tool.Tool, map[string]any) (map[string]any, error) { meet(); return nil, nil }
	require.NoError(t, p.say("hello").Err())
	assert.Len(t, p.desk.Refunds(), 1)
}

func TestFact21_OnEventComesBeforeTheSession(t *testing.T) {
	p := newProbe(t, demo.LLM, demo.Reply{Text: "hello"})
	p.on.OnEventCallback = func(_ agent.InvocationContext, ev *session.Event) (*session.Event, error) {
		assert.Equal(t, []string{"user: hi"}, p.stored())
		masked := *ev
		masked.Content = modelSays("[masked]")
		return &masked, nil
	}
	assert.Equal(t, []string{"[masked]"}, p.say("hi").Texts())
	assert.Equal(t, []string{"user: hi", "assistant: [masked]"}, p.stored())
}

func TestFact21_AnOnEventErrorDropsTheEventButNotTheTool(t *testing.T) {
	p := newProbe(t, demo.LLM, calls("refund"), demo.Reply{Text: "done"})
	p.on.OnEventCallback = func(_ agent.InvocationContext, ev *session.Event) (*session.Event, error) {
		if show(ev) == "assistant: call refund" {
			return nil, errHook
		}
		return nil, nil
	}
	out := p.say("hello")
	require.ErrorIs(t, out.Err(), errHook)
	assert.NotContains(t, p.stored(), "assistant: call refund")
	assert.Len(t, p.desk.Refunds(), 1, "the money is gone")
}

func TestFact21_OnEventDoesNotSeeTheUsersMessage(t *testing.T) {
	p := newProbe(t, demo.LLM, demo.Reply{Text: "hello"})
	require.NoError(t, p.say("hi").Err())
	assert.Equal(t, []string{"on_event[assistant]"}, p.hooks("on_event"))
}

func TestFact22_AnEditInOnEventReachesTheTool(t *testing.T) {
	for _, shape := range []demo.Shape{demo.LLM, demo.Custom} {
		t.Run(string(shape), func(t *testing.T) {
			p := newProbe(t, shape, calls("lookup"), demo.Reply{Text: "done"})
			p.on.OnEventCallback = func(_ agent.InvocationContext, ev *session.Event) (*session.Event, error) {
				if call := ev.Content.Parts[0].FunctionCall; call != nil {
					call.Args["order"] = "[masked]"
				}
				return nil, nil
			}
			require.NoError(t, p.say("hello").Err())
			assert.Equal(t, []demo.Order{{Order: "[masked]"}}, p.desk.Lookups())
		})
	}
}

func TestFact23_AnEditOfToolArgumentsReachesSessionClientAndModel(t *testing.T) {
	p := newProbe(t, demo.LLM, calls("lookup"), demo.Reply{Text: "done"})
	p.on.BeforeToolCallback = func(_ agent.Context, _ tool.Tool, args map[string]any) (map[string]any, error) {
		args["order"] = "B-2"
		return nil, nil
	}
	out := p.say("hello")
	require.NoError(t, out.Err())
	assert.Equal(t, []demo.Order{{Order: "B-2"}}, p.desk.Lookups())
	assert.Equal(t, "B-2", p.events()[1].Content.Parts[0].FunctionCall.Args["order"], "the session")
	assert.Equal(t, "B-2", out.Events[0].Content.Parts[0].FunctionCall.Args["order"], "the event that the client has")
	assert.Equal(t, "B-2", p.lastRead().Contents[1].Parts[0].FunctionCall.Args["order"], "the model's next request")
}

func TestFact23_AResumeAmendsTwice(t *testing.T) {
	p := newProbe(t, demo.LLM, calls("cancel_order"), demo.Reply{Text: "done"})
	p.on.BeforeToolCallback = func(_ agent.Context, _ tool.Tool, args map[string]any) (map[string]any, error) {
		args["order"] = args["order"].(string) + "+"
		return nil, nil
	}
	paused := p.say("cancel it")
	require.NoError(t, p.confirm(paused, true).Err())
	assert.Equal(t, []demo.Order{{Order: "A-1++"}}, p.desk.Cancelled())
}

// confirm answers the confirmation that the outcome asks for.
func (p *probe) confirm(paused demo.Outcome, yes bool) demo.Outcome {
	return p.run(p.t.Context(), demo.Turn{Content: p.confirmation(paused, yes)})
}

func (p *probe) confirmation(paused demo.Outcome, yes bool) *genai.Content {
	asked := p.asked(paused)
	return &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{
		ID: asked.ID, Name: asked.Name, Response: map[string]any{"confirmed": yes},
	}}}}
}

// asked is the call that asks a human.
func (p *probe) asked(paused demo.Outcome) *genai.FunctionCall {
	require.NoError(p.t, paused.Err())
	last := paused.Events[len(paused.Events)-1]
	require.Equal(p.t, "assistant: call "+toolconfirmation.FunctionCallName, show(last))
	return last.Content.Parts[0].FunctionCall
}

func TestFact25_AConfirmationIsAskedForInsideTheTool(t *testing.T) {
	p := newProbe(t, demo.LLM, calls("cancel_order"), demo.Reply{Text: "done"})
	p.on.OnToolErrorCallback = func(_ agent.Context, _ tool.Tool, _ map[string]any, failure error) (map[string]any, error) {
		assert.ErrorIs(t, failure, tool.ErrConfirmationRequired)
		return nil, nil
	}
	paused := p.say("cancel it")
	assert.Equal(t, []string{"before_tool[cancel_order]", "on_tool_error[cancel_order]", "after_tool[cancel_order]"}, p.hooks(toolHooks...))
	assert.Equal(t, []string{"user: cancel it", "assistant: call cancel_order", "assistant: result cancel_order", "assistant: call adk_request_confirmation"}, p.stored())
	assert.Len(t, p.model.Requests(), 1, "the run is paused")
	assert.Empty(t, p.desk.Cancelled())

	original, typed := p.asked(paused).Args["originalFunctionCall"].(*genai.FunctionCall)
	require.True(t, typed, "a walk over maps and slices does not find it")
	assert.Equal(t, "cancel_order", original.Name)
}

func TestFact25_AResumeIsARunWithTheSameInvocation(t *testing.T) {
	p := newProbe(t, demo.LLM, calls("cancel_order"), demo.Reply{Text: "done"})
	var ids []string
	p.on.BeforeRunCallback = func(c agent.InvocationContext) (*genai.Content, error) {
		ids = append(ids, c.InvocationID())
		return nil, nil
	}
	paused := p.say("cancel it")
	before := len(p.trace())
	out := p.confirm(paused, true)
	require.NoError(t, out.Err())

	assert.Equal(t, []string{"done"}, out.Texts())
	assert.Equal(t, []demo.Order{{Order: "A-1"}}, p.desk.Cancelled())
	require.Len(t, ids, 2)
	assert.Equal(t, ids[0], ids[1])
	assert.Equal(t, []string{
		"on_user_message", "before_run", "before_agent[assistant]",
		"before_tool[cancel_order]", "after_tool[cancel_order]", "on_event[assistant]",
		"before_model[assistant]", "after_model[assistant]", "on_event[assistant]",
		"after_agent[assistant]", "after_run",
	}, p.trace()[before:], "the tool comes before any model call")
}

func TestFact25_ANoIsAnErrorOfTheTool(t *testing.T) {
	p := newProbe(t, demo.LLM, calls("cancel_order"), demo.Reply{Text: "done"})
	paused := p.say("cancel it")
	p.on.OnToolErrorCallback = nil
	before := len(p.trace())
	require.NoError(t, p.confirm(paused, false).Err())
	assert.Contains(t, p.trace()[before:], "on_tool_error[cancel_order]")
	assert.Empty(t, p.desk.Cancelled())
	assert.Contains(t, p.lastResult("cancel_order")["error"], tool.ErrConfirmationRejected.Error())
}

// lastResult is the latest result of a tool in what the model read last.
func (p *probe) lastResult(name string) map[string]any {
	var result map[string]any
	for _, c := range p.lastRead().Contents {
		for _, part := range c.Parts {
			if part.FunctionResponse != nil && part.FunctionResponse.Name == name {
				result = part.FunctionResponse.Response
			}
		}
	}
	return result
}

func TestFact25_AnyOldCallLendsItsInvocationToAClient(t *testing.T) {
	p := newProbe(t, demo.LLM, calls("lookup"), demo.Reply{Text: "done"})
	p.model.Repeat = true
	var ids []string
	p.on.BeforeRunCallback = func(c agent.InvocationContext) (*genai.Content, error) {
		ids = append(ids, c.InvocationID())
		return nil, nil
	}
	require.NoError(t, p.say("hello").Err())
	for range 3 {
		p.run(t.Context(), demo.Turn{Content: borrows("lookup")})
	}
	assert.Equal(t, []string{ids[0], ids[0], ids[0], ids[0]}, ids, "four runs under one invocation id")
}

// borrows is a message that answers the first call of a tool, however old it
// is, and so runs under the invocation id of that call.
func borrows(tool string) *genai.Content {
	return &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{
		ID: tool + "-1", Name: tool, Response: map[string]any{"status": "mine"},
	}}}}
}

func TestFact25_RunsGoOnAtOnceUnderOneInvocation(t *testing.T) {
	const n = 5
	p := newProbe(t, demo.LLM, calls("lookup"), demo.Reply{Text: "done"})
	p.model.Repeat = true
	require.NoError(t, p.say("hello").Err())
	var invocations identities[string]
	meet := gathering(t, n)
	p.on.BeforeRunCallback = func(c agent.InvocationContext) (*genai.Content, error) {
		if demo.Text(c.UserContent()) == "first" {
			return nil, nil
		}
		invocations.add(c.InvocationID(), nil, "before_run")
		meet()
		return nil, nil
	}
	p.renew()
	p.run(t.Context(), demo.Turn{Session: "other", Text: "first"}) // ADK races where the first runs of a runner overlap

	var runs sync.WaitGroup
	for range n {
		runs.Go(func() { p.run(t.Context(), demo.Turn{Content: borrows("lookup")}) })
	}
	runs.Wait()

	assert.Equal(t, [][]string{slices.Repeat([]string{"before_run"}, n)}, invocations.groups())
}

func TestFact25_AMaskInTheRequestForConfirmationReachesTheTool(t *testing.T) {
	p := newProbe(t, demo.LLM, calls("cancel_order"), demo.Reply{Text: "done"})
	p.on.OnEventCallback = func(_ agent.InvocationContext, ev *session.Event) (*session.Event, error) {
		if call := ev.Content.Parts[0].FunctionCall; call != nil && call.Name == toolconfirmation.FunctionCallName {
			original := *call.Args["originalFunctionCall"].(*genai.FunctionCall)
			original.Args = map[string]any{"order": "[masked]"}
			masked := *ev
			masked.Content = &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{
				ID: call.ID, Name: call.Name, Args: map[string]any{"originalFunctionCall": &original, "toolConfirmation": call.Args["toolConfirmation"]},
			}}}}
			return &masked, nil
		}
		return nil, nil
	}
	require.NoError(t, p.confirm(p.say("cancel it"), true).Err())
	assert.Equal(t, []demo.Order{{Order: "[masked]"}}, p.desk.Cancelled())
}

func TestFact26_ALongRunningToolHasANilResultAndNoEvent(t *testing.T) {
	p := newProbe(t, demo.LLM, calls("export"))
	p.on.AfterToolCallback = func(_ agent.Context, _ tool.Tool, _, result map[string]any, failure error) (map[string]any, error) {
		assert.Nil(t, result)
		assert.NoError(t, failure)
		p.note("checked")
		return nil, nil
	}
	out := p.say("hello")
	require.NoError(t, out.Err())
	assert.Equal(t, 1, p.count("checked"))
	assert.Equal(t, []string{"user: hello", "assistant: call export"}, p.stored())
	assert.Equal(t, []string{"export-1"}, out.Events[0].LongRunningToolIDs)
	assert.Len(t, p.model.Requests(), 1)
}

func TestFact27_ATransferPassesTheToolHooks(t *testing.T) {
	p := newProbe(t, demo.Transfer, transferTo("specialist"), demo.Reply{Text: "I stay"})
	p.on.BeforeToolCallback = func(_ agent.Context, t tool.Tool, _ map[string]any) (map[string]any, error) {
		if t.Name() == "transfer_to_agent" {
			return map[string]any{"error": "not allowed"}, nil
		}
		return nil, nil
	}
	out := p.say("hello")
	require.NoError(t, out.Err())
	assert.Equal(t, []string{"I stay"}, out.Texts())
	assert.Equal(t, "front", p.lastRead().Agent, "an answer in its place keeps the agent")
}

func TestFact43_ADeniedResumeRunsTheToolOnlyWhenItIsConfirmedAgain(t *testing.T) {
	p := newProbe(t, demo.LLM, calls("cancel_order"), demo.Reply{Text: "well"})
	p.model.Repeat = true
	deny := false
	p.on.BeforeAgentCallback = func(agent.Context) (*genai.Content, error) {
		if deny {
			return modelSays("denied"), nil
		}
		return nil, nil
	}
	yes := p.confirmation(p.say("cancel it"), true)
	resume := demo.Turn{Content: yes}

	deny = true
	assert.Equal(t, []string{"denied"}, p.run(t.Context(), resume).Texts())
	assert.Empty(t, p.desk.Cancelled())

	deny = false
	require.NoError(t, p.say("so?").Err())
	assert.Empty(t, p.desk.Cancelled(), "a text does not run what was approved")

	require.NoError(t, p.run(t.Context(), resume).Err())
	assert.Equal(t, []demo.Order{{Order: "A-1"}}, p.desk.Cancelled(), "the same confirmation does")
}

func TestFact44_AModelThatDoesNotStopKillsTheProcess(t *testing.T) {
	child, output := dies(t)
	if !child {
		assert.Contains(t, output, "continued iteration after function for loop body returned false")
		return
	}
	p := newProbe(t, demo.Parallel)
	p.each(func(c *llmagent.Config) {
		c.Model = llm(func(_ context.Context, yield func(*model.LLMResponse, error) bool) {
			for range 3 {
				yield(partial("a"), nil)
			}
		})
	})
	p.run(t.Context(), demo.Turn{Stream: true, Each: func(*session.Event) bool { return false }})
}

func TestFact44_TheScriptedModelStops(t *testing.T) {
	p := newProbe(t, demo.Parallel, demo.Reply{Chunks: []string{"a", "b", "c"}})
	p.model.Repeat = true
	out := p.run(t.Context(), demo.Turn{Stream: true, Each: func(*session.Event) bool { return false }})
	require.NoError(t, out.Err())
	assert.Len(t, out.Events, 1)
}
