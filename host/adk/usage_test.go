package adk_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/model"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/demo"
)

// meter is what a stage that settles sees of the usage of each model call: at
// every chunk and response, and at the end of the call.
type meter struct {
	seen   []int64
	called []abi.Usage
	ended  []abi.Ending
}

func (m *meter) stage() native {
	sees := func(ev *abi.Event) (abi.Verdict, error) {
		m.seen = append(m.seen, ev.Usage.Total)
		if ev.Hook == abi.AfterModel {
			m.called = append(m.called, ev.Usage)
		}
		return continues(ev)
	}
	return native{
		abi.BeforeModel: func(ev *abi.Event) (abi.Verdict, error) {
			ev.Op.Own("reservation", func(_ context.Context, end abi.Ending) { m.ended = append(m.ended, end) })
			return continues(ev)
		},
		abi.OnModelChunk: sees, abi.AfterModel: sees,
	}
}

const promptCandidatesTotal = abi.HasPrompt | abi.HasCandidates | abi.HasTotal

// case023 is a stream with running totals on its chunks.
func case023(final *genai.GenerateContentResponseUsageMetadata) demo.Reply {
	chunk := func(text string, candidates, thoughts, total int32) *model.LLMResponse {
		resp := partial(text)
		resp.UsageMetadata = &genai.GenerateContentResponseUsageMetadata{
			PromptTokenCount: 20, CandidatesTokenCount: candidates, ThoughtsTokenCount: thoughts, TotalTokenCount: total,
		}
		return resp
	}
	whole := answer("one two three")
	whole.UsageMetadata = final
	return demo.Reply{Raw: []*model.LLMResponse{chunk("one ", 5, 0, 25), chunk("two ", 12, 0, 32), chunk("three", 30, 10, 60), whole}}
}

func TestCase023TheLastFigureIsTheFigure(t *testing.T) {
	for name, final := range map[string]*genai.GenerateContentResponseUsageMetadata{
		"repeated on the final response": {PromptTokenCount: 20, CandidatesTokenCount: 30, ThoughtsTokenCount: 10, TotalTokenCount: 60},
		"missing there":                  nil,
		"nothing but zeros there":        {},
	} {
		t.Run(name, func(t *testing.T) {
			var m meter
			c := newChained(t, demo.LLM, m.stage(), case023(final))

			require.NoError(t, c.stream("hi").Err())

			assert.Equal(t, []int64{25, 32, 60, 60}, m.seen)
			usage := abi.Usage{Mask: promptCandidatesTotal | abi.HasThoughts, Prompt: 20, Candidates: 30, Thoughts: 10, Total: 60}
			assert.Equal(t, []abi.Ending{{Reason: abi.ReasonDone, Usage: usage}}, m.ended, "settled once")
		})
	}
}

func TestUsageOfAHeldChunkCounts(t *testing.T) {
	var m meter
	stage := m.stage()
	stage[abi.OnModelChunk] = holds(100)
	last := demo.Reply{Raw: case023(nil).Raw[:3]}
	last.Err = context.Canceled // the stream breaks before its final response
	c := newChained(t, demo.LLM, stage, last)

	out := c.stream("hi")

	assert.Empty(t, out.Chunks(), "all of it was held back")
	require.Len(t, m.ended, 1)
	assert.Equal(t, int64(60), m.ended[0].Usage.Total)
	assert.Equal(t, abi.ReasonCancelled, m.ended[0].Reason)
}

func TestUsageOfEveryModelCallIsItsOwn(t *testing.T) {
	var m meter
	first, second := calls("lookup"), demo.Reply{Text: "done"}
	first.Usage = &demo.Usage{Prompt: 4, Candidates: 1, Total: 5}
	c := newChained(t, demo.LLM, m.stage(), first, second)

	require.NoError(t, c.say("hi").Err())

	require.Len(t, m.ended, 2)
	assert.Equal(t, int64(5), m.ended[0].Usage.Total)
	assert.False(t, m.ended[1].Usage.Known(), "the second call said nothing of its own")
}

func TestAZeroCountsAsSentWhereTheNumbersAddUp(t *testing.T) {
	for name, test := range map[string]struct {
		sent *genai.GenerateContentResponseUsageMetadata
		want abi.UsageMask
	}{
		"no usage":                   {nil, 0},
		"zeros alone":                {&genai.GenerateContentResponseUsageMetadata{}, 0},
		"all":                        {&genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 4, CandidatesTokenCount: 1, CachedContentTokenCount: 2, ThoughtsTokenCount: 1, ToolUsePromptTokenCount: 1, TotalTokenCount: 7}, promptCandidatesTotal | abi.HasCached | abi.HasThoughts | abi.HasToolUse},
		"no candidates, adds up":     {&genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 4, TotalTokenCount: 4}, promptCandidatesTotal},
		"no prompt, adds up":         {&genai.GenerateContentResponseUsageMetadata{CandidatesTokenCount: 4, ThoughtsTokenCount: 1, TotalTokenCount: 5}, promptCandidatesTotal | abi.HasThoughts},
		"no candidates, too little":  {&genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 4, TotalTokenCount: 9}, abi.HasPrompt | abi.HasTotal},
		"no total":                   {&genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 4, CandidatesTokenCount: 1}, abi.HasPrompt | abi.HasCandidates},
		"cached is part of a prompt": {&genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 4, CachedContentTokenCount: 3, TotalTokenCount: 4}, promptCandidatesTotal | abi.HasCached},
	} {
		t.Run(name, func(t *testing.T) {
			var m meter
			resp := answer("hello")
			resp.UsageMetadata = test.sent
			c := newChained(t, demo.LLM, m.stage(), demo.Reply{Raw: []*model.LLMResponse{resp}})

			require.NoError(t, c.say("hi").Err())

			require.Len(t, m.called, 1)
			assert.Equal(t, test.want, m.called[0].Mask)
		})
	}
}
