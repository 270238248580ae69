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

// openAI is a probe whose model is ADK's for OpenAI, in front of a server that
// streams the deltas. It gives the paths that the server was asked for.
func openAI(t *testing.T, deltas ...string) (p *probe, paths *[]string) {
	paths = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		*paths = append(*paths, req.Method+" "+req.URL.Path)
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(kind, rest string) { fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, rest) }
		send("response.created", `,"response":{"id":"resp_1","model":"gpt"}`)
		for _, delta := range deltas {
			send("response.output_text.delta", fmt.Sprintf(`,"item_id":"msg_1","delta":%q`, delta))
		}
		send("response.completed", `,"response":{"id":"resp_1","model":"gpt","status":"completed",`+
			`"usage":{"input_tokens":4,"output_tokens":5,"total_tokens":9}}`)
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
	p, _ := openAI(t, "Hel", "lo")
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
	p, paths := openAI(t, "Hello")

	assert.Equal(t, []string{"Hello"}, p.stream("hi").Texts())

	assert.Equal(t, []string{"POST /v1/responses"}, *paths)
}
