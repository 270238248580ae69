package adk_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/demo"
)

const card = "4111 1111 1111 1111"

// sees keeps the texts of the final responses that an agent's own callback is
// shown.
func sees(texts *[]string) llmagent.AfterModelCallback {
	return func(_ agent.Context, resp *model.LLMResponse, _ error) (*model.LLMResponse, error) {
		*texts = append(*texts, demo.Text(resp.Content))
		return nil, nil
	}
}

func refundOf(number string) demo.Reply {
	return demo.Reply{Calls: []demo.Call{{ID: "c1", Name: "refund", Args: map[string]any{"order": "A-1", "card": number}}}}
}

// argument is what a content says that the tool was called with.
func argument(contents []*genai.Content, name string) []any {
	var out []any
	for _, c := range contents {
		for _, p := range c.Parts {
			if p.FunctionCall != nil {
				out = append(out, p.FunctionCall.Args[name])
			}
		}
	}
	return out
}

func (c *chained) storedArguments(name string) []any {
	var contents []*genai.Content
	for _, ev := range c.events() {
		if ev.Content != nil {
			contents = append(contents, ev.Content)
		}
	}
	return argument(contents, name)
}

func TestArgumentsMaskedForSessionAndClientReachTheToolWhole(t *testing.T) {
	// A loop and parallel branches would take each other's replies; their
	// arguments go the same way.
	shapes := []demo.Shape{demo.LLM, demo.Transfer, demo.Sequential, demo.Custom, demo.Workflow}
	onRoads(t, shapes, func(t *testing.T, shape demo.Shape, stream bool) {
		c := newChained(t, shape, native{abi.OnEvent: swaps(card, "[CARD]")},
			refundOf(card), demo.Reply{Text: "done"}, demo.Reply{Text: "done"})

		out := c.run(t.Context(), demo.Turn{Text: "pay", Stream: stream})

		require.NoError(t, out.Err())
		require.Len(t, c.desk.Refunds(), 1)
		assert.Equal(t, card, c.desk.Refunds()[0].Card, "the tool's")
		assert.Equal(t, []any{"[CARD]"}, c.storedArguments("card"), "the session's")
		assert.Equal(t, []any{"[CARD]"}, argument(c.model.Requests()[1].Contents, "card"), "the model's history")
		for _, ev := range out.Events {
			if ev.Content != nil {
				assert.NotContains(t, argument([]*genai.Content{ev.Content}, "card"), card, "the client's")
			}
		}
	})
}

