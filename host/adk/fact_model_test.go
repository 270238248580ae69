package adk_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/model/gemini"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/plugin/functioncallmodifier"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/host/demo"
)

func TestFact06_BeforeModelAnswerSkipsAfterModel(t *testing.T) {
	p := newProbe(t, demo.LLM)
	p.on.BeforeModelCallback = func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) { return answer("cached"), nil }

	assert.Equal(t, []string{"cached"}, p.say("hello").Texts())
	assert.Equal(t, []string{"before_model[assistant]"}, p.hooks("before_model", "after_model", "on_model_error"))
}

func TestFact06_BeforeModelErrorSkipsOnModelError(t *testing.T) {
	p := newProbe(t, demo.LLM)
	p.on.BeforeModelCallback = func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) { return nil, errHook }

	require.ErrorIs(t, p.say("hello").Err(), errHook)
	assert.Equal(t, []string{"before_model[assistant]"}, p.hooks("before_model", "after_model", "on_model_error"))
}

func TestFact07_AfterModelNeverHearsOfAnError(t *testing.T) {
	p := newProbe(t, demo.LLM, demo.Reply{Error: "503"})
	require.ErrorContains(t, p.say("hello").Err(), "503")
	assert.Equal(t, []string{"before_model[assistant]", "on_model_error[assistant]"}, p.hooks("before_model", "after_model", "on_model_error"))

	p = newProbe(t, demo.LLM, demo.Reply{Error: "503"})
	p.on.OnModelErrorCallback = func(agent.Context, *model.LLMRequest, error) (*model.LLMResponse, error) { return answer("sorry"), nil }
	p.on.AfterModelCallback = func(_ agent.Context, _ *model.LLMResponse, failure error) (*model.LLMResponse, error) {
		assert.NoError(t, failure)
		return nil, nil
	}
	assert.Equal(t, []string{"sorry"}, p.say("hello").Texts())
	assert.Equal(t, 1, p.count("after_model[assistant]"))
}

func TestFact08_AfterModelComesForEveryChunk(t *testing.T) {
	p := newProbe(t, demo.LLM, demo.Reply{Chunks: []string{"a", "b", "c"}})
	require.NoError(t, p.stream("hello").Err())
	assert.Equal(t, 3, p.count("after_model[assistant] partial"))
	assert.Equal(t, 1, p.count("after_model[assistant]"))
	assert.Equal(t, []string{"user: hello", "assistant: abc"}, p.stored())
}

func TestFact08_AChunkThatLosesPartialIsStored(t *testing.T) {
	p := newProbe(t, demo.LLM, demo.Reply{Chunks: []string{"a", "b", "c"}})
	p.on.AfterModelCallback = func(_ agent.Context, resp *model.LLMResponse, _ error) (*model.LLMResponse, error) {
		return answer(demo.Text(resp.Content)), nil // no Partial
	}
	require.NoError(t, p.stream("hello").Err())
	assert.Equal(t, []string{"user: hello", "assistant: a", "assistant: b", "assistant: c", "assistant: abc"}, p.stored())
}

func TestFact09_AResponseWithoutContentIsSkipped(t *testing.T) {
	p := newProbe(t, demo.LLM, demo.Reply{Chunks: []string{"a", "b", "c"}})
	p.on.AfterModelCallback = func(_ agent.Context, resp *model.LLMResponse, _ error) (*model.LLMResponse, error) {
		if demo.Text(resp.Content) != "b" {
			return nil, nil
		}
		held := *resp
		held.Content = nil
		return &held, nil
	}
	out := p.stream("hello")
	require.NoError(t, out.Err())
	assert.Equal(t, []string{"a", "c"}, out.Chunks())
	assert.Equal(t, 2, p.count("on_event[assistant] partial"))
	assert.Equal(t, []string{"abc"}, out.Texts())
}

func TestFact09_AnErrorCodePassesWithoutContent(t *testing.T) {
	p := newProbe(t, demo.LLM, demo.Reply{Raw: []*model.LLMResponse{{ErrorCode: "SAFETY"}}})
	out := p.say("hello")
	require.NoError(t, out.Err())
	require.Len(t, out.Events, 1)
	assert.Equal(t, "SAFETY", out.Events[0].ErrorCode)
}

