package demo

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/model"
	"google.golang.org/genai"
)

func TestRepliesComeInOrderAndToTheirAgent(t *testing.T) {
	m := &Model{Replies: []Reply{{Text: "one"}, {Agent: "b", Text: "for b"}, {Text: "two"}}}

	assert.Equal(t, "one", say(t, m.For("a")))
	assert.Equal(t, "two", say(t, m.For("a")))
	assert.Equal(t, 1, m.Left())
	assert.Equal(t, "for b", say(t, m.For("b")))
	assert.Equal(t, 0, m.Left())
}

func TestAScriptThatIsDoneSaysSo(t *testing.T) {
	m := &Model{Replies: []Reply{{Agent: "b", Text: "for b"}}}

	_, err := collect(context.Background(), m.For("a"), &model.LLMRequest{}, false)
	require.ErrorIs(t, err, ErrScriptDone)
	assert.EqualError(t, err, "model[scripted]: script is done: call 1, of agent[a], finds no reply")
}

func TestARepeatingScriptGivesItsLastReplyAgain(t *testing.T) {
	m := &Model{Repeat: true, Replies: []Reply{{Text: "one"}, {Text: "last"}}}

	assert.Equal(t, []string{"one", "last", "last", "last"}, []string{say(t, m), say(t, m), say(t, m), say(t, m)})
}

func TestAStreamIsPartialsAndOneWholeResponse(t *testing.T) {
	m := &Model{Replies: []Reply{{
		Thought: "hm", Chunks: []string{"Hel", "lo."}, Calls: []Call{{ID: "c1", Name: "lookup", Args: map[string]any{"order": "A-1"}}},
		ChunkUsage: []Usage{{Total: 5}, {Total: 7}}, Usage: &Usage{Prompt: 4, Candidates: 5, Total: 9},
	}}}

	got, err := collect(context.Background(), m, &model.LLMRequest{}, true)
	require.NoError(t, err)
	require.Len(t, got, 5)
	for i, total := range []int32{0, 5, 7, 9} {
		assert.True(t, got[i].Partial)
		assert.Equal(t, i == 3, got[i].TurnComplete)
		assert.Equal(t, i == 3, got[i].FinishReason == genai.FinishReasonStop)
		if total == 0 {
			assert.Nil(t, got[i].UsageMetadata)
		} else {
			assert.Equal(t, total, got[i].UsageMetadata.TotalTokenCount)
		}
	}
	final := got[4]
	assert.False(t, final.Partial)
	assert.Equal(t, genai.FinishReasonStop, final.FinishReason)
	assert.Equal(t, int32(9), final.UsageMetadata.TotalTokenCount)
	require.Len(t, final.Content.Parts, 3)
	assert.Equal(t, &genai.Part{Text: "hm", Thought: true}, final.Content.Parts[0])
	assert.Equal(t, &genai.Part{Text: "Hello."}, final.Content.Parts[1])
	assert.Same(t, got[3].Content.Parts[0], final.Content.Parts[2], "the call of the partial, as with Gemini")
}

func TestWithoutAStreamThereIsTheWholeResponseAlone(t *testing.T) {
	m := &Model{Replies: []Reply{{Chunks: []string{"Hel", "lo."}}}}

	got, err := collect(context.Background(), m, &model.LLMRequest{}, false)
	require.NoError(t, err)
	require.Len(t, got, 1)
	assert.Equal(t, "Hello.", Text(got[0].Content))
	assert.False(t, got[0].Partial)
}

func TestAStreamBreaksAfterItsChunks(t *testing.T) {
	broken := errors.New("broken")
	m := &Model{Replies: []Reply{{Chunks: []string{"Hel"}, Err: broken}, {Error: "503"}}}

	got, err := collect(context.Background(), m, &model.LLMRequest{}, true)
	require.ErrorIs(t, err, broken)
	require.Len(t, got, 1)
	assert.True(t, got[0].Partial)

	got, err = collect(context.Background(), m, &model.LLMRequest{}, false)
	require.EqualError(t, err, "503")
	assert.Empty(t, got)
}

func TestRawResponsesPassAsTheyAre(t *testing.T) {
	raw := &model.LLMResponse{Partial: true, TurnComplete: true}
	m := &Model{Replies: []Reply{{Raw: []*model.LLMResponse{raw}}}}

	got, err := collect(context.Background(), m, &model.LLMRequest{}, true)
	require.NoError(t, err)
	require.Len(t, got, 1)
	assert.Same(t, raw, got[0])
}

func TestTheModelStopsWhenItsCallerDoes(t *testing.T) {
	m := &Model{Replies: []Reply{{Chunks: []string{"a", "b", "c"}}}}

	seen := 0
	for range m.GenerateContent(context.Background(), &model.LLMRequest{}, true) {
		seen++
		break
	}
	assert.Equal(t, 1, seen)
}

func TestTheModelStopsWhenItsContextEnds(t *testing.T) {
	m := &Model{Replies: []Reply{{Chunks: []string{"a", "b", "c"}}, {Text: "late", Delay: Duration(time.Hour)}}}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var err error
	for _, err = range m.GenerateContent(ctx, &model.LLMRequest{}, true) {
		cancel()
	}
	require.ErrorIs(t, err, context.Canceled)

	_, err = collect(ctx, m, &model.LLMRequest{}, false)
	require.ErrorIs(t, err, context.Canceled, "the delay ends with the context")
}

func TestTimePassesOnTheModelsClock(t *testing.T) {
	var slept time.Duration
	m := &Model{
		Replies: []Reply{{Text: "a", Delay: Duration(time.Hour)}},
		Sleep:   func(_ context.Context, d time.Duration) error { slept += d; return nil },
	}

	assert.Equal(t, "a", say(t, m))
	assert.Equal(t, time.Hour, slept)
}

func TestRequestsAreCopies(t *testing.T) {
	m := &Model{Replies: []Reply{{Text: "a"}}}
	req := &model.LLMRequest{Contents: []*genai.Content{genai.NewContentFromText("hello", genai.RoleUser)}}

	_, err := collect(context.Background(), m.For("a"), req, true)
	require.NoError(t, err)
	req.Contents[0].Parts[0].Text = "changed"

	require.Len(t, m.Requests(), 1)
	seen := m.Requests()[0]
	assert.Equal(t, "a", seen.Agent)
	assert.True(t, seen.Stream)
	assert.Equal(t, "hello", Text(seen.Contents[0]))
}

func TestCallsAtOnceShareOneScript(t *testing.T) {
	m := &Model{Replies: make([]Reply, 50)}
	for i := range m.Replies {
		m.Replies[i].Text = "x"
	}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range m.For("a").GenerateContent(context.Background(), &model.LLMRequest{}, true) {
			}
		})
	}
	wg.Wait()
	assert.Equal(t, 0, m.Left())
	assert.Len(t, m.Requests(), 50)
}

func say(t *testing.T, m model.LLM) string {
	t.Helper()
	got, err := collect(context.Background(), m, &model.LLMRequest{}, false)
	require.NoError(t, err)
	require.Len(t, got, 1)
	return Text(got[0].Content)
}

func collect(ctx context.Context, m model.LLM, req *model.LLMRequest, stream bool) ([]*model.LLMResponse, error) {
	var out []*model.LLMResponse
	for resp, err := range m.GenerateContent(ctx, req, stream) {
		if err != nil {
			return out, err
		}
		out = append(out, resp)
	}
	return out, nil
}
