package adk_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/server/adkrest"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/host/demo"
)

// rest is ADK's REST server over the probe's agents and sessions.
type rest struct {
	*probe
	server *adkrest.Server
}

func (p *probe) rest() rest {
	root, err := p.tree.Agent()
	require.NoError(p.t, err)
	server, err := adkrest.NewServer(adkrest.ServerConfig{
		SessionService: p.sessions, AgentLoader: agent.NewSingleLoader(root),
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{p.recorder()}},
	})
	require.NoError(p.t, err)
	return rest{p, server}
}

// post sends the body from a client that says who it is in a header, as an
// edge in front of the server would, and requires that it is taken.
func (r rest) post(principal, path string, body any) {
	r.t.Helper()
	data, err := json.Marshal(body)
	require.NoError(r.t, err)
	req := httptest.NewRequestWithContext(r.t.Context(), http.MethodPost, path, bytes.NewReader(data))
	req.Header.Set("Authorization", "Bearer "+principal)
	resp := httptest.NewRecorder()
	r.server.ServeHTTP(resp, req)
	require.Equal(r.t, http.StatusOK, resp.Code, resp.Body.String())
}

// runBy is the body of a run in the name of a user.
func runBy(user string) map[string]any {
	return map[string]any{
		"appName": "assistant", "userId": user, "sessionId": "session",
		"newMessage": genai.NewContentFromText("hi", genai.RoleUser),
	}
}

func TestFact32_TheRESTServerTakesTheUserOfPathAndBody(t *testing.T) {
	p := newProbe(t, demo.LLM, demo.Reply{Text: "hello, Ada"})
	var seen string
	p.on.BeforeRunCallback = func(c agent.InvocationContext) (*genai.Content, error) {
		seen = c.Session().UserID()
		return nil, nil
	}
	r := p.rest()

	r.post("bob", "/apps/assistant/users/ada/sessions/session", map[string]any{})
	r.post("bob", "/run", runBy("ada"))

	assert.Equal(t, "ada", seen, "bob spoke as ada, in her session")
}

func TestFact45_AStateDeltaOfARESTRequestIsInTheSessionUnchecked(t *testing.T) {
	p := newProbe(t, demo.LLM, demo.Reply{Text: "hello"})
	var seen any
	p.on.BeforeRunCallback = func(c agent.InvocationContext) (*genai.Content, error) {
		seen, _ = c.Session().State().Get("idempotency_key")
		return nil, nil
	}
	r := p.rest()
	r.post("bob", "/apps/assistant/users/bob/sessions/session", map[string]any{})

	body := runBy("bob")
	body["stateDelta"] = map[string]any{"idempotency_key": "somebody else's"}
	r.post("bob", "/run", body)

	assert.Equal(t, "somebody else's", seen)
}