func TestFact10_GeminiRepeatsTheUsage(t *testing.T) {
	p := newProbe(t, demo.LLM)
	p.useGemini(
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"Hel"}]}}],"usageMetadata":{"promptTokenCount":4,"totalTokenCount":5}}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"lo."}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":3,"totalTokenCount":7}}`,
	)
	var partials, finals []int32
	p.on.AfterModelCallback = func(_ agent.Context, resp *model.LLMResponse, _ error) (*model.LLMResponse, error) {
		if resp.Partial {
			partials = append(partials, resp.UsageMetadata.TotalTokenCount)
		} else {
			finals = append(finals, resp.UsageMetadata.TotalTokenCount)
		}
		return nil, nil
	}
	require.NoError(t, p.stream("hello").Err())
	assert.Equal(t, []int32{5, 7}, partials, "running totals")
	assert.Equal(t, []int32{7}, finals, "and the last one again")
}

func TestFact10_AChunkOfUsageAloneReachesNoEvent(t *testing.T) {
	p := newProbe(t, demo.LLM)
	p.useGemini(
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi."}]}}]}`,
		`{"candidates":[{}],"usageMetadata":{"totalTokenCount":7}}`,
	)
	var usage []int32
	p.on.AfterModelCallback = func(_ agent.Context, resp *model.LLMResponse, _ error) (*model.LLMResponse, error) {
		if resp.Content == nil {
			usage = append(usage, resp.UsageMetadata.TotalTokenCount)
		}
		return nil, nil
	}
	require.NoError(t, p.stream("hello").Err())
	assert.Equal(t, []int32{7}, usage)
	assert.Equal(t, []string{"on_event[assistant] partial", "on_event[assistant]"}, p.hooks("on_event"))
}

func TestFact10_AChunkWithoutCandidatesIsAnEventWithoutParts(t *testing.T) {
	p := newProbe(t, demo.LLM)
	p.useGemini(
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi."}]}}]}`,
		`{"usageMetadata":{"totalTokenCount":7}}`,
	)
	out := p.stream("hello")
	require.NoError(t, out.Err())
	require.Len(t, out.Events, 3)
	assert.Empty(t, out.Events[1].Content.Parts)
	assert.True(t, out.Events[1].Partial)
}

func TestFact11_NothingCapsTheModelCalls(t *testing.T) {
	const enough = 501 // ADK Java stops at 500
	for name, part := range map[string]*genai.Part{
		"tools":    {FunctionCall: &genai.FunctionCall{Name: "lookup", Args: map[string]any{"order": "A-1"}}},
		"thoughts": {Text: "hm", Thought: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProbe(t, demo.LLM)
			n := 0
			p.each(func(c *llmagent.Config) {
				c.Model = llm(func(_ context.Context, yield func(*model.LLMResponse, error) bool) {
					if n++; n == enough {
						yield(answer("enough"), nil)
						return
					}
					again := *part
					yield(&model.LLMResponse{Content: &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{&again}}}, nil)
				})
			})
			p.sessions = forgetful{p.sessions}
			assert.Contains(t, p.say("hello").Texts(), "enough")
			assert.Equal(t, enough, n)
		})
	}
}

// forgetful keeps no events but the user's message: a history would make long
// runs quadratic.
type forgetful struct{ session.Service }

func (f forgetful) AppendEvent(ctx context.Context, s session.Session, ev *session.Event) error {
	if ev.Author != "user" {
		return nil
	}
	return f.Service.AppendEvent(ctx, s, ev)
}

func TestFact22_GeminisPartialAndFinalShareParts(t *testing.T) {
	p := newProbe(t, demo.LLM)
	p.useGemini(`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"c1","name":"lookup","args":{"order":"A-1"}}}]},"finishReason":"STOP"}]}`)
	var parts []*genai.Part
	p.on.AfterModelCallback = func(_ agent.Context, resp *model.LLMResponse, _ error) (*model.LLMResponse, error) {
		parts = append(parts, resp.Content.Parts...)
		if !resp.Partial {
			return answer("stop"), nil
		}
		return nil, nil
	}
	require.NoError(t, p.stream("hello").Err())
	require.Len(t, parts, 2)
	assert.Same(t, parts[0], parts[1])
}

