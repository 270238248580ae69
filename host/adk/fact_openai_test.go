package adk_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/model/openaimodel"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/host/demo"
)

// The last event of a stream that came to its end, and of one that the
// provider cut at the token limit of the request.
const (
	completed = `{"type":"response.completed","response":{"id":"resp_1","model":"gpt","status":"completed",` +
		`"usage":{"input_tokens":4,"output_tokens":5,"total_tokens":9}}}`
	incomplete = `{"type":"response.incomplete","response":{"id":"resp_1","model":"gpt","status":"incomplete",` +
		`"usage":{"input_tokens":4,"output_tokens":5,"total_tokens":9}}}`
)

// openAI is a probe whose model is ADK's for OpenAI, in front of a server that
// streams the deltas and the last event. It gives the paths that the server
// was asked for.
func openAI(t *testing.T, last string, deltas ...string) (p *probe, paths *[]string) {
	paths = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		*paths = append(*paths, req.Method+" "+req.URL.Path)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\n", `{"type":"response.created","response":{"id":"resp_1","model":"gpt"}}`)
		for _, delta := range deltas {
			fmt.Fprintf(w, "data: {\"type\":\"response.output_text.delta\",\"item_id\":\"msg_1\",\"delta\":%q}\n\n", delta)
		}
		fmt.Fprintf(w, "data: %s\n\n", last)
	}))
	t.Cleanup(server.Close)
	llm, err := openaimodel.NewModel(t.Context(), "gpt", &openaimodel.ClientConfig{
		APIKey: "none", BaseURL: server.URL + "/v1", HTTPClient: server.Client(),
	})
	require.NoError(t, err)
	p = newProbe(t, demo.LLM)
	p.each(func(c *llmagent.Config) { c.Model = llm })
	return p, paths
}

func TestFact40_OpenAIMarksEveryPartialAsTheEndOfTheTurn(t *testing.T) {
	p, _ := openAI(t, completed, "Hel", "lo")
	type mark struct {
		text              string
		partial, complete bool
		finish            genai.FinishReason
	}
	var marks []mark
	p.on.AfterModelCallback = func(_ agent.Context, resp *model.LLMResponse, _ error) (*model.LLMResponse, error) {
		marks = append(marks, mark{demo.Text(resp.Content), resp.Partial, resp.TurnComplete, resp.FinishReason})
		return nil, nil
	}

	require.NoError(t, p.stream("hi").Err())

	assert.Equal(t, []mark{
		{"Hel", true, true, genai.FinishReasonUnspecified},
		{"lo", true, true, genai.FinishReasonUnspecified},
		{"Hello", false, false, genai.FinishReasonUnspecified},
	}, marks, "the final response alone is not marked")
}

func TestFact40_OpenAISpeaksTheResponsesAPI(t *testing.T) {
	p, paths := openAI(t, completed, "Hello")

	assert.Equal(t, []string{"Hello"}, p.stream("hi").Texts())

	assert.Equal(t, []string{"POST /v1/responses"}, *paths)
}

func TestFact33_OpenAIsMissingUsageIsZeros(t *testing.T) {
	for last, want := range map[string][3]int32{completed: {4, 5, 9}, incomplete: {0, 0, 0}} {
		p, _ := openAI(t, last, "Hel", "lo")
		var sent []*genai.GenerateContentResponseUsageMetadata
		p.on.AfterModelCallback = func(_ agent.Context, resp *model.LLMResponse, _ error) (*model.LLMResponse, error) {
			if !resp.Partial {
				sent = append(sent, resp.UsageMetadata)
			}
			return nil, nil
		}

		require.NoError(t, p.stream("hi").Err())

		require.Len(t, sent, 1)
		require.NotNil(t, sent[0])
		assert.Equal(t, want, [3]int32{sent[0].PromptTokenCount, sent[0].CandidatesTokenCount, sent[0].TotalTokenCount})
	}
}
