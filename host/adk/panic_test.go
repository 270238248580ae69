package adk_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host/demo"
)

// ofTheHost is what is read where the host itself broke.
const ofTheHost = "The service is not available. Please try again shortly."

// breaks makes hookhost itself panic in its callback at this hook, the first
// time that it comes.
func (c *chained) breaks(h abi.Hook) {
	inFront := newProbe(c.t, demo.LLM)
	inFront.on.Name = "in front"
	var once sync.Once
	inFront.watchRuns(func(_ agent.InvocationContext, hook string) {
		if hook == h.String() {
			once.Do(func() { c.clock.broken.Store(true) })
		}
	})
	c.front = append([]*plugin.Plugin{inFront.recorder()}, c.front...)
}

func TestAPanicOfTheHostRefuses(t *testing.T) {
	for h, want := range map[abi.Hook][]string{
		abi.BeforeRun:   {ofTheHost},
		abi.BeforeAgent: {ofTheHost},
		abi.BeforeModel: {ofTheHost},
		abi.AfterModel:  {ofTheHost},
		abi.OnEvent:     {ofTheHost},
		abi.AfterAgent:  {"secret", ofTheHost},
		abi.AfterRun:    {"secret"},
	} {
		t.Run(h.String(), func(t *testing.T) {
			released := false
			stage := hears(h)
			stage[abi.OnUserMessage] = func(ev *abi.Event) (abi.Verdict, error) {
				ev.Run.Own("lease", func(context.Context, abi.Ending) { released = true })
				return continues(ev)
			}
			c := newChained(t, demo.LLM, stage, demo.Reply{Text: "secret"})
			c.breaks(h)

			out := c.say("hi")

			require.NoError(t, out.Err())
			assert.Equal(t, want, out.Texts())
			assert.Equal(t, want, c.storedTexts())
			assert.True(t, released, "what the run owned")
		})
	}
}

func TestAPanicOfTheHostAtTheUsersMessageFailsTheRun(t *testing.T) {
	c := newChained(t, demo.LLM, hears(abi.OnUserMessage), demo.Reply{Text: "secret"})
	c.breaks(abi.OnUserMessage)

	out := c.say("hi")

	require.ErrorContains(t, out.Err(), "the run could not be opened")
	assert.Empty(t, out.Events)
}

func TestAPanicOfTheHostAtAToolIsReadByTheModel(t *testing.T) {
	for h, test := range map[abi.Hook]struct {
		name string
		ran  int
	}{
		abi.BeforeTool:  {"lookup", 0},
		abi.AfterTool:   {"lookup", 1},
		abi.OnToolError: {"ledger", 0},
	} {
		t.Run(h.String(), func(t *testing.T) {
			c := newChained(t, demo.LLM, hears(h), calls(test.name), demo.Reply{Text: "done"})
			c.breaks(h)

			require.Equal(t, []string{"done"}, c.say("hi").Texts())

			assert.Equal(t, map[string]any{"error": ofTheHost}, c.result(test.name))
			assert.Len(t, c.desk.Lookups(), test.ran)
		})
	}
}

func TestAPanicOfTheHostAtAModelErrorLeavesTheError(t *testing.T) {
	c := newChained(t, demo.LLM, hears(abi.OnModelError), demo.Reply{Error: "503"})
	c.breaks(abi.OnModelError)

	out := c.say("hi")

	require.ErrorContains(t, out.Err(), "503")
	assert.Empty(t, out.Texts())
}

// landmine is a number that panics when it is read.
type landmine float64

func (landmine) MarshalJSON() ([]byte, error) { panic(card) }

var mined = map[string]any{"n": landmine(1)}