func TestFact22_EventsOfOneCallShareTheStateDelta(t *testing.T) {
	p := newProbe(t, demo.LLM, demo.Reply{Chunks: []string{"a", "b"}})
	p.each(func(c *llmagent.Config) { c.OutputKey = "reply" })
	out := p.stream("hello")
	require.Len(t, out.Events, 3)
	assert.Equal(t, mapOf(out.Events[2].Actions.StateDelta), mapOf(out.Events[0].Actions.StateDelta))
	assert.Equal(t, "ab", out.Events[0].Actions.StateDelta["reply"], "written after the partial event was delivered")
}

func TestFact22_OnEventLagsBehindAfterModel(t *testing.T) {
	p := newProbe(t, demo.LLM, demo.Reply{Chunks: strings.Split(strings.Repeat("x", 40), "")})
	ahead, most := make(chan struct{}), 0
	p.on.AfterModelCallback = func(agent.Context, *model.LLMResponse, error) (*model.LLMResponse, error) {
		if len(p.hooks("after_model")) == 18 {
			close(ahead)
		}
		return nil, nil
	}
	p.on.OnEventCallback = func(agent.InvocationContext, *session.Event) (*session.Event, error) {
		events := len(p.hooks("on_event"))
		if events == 1 {
			within(t, ahead, "18 chunks while on_event stands at the first")
		}
		most = max(most, len(p.hooks("after_model"))-events+1)
		return nil, nil
	}
	require.NoError(t, p.stream("hello").Err())
	assert.Equal(t, 18, most)
}

func TestFact23_ANestedEditInARequestReachesTheSession(t *testing.T) {
	nested := demo.Reply{Calls: []demo.Call{{ID: "c1", Name: "lookup", Args: map[string]any{"order": "A-1", "note": map[string]any{"card": "4111"}}}}}
	p := newProbe(t, demo.LLM, nested, demo.Reply{Text: "done"})
	p.on.BeforeModelCallback = func(_ agent.Context, req *model.LLMRequest) (*model.LLMResponse, error) {
		for _, c := range req.Contents {
			for _, part := range c.Parts {
				if part.FunctionCall != nil {
					part.FunctionCall.Args["note"].(map[string]any)["card"] = "[card]"
					part.FunctionCall.Args["order"] = "[order]"
				}
			}
		}
		return nil, nil
	}
	out := p.say("hello")
	require.NoError(t, out.Err())
	for name, args := range map[string]map[string]any{
		"session":   p.events()[1].Content.Parts[0].FunctionCall.Args,
		"delivered": out.Events[0].Content.Parts[0].FunctionCall.Args,
	} {
		assert.Equal(t, "[card]", args["note"].(map[string]any)["card"], name)
		assert.Equal(t, "A-1", args["order"], "%s: the top level is a copy", name)
	}
}

func TestFact23_AnEditInAfterModelSticks(t *testing.T) {
	p := newProbe(t, demo.LLM, demo.Reply{Text: "4111"})
	p.on.AfterModelCallback = func(_ agent.Context, resp *model.LLMResponse, _ error) (*model.LLMResponse, error) {
		resp.Content.Parts[0].Text = "[card]"
		return nil, nil
	}
	assert.Equal(t, []string{"[card]"}, p.say("hello").Texts())
	assert.Equal(t, "assistant: [card]", p.stored()[1])
}