// TestArgumentsAmendedForTheToolReachNobodyElse: wherever the call comes from,
// the tool alone gets what before_tool made of its arguments.
func TestArgumentsAmendedForTheToolReachNobodyElse(t *testing.T) {
	call := refundOf("<CARD_1>").Calls[0]
	calling := func() *model.LLMResponse {
		return &model.LLMResponse{Content: &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{
			FunctionCall: &genai.FunctionCall{ID: call.ID, Name: call.Name, Args: map[string]any{"order": "A-1", "card": "<CARD_1>"}},
		}}}}
	}
	responds := func() does {
		return once(func(*abi.Event) (abi.Verdict, error) {
			doc, err := json.Marshal(calling())
			return abi.Verdict{Kind: abi.Respond, Answer: abi.Answer{JSON: doc}}, err
		})
	}
	for name, origin := range map[string]struct {
		stage native
		each  func(*llmagent.Config)
	}{
		"the model":                    {},
		"a stage in the model's place": {stage: native{abi.BeforeModel: responds()}},
		"a stage after the model":      {stage: native{abi.AfterModel: responds()}},
		"a stage that edits another argument": {stage: native{abi.AfterModel: once(func(ev *abi.Event) (abi.Verdict, error) {
			edit := abi.Edit{Op: abi.EditReplace, Pointer: "/content/parts/0/functionCall/args/order", Value: []byte(`"A-1"`)}
			return abi.Verdict{Kind: abi.Amend, Edits: []abi.Edit{edit}}, nil
		})}},
		"the agent's own before_model": {each: func(cfg *llmagent.Config) {
			cfg.BeforeModelCallbacks = append(cfg.BeforeModelCallbacks, func(_ agent.Context, req *model.LLMRequest) (*model.LLMResponse, error) {
				if len(argument(req.Contents, "card")) > 0 {
					return nil, nil
				}
				return calling(), nil
			})
		}},
		"the agent's own after_model": {each: func(cfg *llmagent.Config) {
			cfg.AfterModelCallbacks = append(cfg.AfterModelCallbacks, func(_ agent.Context, resp *model.LLMResponse, _ error) (*model.LLMResponse, error) {
				if resp.Content.Parts[0].FunctionCall == nil {
					return nil, nil
				}
				return calling(), nil
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			stage := native{abi.BeforeTool: swaps("<CARD_1>", card)}
			for h, does := range origin.stage {
				stage[h] = does
			}
			replies := []demo.Reply{refundOf("<CARD_1>"), {Text: "done"}}
			if strings.Contains(name, "before_model") || strings.Contains(name, "model's place") {
				replies = replies[1:]
			}
			c := newChained(t, demo.LLM, stage, replies...)
			if origin.each != nil {
				c.each(origin.each)
			}

			out := c.say("pay")

			require.NoError(t, out.Err())
			require.Len(t, c.desk.Refunds(), 1)
			assert.Equal(t, card, c.desk.Refunds()[0].Card, "the tool's")
			assert.Equal(t, []any{"<CARD_1>"}, c.storedArguments("card"), "the session's")
			assert.Equal(t, []any{"<CARD_1>"}, argument(c.lastRead().Contents, "card"), "the model's history")
			for _, ev := range out.Events {
				if ev.Content != nil {
					assert.NotContains(t, argument([]*genai.Content{ev.Content}, "card"), card, "the client's")
				}
			}
		})
	}
}

// once does something at the first call and continues at all others.
func once(first does) does {
	called := false
	return func(ev *abi.Event) (abi.Verdict, error) {
		if called {
			return abi.Verdict{Kind: abi.Continue}, nil
		}
		called = true
		return first(ev)
	}
}

func TestArgumentsOfAConfirmedCallAreAmendedOnceAndForTheToolAlone(t *testing.T) {
	c := newChained(t, demo.LLM, native{abi.BeforeTool: swaps("A-1", "REAL")}, calls("cancel_order"), demo.Reply{Text: "done"})
	asked := c.say("cancel it")
	require.Empty(t, c.desk.Cancelled())

	out := c.run(t.Context(), demo.Turn{Content: confirmed(t, asked.Events)})

	require.NoError(t, out.Err())
	require.Len(t, c.desk.Cancelled(), 1)
	assert.Equal(t, "REAL", c.desk.Cancelled()[0].Order)
	stored, err := json.Marshal(c.events())
	require.NoError(t, err)
	assert.NotContains(t, string(stored), `"args":{"order":"REAL"`, "the session's")
	delivered, err := json.Marshal(asked.Events)
	require.NoError(t, err)
	assert.NotContains(t, string(delivered), `"args":{"order":"REAL"`, "the client's, of the turn before")
}

func TestACallWithoutArgumentsCannotBeGivenAny(t *testing.T) {
	add := func(*abi.Event) (abi.Verdict, error) {
		return abi.Verdict{Kind: abi.Amend, Edits: []abi.Edit{{Op: abi.EditReplace, Pointer: "", Value: []byte(`{"order":"A-1"}`)}}}, nil
	}
	c := newChained(t, demo.LLM, native{abi.BeforeTool: add},
		demo.Reply{Calls: []demo.Call{{ID: "c1", Name: "lookup"}}}, demo.Reply{Text: "done"})

	require.NoError(t, c.say("hi").Err())

	assert.Equal(t, map[string]any{"error": "The service is not available. Please try again shortly."}, c.result("lookup"))
	assert.Empty(t, c.desk.Lookups())
}

func TestToolErrorsAreSanitised(t *testing.T) {
	c := newChained(t, demo.LLM, native{}, calls("ledger"), demo.Reply{Text: "done"})

	c.say("hi")

	assert.Equal(t, map[string]any{"error": "The tool failed. Its error was logged."}, c.result("ledger"))
}

// closedOrder is an error with a text for the model beside its own.
type closedOrder struct{}

func (closedOrder) Error() string      { return "row 7 of redis://ops:s3cret@10.0.0.7" }
func (closedOrder) PublicText() string { return "The order is closed." }

func TestAToolErrorSaysItselfWhatTheModelMayRead(t *testing.T) {
	c := newChained(t, demo.LLM, native{}, calls("reopen"), demo.Reply{Text: "done"})
	reopen, err := functiontool.New(functiontool.Config{Name: "reopen", Description: "Opens an order again."},
		func(agent.Context, demo.Order) (demo.Status, error) {
			return demo.Status{}, fmt.Errorf("reopen: %w", closedOrder{})
		})
	require.NoError(t, err)
	c.tree.Tools = append(c.tree.Tools, reopen)

	c.say("hi")

	assert.Equal(t, map[string]any{"error": "The order is closed."}, c.result("reopen"))
}

func TestConfirmationErrorsAreNot(t *testing.T) {
	c := newChained(t, demo.LLM, native{}, calls("cancel_order"), demo.Reply{Text: "done"})

	asked := c.say("cancel it")
	no := confirmed(t, asked.Events)
	no.Parts[0].FunctionResponse.Response["confirmed"] = false
	c.run(t.Context(), demo.Turn{Content: no})

	assert.Contains(t, c.result("cancel_order")["error"], "rejected", "the model reads the human's no")
	assert.Empty(t, c.desk.Cancelled())
}
