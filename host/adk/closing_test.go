package adk_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/tool"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/demo"
)

func TestAnAgentsOwnAnswerClosesTheModelCallAsAnswered(t *testing.T) {
	everyRoad(t, func(t *testing.T, shape demo.Shape, stream bool) {
		c := newChained(t, shape, hears(abi.BeforeModel, abi.AfterModel, abi.Close))
		c.tree.Iterations = 1
		c.each(func(cfg *llmagent.Config) {
			cfg.BeforeModelCallbacks = []llmagent.BeforeModelCallback{
				func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) { return answer("cached"), nil },
			}
		})

		require.NoError(t, c.run(t.Context(), demo.Turn{Text: "hi", Stream: stream}).Err())

		calls := c.perOperation()
		require.NotEmpty(t, calls)
		for _, lines := range calls {
			assert.Equal(t, []string{"before_model", "close model answered"}, lines)
		}
		assert.Empty(t, c.model.Requests(), "model calls")
	})
}

func TestAFailedModelCallIsClosedOnce(t *testing.T) {
	for name, test := range map[string]struct {
		stage native
		want  []string
	}{
		"heard at on_model_error": {hears(abi.BeforeModel, abi.OnModelError, abi.Close), []string{"before_model", "on_model_error"}},
		"not heard there":         {hears(abi.BeforeModel, abi.Close), []string{"before_model", "close model error"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChained(t, demo.LLM, test.stage, demo.Reply{Error: "503"})

			require.ErrorContains(t, c.say("hi").Err(), "503")

			assert.Equal(t, test.want, c.lines())
		})
	}
}

func TestARecoveredModelErrorIsClosedOnce(t *testing.T) {
	var after abi.Flags
	stage := hears(abi.BeforeModel, abi.Close)
	stage[abi.OnModelError] = answers(abi.Answer{Text: "sorry"})
	stage[abi.AfterModel] = func(ev *abi.Event) (abi.Verdict, error) { after = ev.Flags; return continues(ev) }
	c := newChained(t, demo.LLM, stage, demo.Reply{Error: "503"})

	out := c.say("hi")

	require.NoError(t, out.Err())
	assert.Equal(t, []string{"sorry"}, out.Texts())
	assert.Equal(t, []string{"before_model", "on_model_error respond", "after_model"}, c.lines(), "no close follows")
	assert.True(t, after.Has(abi.Recovered|abi.Late), "after_model knows that it comes second")
}

var toolCallHooks = []abi.Hook{abi.BeforeTool, abi.AfterTool, abi.OnToolError, abi.Close}

func TestAnInventedToolIsOnToolErrorAlone(t *testing.T) {
	var released []abi.Ending
	stage := hears(toolCallHooks...)
	stage[abi.OnToolError] = func(ev *abi.Event) (abi.Verdict, error) {
		ev.Op.Own("thing", func(_ context.Context, end abi.Ending) { released = append(released, end) })
		return continues(ev)
	}
	c := newChained(t, demo.LLM, stage, calls("teleport"), demo.Reply{Text: "done"})

	assert.Equal(t, []string{"done"}, c.say("hi").Texts())

	assert.Equal(t, []string{"on_tool_error"}, c.lines())
	assert.Equal(t, []abi.Ending{{Reason: abi.ReasonError}}, released, "the call is over with that hook")
}

func TestAnInventedToolCanBeAnswered(t *testing.T) {
	c := newChained(t, demo.LLM, native{abi.OnToolError: answers(abi.Answer{Text: "no such tool"})},
		calls("teleport"), demo.Reply{Text: "done"})

	c.say("hi")

	assert.Equal(t, map[string]any{"result": "no such tool"}, c.result("teleport"))
}

func TestAToolThatPanicsIsAFailedCall(t *testing.T) {
	c := newChained(t, demo.LLM, hears(abi.BeforeTool, abi.OnToolError, abi.Close), calls("crash"), demo.Reply{Text: "done"})

	assert.Equal(t, []string{"done"}, c.say("hi").Texts())

	assert.Equal(t, []string{"before_tool", "on_tool_error", "close tool error"}, c.lines())
	assert.Equal(t, map[string]any{"error": "The tool failed. Its error was logged."}, c.result("crash"), "no stack for the model")
}

func TestToolCallsAtOnceAreOperationsOfTheirOwn(t *testing.T) {
	c := newChained(t, demo.LLM, hears(toolCallHooks...), sameID(calls("lookup", "lookup", "ledger")), demo.Reply{Text: "done"})
	meet := gathering(t, 3)
	c.on.BeforeToolCallback = func(agent.Context, tool.Tool, map[string]any) (map[string]any, error) {
		meet()
		return nil, nil
	}

	assert.Equal(t, []string{"done"}, c.say("hi").Texts())

	assert.ElementsMatch(t, [][]string{
		{"before_tool", "after_tool"}, {"before_tool", "after_tool"}, {"before_tool", "on_tool_error", "after_tool"},
	}, c.perOperation())
}

// sameID is a reply whose model repeats itself in the ids of its calls.
func sameID(r demo.Reply) demo.Reply {
	for i := range r.Calls {
		r.Calls[i].ID = "c1"
	}
	return r
}

func TestATransferIsAToolCallBetweenTwoAgents(t *testing.T) {
	c := newChained(t, demo.Transfer, hears(abi.BeforeAgent, abi.BeforeTool, abi.AfterTool, abi.Close),
		transferTo("specialist"), demo.Reply{Text: "here"})

	assert.Equal(t, []string{"here"}, c.say("hi").Texts())

	assert.Equal(t, [][]string{
		{"before_agent", "close agent done"}, {"before_tool", "after_tool"}, {"before_agent", "close agent done"},
	}, c.perOperation())
}

func TestARefusedTransferKeepsTheAgent(t *testing.T) {
	c := newChained(t, demo.Transfer, native{abi.BeforeTool: refuses("not there")}, transferTo("specialist"), demo.Reply{Text: "I stay"})

	assert.Equal(t, []string{"I stay"}, c.say("hi").Texts())

	assert.Equal(t, "front", c.lastRead().Agent)
	assert.Equal(t, "not there", c.result("transfer_to_agent")["error"])
}