func TestFact23_AReplacedResponseReachesEverything(t *testing.T) {
	p := newProbe(t, demo.LLM, demo.Reply{
		Text: "4111", Calls: []demo.Call{{ID: "c1", Name: "lookup", Args: map[string]any{"order": "4111"}}},
	}, demo.Reply{Text: "done"})
	p.each(func(c *llmagent.Config) { c.OutputKey = "reply" })
	var delta any
	p.on.AfterModelCallback = func(_ agent.Context, resp *model.LLMResponse, _ error) (*model.LLMResponse, error) {
		if demo.Text(resp.Content) != "4111" {
			return nil, nil
		}
		return &model.LLMResponse{Content: &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{
			{Text: "[card]"}, {FunctionCall: &genai.FunctionCall{ID: "c1", Name: "lookup", Args: map[string]any{"order": "[card]"}}},
		}}}, nil
	}
	p.on.OnEventCallback = func(_ agent.InvocationContext, ev *session.Event) (*session.Event, error) {
		if delta == nil {
			delta = ev.Actions.StateDelta["reply"]
		}
		return nil, nil
	}
	out := p.say("hello")
	assert.Equal(t, []string{"[card]", "done"}, out.Texts(), "the stream")
	assert.Equal(t, "assistant: [card], call lookup", p.stored()[1], "the session")
	assert.Equal(t, "[card]", delta, "the output key")
	assert.Equal(t, "[card]", demo.Text(p.lastRead().Contents[1]), "the next request")
	assert.Equal(t, []demo.Order{{Order: "[card]"}}, p.desk.Lookups(), "and the tool")
}

func TestFact23_AReplacedEventDoesNotReachTheTool(t *testing.T) {
	p := newProbe(t, demo.LLM, demo.Reply{Calls: []demo.Call{{ID: "c1", Name: "lookup", Args: map[string]any{"order": "4111"}}}}, demo.Reply{Text: "done"})
	p.on.OnEventCallback = func(_ agent.InvocationContext, ev *session.Event) (*session.Event, error) {
		if ev.Content.Parts[0].FunctionCall == nil {
			return nil, nil
		}
		masked := *ev
		masked.Content = &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{
			{FunctionCall: &genai.FunctionCall{ID: "c1", Name: "lookup", Args: map[string]any{"order": "[card]"}}},
		}}
		return &masked, nil
	}
	out := p.say("hello")
	assert.Equal(t, "[card]", out.Events[0].Content.Parts[0].FunctionCall.Args["order"])
	assert.Equal(t, "[card]", p.events()[1].Content.Parts[0].FunctionCall.Args["order"])
	assert.Equal(t, []demo.Order{{Order: "4111"}}, p.desk.Lookups())
}

func TestFact30_FunctionCallModifierStarvesThePluginsBehindIt(t *testing.T) {
	first, err := functioncallmodifier.NewPlugin(functioncallmodifier.FunctionCallModifierConfig{Predicate: func(string) bool { return false }})
	require.NoError(t, err)
	heard := 0
	last, err := plugin.New(plugin.Config{
		Name: "last",
		AfterModelCallback: func(agent.Context, *model.LLMResponse, error) (*model.LLMResponse, error) {
			heard++
			return nil, nil
		},
	})
	require.NoError(t, err)
	empty := &model.LLMResponse{Content: &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{}}}
	p := newProbe(t, demo.LLM, demo.Reply{Raw: []*model.LLMResponse{empty}}, demo.Reply{Text: "hello"})
	p.behind = []*plugin.Plugin{first, last}

	require.NoError(t, p.say("one").Err())
	assert.Equal(t, 1, p.count("after_model[assistant]"), "the one before it hears")
	assert.Zero(t, heard, "the one behind it does not")
	require.NoError(t, p.say("two").Err())
	assert.Equal(t, 1, heard, "but for a response with parts")
}

func TestFact31_PartsComeBackWhole(t *testing.T) {
	parts := []*genai.Part{
		{Text: "hm", Thought: true, ThoughtSignature: []byte("sig-1")},
		{InlineData: &genai.Blob{MIMEType: "image/png", Data: []byte{0, 1, 254, 255}}},
		{FunctionCall: &genai.FunctionCall{ID: "c1", Name: "lookup", Args: map[string]any{"order": "A-1"}}, ThoughtSignature: []byte("sig-2")},
	}
	p := newProbe(t, demo.LLM, demo.Reply{Raw: []*model.LLMResponse{{Content: &genai.Content{Role: genai.RoleModel, Parts: parts}}}}, demo.Reply{Text: "done"})
	require.NoError(t, p.say("hello").Err())
	assert.Equal(t, parts, p.lastRead().Contents[1].Parts)
}