// mines puts a landmine into the value of one hook, before hookhost sees it.
func mines(t *testing.T, h abi.Hook) *plugin.Plugin {
	cfg := plugin.Config{Name: "miner"}
	call := &genai.Part{FunctionCall: &genai.FunctionCall{ID: "m", Name: "lookup", Args: mined}}
	result := &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: "m", Name: "lookup", Response: mined}}
	switch h {
	case abi.OnUserMessage:
		cfg.OnUserMessageCallback = func(_ agent.InvocationContext, msg *genai.Content) (*genai.Content, error) {
			msg.Parts = append(msg.Parts, result)
			return nil, nil
		}
	case abi.BeforeModel:
		cfg.BeforeModelCallback = func(_ agent.Context, req *model.LLMRequest) (*model.LLMResponse, error) {
			req.Contents = append(req.Contents, genai.NewContentFromParts([]*genai.Part{result}, genai.RoleUser))
			return nil, nil
		}
	case abi.OnModelChunk, abi.AfterModel:
		cfg.AfterModelCallback = func(_ agent.Context, resp *model.LLMResponse, _ error) (*model.LLMResponse, error) {
			if resp.Partial == (h == abi.OnModelChunk) {
				resp.Content.Parts = append(resp.Content.Parts, call)
			}
			return nil, nil
		}
	case abi.BeforeTool:
		cfg.BeforeToolCallback = func(_ agent.Context, _ tool.Tool, args map[string]any) (map[string]any, error) {
			args["n"] = landmine(1)
			return nil, nil
		}
	case abi.AfterTool:
		cfg.AfterToolCallback = func(_ agent.Context, _ tool.Tool, _, result map[string]any, _ error) (map[string]any, error) {
			result["n"] = landmine(1)
			return nil, nil
		}
	case abi.OnEvent:
		cfg.OnEventCallback = func(_ agent.InvocationContext, ev *session.Event) (*session.Event, error) {
			ev.Actions.StateDelta = mined
			return nil, nil
		}
	}
	p, err := plugin.New(cfg)
	require.NoError(t, err)
	return p
}

// readers are two stages that read every leaf at the hook; the first may fail,
// the second fails closed.
func readers(h abi.Hook) []chain.Entry {
	return []chain.Entry{
		{Spec: spec("careless", chain.Open), Stage: native{h: swaps("secret", "masked")}},
		{Spec: spec("careful", chain.Closed), Stage: native{h: swaps("secret", "masked")}},
	}
}

func TestAValueThatPanicsWhenItIsReadIsRefused(t *testing.T) {
	for h, want := range map[abi.Hook]string{
		abi.OnUserMessage: "not available",
		abi.BeforeModel:   "not available",
		abi.AfterModel:    "not available",
		abi.OnEvent:       ofTheHost, // the stage's own refusal has no place to go
	} {
		t.Run(h.String(), func(t *testing.T) {
			c := newChainOf(t, demo.LLM, readers(h), demo.Reply{Text: "secret"})
			c.front = append([]*plugin.Plugin{mines(t, h)}, c.front...)

			out := c.say("hi")

			require.NoError(t, out.Err())
			assert.Equal(t, []string{want}, out.Texts())
			assert.Equal(t, []string{want}, c.storedTexts())
		})
	}
}

func TestAChunkThatPanicsWhenItIsReadEndsTheStream(t *testing.T) {
	c := newChainOf(t, demo.LLM, readers(abi.OnModelChunk), demo.Reply{Chunks: []string{"secret ", "text"}})
	c.front = append([]*plugin.Plugin{mines(t, abi.OnModelChunk)}, c.front...)

	out := c.stream("hi")

	require.NoError(t, out.Err())
	assert.Empty(t, out.Chunks())
}

func TestAValueOfAToolThatPanicsWhenItIsReadIsRefused(t *testing.T) {
	for h, ran := range map[abi.Hook]int{abi.BeforeTool: 0, abi.AfterTool: 1} {
		t.Run(h.String(), func(t *testing.T) {
			c := newChainOf(t, demo.LLM, readers(h), calls("lookup"), demo.Reply{Text: "done"})
			c.front = append([]*plugin.Plugin{mines(t, h)}, c.front...)

			require.Equal(t, []string{"done"}, c.say("hi").Texts())

			assert.Equal(t, map[string]any{"error": "not available", "code": "stage_failed"}, c.result("lookup"))
			assert.Len(t, c.desk.Lookups(), ran)
		})
	}
}

