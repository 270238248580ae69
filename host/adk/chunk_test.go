package adk_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/demo"
)

// flags are what a response says besides its content.
type flags struct {
	partial, complete bool
	finish            genai.FinishReason
	total             int32
}

func flagsOf(resp *model.LLMResponse) flags {
	f := flags{partial: resp.Partial, complete: resp.TurnComplete, finish: resp.FinishReason}
	if resp.UsageMetadata != nil {
		f.total = resp.UsageMetadata.TotalTokenCount
	}
	return f
}

func flagsOfEvents(events []*session.Event) []flags {
	var all []flags
	for _, ev := range events {
		all = append(all, flagsOf(&ev.LLMResponse))
	}
	return all
}

// marked is a reply of a chunk, its last chunk and a final response, no two of
// which say the same.
func marked() demo.Reply {
	usage := func(n int32) *genai.GenerateContentResponseUsageMetadata {
		return &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: n, TotalTokenCount: n}
	}
	return demo.Reply{Raw: []*model.LLMResponse{
		{Content: modelSays("raw"), Partial: true, TurnComplete: true, UsageMetadata: usage(1)},
		{Content: modelSays("raw"), Partial: true, FinishReason: genai.FinishReasonMaxTokens, UsageMetadata: usage(2)},
		{Content: modelSays("raw"), TurnComplete: true, FinishReason: genai.FinishReasonStop, UsageMetadata: usage(3)},
	}}
}

var markedFlags = []flags{
	{partial: true, complete: true, total: 1},
	{partial: true, finish: genai.FinishReasonMaxTokens, total: 2},
	{complete: true, finish: genai.FinishReasonStop, total: 3},
}

func TestAnAmendedResponseKeepsItsFlags(t *testing.T) {
	amend := swaps("raw", "masked")
	c := newChained(t, demo.LLM, native{abi.OnModelChunk: amend, abi.AfterModel: amend}, marked())

	out := c.stream("hi")

	require.NoError(t, out.Err())
	assert.Equal(t, []string{"masked", "masked"}, out.Chunks())
	assert.Equal(t, []string{"masked"}, out.Texts())
	assert.Equal(t, markedFlags, flagsOfEvents(out.Events))
	assert.Equal(t, []string{"user: hi", "assistant: masked"}, c.stored(), "no chunk became a turn")
}

func TestAnAnswerInPlaceOfAResponseKeepsItsFlags(t *testing.T) {
	for name, answer := range map[string]abi.Answer{
		"text":    {Text: "another"},
		"json":    {JSON: []byte(`{"content":{"role":"model","parts":[{"text":"another"}]}}`)},
		"refusal": {Refusal: &abi.Refusal{Code: "test.no", Text: "another"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChained(t, demo.LLM, native{abi.AfterModel: answers(answer)}, marked())

			out := c.stream("hi")

			require.NoError(t, out.Err())
			assert.Equal(t, []string{"another"}, out.Texts())
			assert.Equal(t, markedFlags, flagsOfEvents(out.Events))
		})
	}
}

func answers(a abi.Answer) does {
	return func(*abi.Event) (abi.Verdict, error) { return abi.Verdict{Kind: abi.Respond, Answer: a}, nil }
}

// holds keeps back the last n bytes of every text.
func holds(n int) does {
	return func(ev *abi.Event) (abi.Verdict, error) {
		v := abi.Verdict{Kind: abi.Continue}
		for _, l := range ev.Subject.Leaves() {
			v.Holds = append(v.Holds, abi.Hold{Pointer: l.Pointer, Bytes: n})
		}
		return v, nil
	}
}

func TestWhatIsHeldBackComesWithTheNextChunk(t *testing.T) {
	for name, test := range map[string]struct {
		hold int
		want []string
	}{
		"a part of each chunk":            {2, []string{"on", "e tw", "o three"}},
		"whole chunks, which are dropped": {100, []string{"one two three"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChained(t, demo.LLM, native{abi.OnModelChunk: holds(test.hold)},
				demo.Reply{Chunks: []string{"one ", "two ", "three"}})

			out := c.stream("hi")

			require.NoError(t, out.Err())
			assert.Equal(t, test.want, out.Chunks())
			assert.Equal(t, []string{"one two three"}, out.Texts(), "the final response is whole")
			require.Len(t, out.Events, len(test.want)+1, "and of a chunk that is held whole there is no event")
			last := out.Events[len(test.want)-1]
			assert.Equal(t, flags{partial: true, complete: true, finish: genai.FinishReasonStop}, flagsOf(&last.LLMResponse))
		})
	}
}