func TestFact31_GenaiDropsWhatItDoesNotKnow(t *testing.T) {
	var part genai.Part
	require.NoError(t, json.Unmarshal([]byte(`{"text":"a","futureField":{"x":1}}`), &part))
	data, err := json.Marshal(part)
	require.NoError(t, err)
	assert.JSONEq(t, `{"text":"a"}`, string(data))
}

func TestFact33_UsageIsNotAddedUp(t *testing.T) {
	p := newProbe(t, demo.LLM)
	p.useGemini(`{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi."}]},"finishReason":"STOP"}],"usageMetadata":{
		"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":20,"thoughtsTokenCount":7,"toolUsePromptTokenCount":3,"totalTokenCount":130}}`)
	out := p.stream("hello")
	require.NoError(t, out.Err())
	u := out.Events[len(out.Events)-1].UsageMetadata
	assert.Equal(t, u.TotalTokenCount, u.PromptTokenCount+u.CandidatesTokenCount+u.ThoughtsTokenCount+u.ToolUsePromptTokenCount)
	assert.Equal(t, int32(20), u.CandidatesTokenCount, "without the thoughts")
	assert.Equal(t, int32(100), u.PromptTokenCount, "with the cached ones")
}

func TestFact33_GenaiCannotTellZeroFromMissing(t *testing.T) {
	var zero, missing genai.GenerateContentResponseUsageMetadata
	require.NoError(t, json.Unmarshal([]byte(`{"candidatesTokenCount":0,"totalTokenCount":5}`), &zero))
	require.NoError(t, json.Unmarshal([]byte(`{"totalTokenCount":5}`), &missing))
	assert.Equal(t, missing, zero, "a Go hook can only tell that there was a usage at all")
}

func TestFact36_AnAnswerToAModelErrorGoesOnToAfterModel(t *testing.T) {
	p := newProbe(t, demo.LLM, demo.Reply{Error: "503"})
	p.on.OnModelErrorCallback = func(agent.Context, *model.LLMRequest, error) (*model.LLMResponse, error) { return answer("sorry"), nil }
	p.on.AfterModelCallback = func(_ agent.Context, resp *model.LLMResponse, _ error) (*model.LLMResponse, error) {
		return answer(demo.Text(resp.Content) + ", later"), nil
	}
	assert.Equal(t, []string{"sorry, later"}, p.say("hello").Texts())
	assert.Equal(t, []string{"before_model[assistant]", "on_model_error[assistant]", "after_model[assistant]"},
		p.hooks("before_model", "on_model_error", "after_model"))
}

func TestFact39_ARefusalLandsInTheOutputKey(t *testing.T) {
	for _, clear := range []bool{false, true} {
		p := newProbe(t, demo.LLM)
		p.each(func(c *llmagent.Config) { c.OutputKey = "reply" })
		p.on.BeforeModelCallback = func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) { return answer("busy"), nil }
		p.on.OnEventCallback = func(_ agent.InvocationContext, ev *session.Event) (*session.Event, error) {
			assert.Equal(t, "busy", ev.Actions.StateDelta["reply"])
			if !clear {
				return nil, nil
			}
			cleared := *ev
			cleared.Actions.StateDelta = map[string]any{}
			return &cleared, nil
		}
		assert.Equal(t, []string{"busy"}, p.say("hello").Texts())
		if clear {
			assert.Nil(t, p.state("reply"), "on_event can take it out")
		} else {
			assert.Equal(t, "busy", p.state("reply"))
		}
	}
}