func TestAPanicOfAStageAtAnErrorIsNotOpenEither(t *testing.T) {
	c := newChained(t, demo.LLM, native{abi.OnModelError: panics}, demo.Reply{Error: "503"})
	out := c.say("hi")
	require.NoError(t, out.Err())
	assert.Equal(t, []string{"not available"}, out.Texts(), "the stage's refusal in place of the model's error")

	c = newChained(t, demo.LLM, native{abi.OnToolError: panics}, calls("ledger", "teleport"), demo.Reply{Text: "done"})
	require.Equal(t, []string{"done"}, c.say("hi").Texts())
	for _, name := range []string{"ledger", "teleport"} {
		assert.Equal(t, map[string]any{"error": "not available", "code": "stage_failed"}, c.result(name))
	}
}

func TestAPanicOfAStageAtTheEndChangesNothing(t *testing.T) {
	for _, h := range []abi.Hook{abi.AfterRun, abi.Close} {
		t.Run(h.String(), func(t *testing.T) {
			var released bool
			stage := hears(abi.BeforeModel)
			stage[h] = panics
			stage[abi.BeforeRun] = func(ev *abi.Event) (abi.Verdict, error) {
				ev.Run.Own("lease", func(context.Context, abi.Ending) { released = true })
				return continues(ev)
			}
			c := newChained(t, demo.LLM, stage, demo.Reply{Text: "hello"})

			out := c.say("hi")

			require.NoError(t, out.Err())
			assert.Equal(t, []string{"hello"}, out.Texts())
			assert.True(t, released)
		})
	}
}

func TestAPanicOfAStageAtAfterAgentIsReadAsTheSecondEvent(t *testing.T) {
	c := newChained(t, demo.LLM, native{abi.AfterAgent: panics}, demo.Reply{Text: "hello"})

	out := c.say("hi")

	require.NoError(t, out.Err())
	assert.Equal(t, []string{"hello", "not available"}, out.Texts())
}

func TestAReleaseThatPanicsKeepsNoOther(t *testing.T) {
	released := false
	stage := native{abi.BeforeRun: func(ev *abi.Event) (abi.Verdict, error) {
		ev.Run.Own("broken", func(context.Context, abi.Ending) { panic(card) })
		ev.Run.Own("lease", func(context.Context, abi.Ending) { released = true })
		return continues(ev)
	}}
	c := newChained(t, demo.LLM, stage, demo.Reply{Text: "hello"})

	assert.Equal(t, []string{"hello"}, c.say("hi").Texts())

	assert.True(t, released)
}

func TestATracerThatPanicsLosesItsLinesAndNothingElse(t *testing.T) {
	released := 0
	stage := hears(abi.OnUserMessage, abi.BeforeAgent, abi.AfterAgent, abi.BeforeModel, abi.AfterModel,
		abi.BeforeTool, abi.OnToolError, abi.OnEvent, abi.AfterRun, abi.Close)
	stage[abi.BeforeRun] = func(ev *abi.Event) (abi.Verdict, error) {
		ev.Run.Own("lease", func(context.Context, abi.Ending) { released++ })
		return continues(ev)
	}
	c := newChained(t, demo.LLM, stage, calls("lookup", "ledger"), demo.Reply{Text: "done"})
	c.traced = func(chain.Step) { panic(card) }

	out := c.say("hi")

	require.NoError(t, out.Err())
	assert.Equal(t, []string{"done"}, out.Texts())
	assert.Len(t, c.desk.Lookups(), 1)
	assert.Equal(t, 1, released)
}

// mute is an error that panics when it is read.
type mute struct{}

func (mute) Error() string { panic(card) }

func TestAnErrorThatPanicsWhenItIsReadStaysAnError(t *testing.T) {
	c := newChained(t, demo.LLM, hears(abi.BeforeModel, abi.OnModelError), demo.Reply{Err: mute{}})
	out := c.say("hi")
	require.Error(t, out.Err(), "ADK's own")
	assert.Empty(t, out.Texts())

	c = newChained(t, demo.LLM, hears(toolCallHooks...), calls("mumble"), demo.Reply{Text: "done"})
	mumble, err := functiontool.New(functiontool.Config{Name: "mumble", Description: "Fails."},
		func(agent.Context, demo.Order) (demo.Status, error) { return demo.Status{}, mute{} })
	require.NoError(t, err)
	c.tree.Tools = []tool.Tool{mumble}
	require.Equal(t, []string{"done"}, c.say("hi").Texts())
	assert.Equal(t, map[string]any{"error": ofTheHost}, c.result("mumble"))
}