func TestFact39_AnAnswerAtBeforeAgentDoesNotLandInTheOutputKey(t *testing.T) {
	for shape, want := range map[demo.Shape]any{demo.LLM: nil, demo.Sequential: nil, demo.Workflow: "busy"} {
		t.Run(string(shape), func(t *testing.T) {
			p := newProbe(t, shape)
			p.each(func(c *llmagent.Config) { c.OutputKey = "reply" })
			p.on.BeforeAgentCallback = func(c agent.Context) (*genai.Content, error) {
				if c.AgentName() == "assistant" || c.AgentName() == "first" || c.AgentName() == "second" {
					return modelSays("busy"), nil
				}
				return nil, nil
			}
			require.NoError(t, p.say("hello").Err())
			assert.Equal(t, want, p.state("reply"), "but for a node of a workflow")
		})
	}
}

func TestFact40_TurnCompleteIsNoEndOfStream(t *testing.T) {
	odd := func(text string) *model.LLMResponse {
		r := partial(text)
		r.TurnComplete, r.FinishReason = true, genai.FinishReasonUnspecified
		return r
	}
	p := newProbe(t, demo.LLM, demo.Reply{Raw: []*model.LLMResponse{odd("a"), odd("b"), answer("ab")}})
	out := p.stream("hello")
	require.NoError(t, out.Err())
	assert.Equal(t, []string{"a", "b"}, out.Chunks(), "the stream goes on after a TurnComplete")
	assert.Equal(t, []string{"ab"}, out.Texts())
}

func TestFact40_GeminisLastPartialHasTheFinishReason(t *testing.T) {
	p := newProbe(t, demo.LLM)
	p.useGemini(
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"Hel"}]}}]}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"lo."}]},"finishReason":"STOP"}]}`,
	)
	out := p.stream("hello")
	require.NoError(t, out.Err())
	var reasons []genai.FinishReason
	var complete []bool
	for _, ev := range out.Events {
		reasons, complete = append(reasons, ev.FinishReason), append(complete, ev.TurnComplete)
	}
	assert.Equal(t, []genai.FinishReason{"", "STOP", "STOP"}, reasons)
	assert.Equal(t, []bool{false, true, false}, complete, "the final one is not marked")
}

func TestFact41_AStreamWithoutAFinalContentFails(t *testing.T) {
	final := func(change func(*model.LLMResponse)) llmagent.AfterModelCallback {
		return func(_ agent.Context, resp *model.LLMResponse, _ error) (*model.LLMResponse, error) {
			if resp.Partial {
				return nil, nil
			}
			amended := *resp
			change(&amended)
			return &amended, nil
		}
	}
	p := newProbe(t, demo.LLM, demo.Reply{Chunks: []string{"a", "b"}})
	p.on.AfterModelCallback = final(func(r *model.LLMResponse) { r.Content = nil })
	require.ErrorContains(t, p.stream("hello").Err(), "last event is not final")

	p = newProbe(t, demo.LLM, demo.Reply{Chunks: []string{"a", "b"}})
	p.on.AfterModelCallback = final(func(r *model.LLMResponse) { r.Content = &genai.Content{Role: genai.RoleModel} })
	require.NoError(t, p.stream("hello").Err(), "an empty content is one")

	p = newProbe(t, demo.LLM, demo.Reply{Text: "a"})
	p.on.AfterModelCallback = final(func(r *model.LLMResponse) { r.Content = nil })
	out := p.say("hello")
	require.NoError(t, out.Err(), "without a stream before it the run ends without a word")
	assert.Empty(t, out.Events)
}

// useGemini gives the agents ADK's model for Gemini, whose server answers every
// call with these chunks.
func (p *probe) useGemini(chunks ...string) {
	m, err := gemini.NewModel(p.t.Context(), "gemini-test", &genai.ClientConfig{
		APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPClient: &http.Client{Transport: sse(chunks)},
	})
	require.NoError(p.t, err)
	p.each(func(c *llmagent.Config) { c.Model = m })
}

// sse is a server that needs no network.
type sse []string

func (s sse) RoundTrip(*http.Request) (*http.Response, error) {
	var body strings.Builder
	for _, chunk := range s {
		body.WriteString("data: " + strings.NewReplacer("\n", "", "\t", "").Replace(chunk) + "\n\n")
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(body.String())),
	}, nil
}
