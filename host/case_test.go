package host_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/agent/workflowagents/parallelagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/demo"
	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/memory"
	"github.com/hookhost/hookhost/store/storetest"
)

const meterOnly = `
version = 1
order = ["meter"]
[stage.meter]
module = "MODULE/meter"
role = "observer"
grants = ["usage:write"]
`

const meterAndLimit = `
version = 1
order = ["meter", "ratelimit"]
[limits]
plans = "plans.toml"
[stage.meter]
module = "MODULE/meter"
role = "observer"
grants = ["usage:write"]
[stage.ratelimit]
module = "MODULE/ratelimit"
role = "responder"
grants = ["limit:turn", "limit:tokens", "limit:runs"]
`

func used(prompt, candidates int32) *demo.Usage {
	return &demo.Usage{Prompt: prompt, Candidates: candidates, Total: prompt + candidates}
}

// still is a clock on which nothing refills and nobody waits.
type still struct{ storetest.Clock }

func (c still) Sleep(context.Context, time.Duration) error { return nil }

// TestCase029EverythingThatRanAddsUp: a failed attempt, its retry, a step
// after a tool and two branches at once are five operations of one run.
func TestCase029EverythingThatRanAddsUp(t *testing.T) {
	w := open(t, meterOnly, host.Options{},
		demo.Reply{Agent: "asks", Err: errors.New("503 unavailable")},
		demo.Reply{Agent: "asks", Calls: []demo.Call{{Name: "lookup", Args: map[string]any{"order": "A-1"}}}, Usage: used(100, 20)},
		demo.Reply{Agent: "asks", Text: "looked up", Usage: used(150, 30)},
		demo.Reply{Agent: "left", Text: "left", Usage: used(200, 40)},
		demo.Reply{Agent: "right", Text: "right", Usage: used(300, 60)},
		demo.Reply{Agent: "asks", Text: "once more", Usage: used(100, 20)},
	)
	retries, err := agent.New(agent.Config{Name: "retries", Run: func(c agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return inTurn(c, t, w.model)
	}})
	require.NoError(t, err)
	r := w.runnerFor(retries)
	ctx := t.Context()
	_, err = w.sessions.Create(ctx, &session.CreateRequest{
		AppName: "app", UserID: "ada", SessionID: "s", State: map[string]any{"idempotency_key": "ticket-1:rev-2"},
	})
	require.NoError(t, err)

	require.NoError(t, demo.Run(ctx, r, demo.Turn{User: "ada", Session: "s", Text: "first"}).Err())
	require.NoError(t, demo.Run(ctx, r, demo.Turn{User: "ada", Session: "s", Text: "short"}).Err())

	records, err := w.host.Store().Records(ctx, store.Owner{Kind: store.OwnerUser, App: "app", User: "ada"})
	require.NoError(t, err)
	runs := make(map[string]int64)
	calls := make(map[string]int)
	failed := 0
	for _, record := range records {
		assert.Equal(t, "ticket-1:rev-2", record.IdempotencyKey)
		if record.Tokens.Total == nil {
			assert.Equal(t, "error", record.Outcome)
			failed++
			continue
		}
		runs[record.Run] += *record.Tokens.Total
		calls[record.Run]++
	}
	first, second := records[0].Run, records[len(records)-1].Run
	assert.Equal(t, map[string]int64{first: 900, second: 120}, runs, "tokens of each run, 1020 in all")
	assert.Equal(t, map[string]int{first: 4, second: 1}, calls)
	assert.Equal(t, 1, failed, "attempts that failed")

	fresh, err := w.host.Store().Record(ctx, records[0])
	require.NoError(t, err)
	assert.False(t, fresh, "a record that is written twice changes nothing")
}

// inTurn runs the asking agent until it does not fail, then, unless the turn
// is to be short, two branches beside each other.
func inTurn(c agent.InvocationContext, t *testing.T, m *demo.Model) iter.Seq2[*session.Event, error] {
	return func(yield func(*session.Event, error) bool) {
		failed := true
		for failed {
			failed = false
			for ev, err := range llm(t, "asks", m, new(demo.Desk).Tools()...).Run(c) {
				if err != nil {
					failed = true
					break
				}
				if !yield(ev, nil) {
					return
				}
			}
		}
		if demo.Text(c.UserContent()) == "short" {
			return
		}
		branches, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{
			Name: "branches", SubAgents: []agent.Agent{llm(t, "left", m), llm(t, "right", m)},
		}})
		if !assert.NoError(t, err) {
			return
		}
		for ev, err := range branches.Run(c) {
			if !yield(ev, err) {
				return
			}
		}
	}
}

// TestCase035ManyRunsAtOnceKeepTheirOwnBalances: before- and after-hooks of
// 500 overlapping runs meet in a pool of few instances, in any order.
func TestCase035ManyRunsAtOnceKeepTheirOwnBalances(t *testing.T) {
	const runs = 500
	clock := storetest.NewClock()
	shared := memory.New(clock)
	w := open(t, meterAndLimit+"[defaults]\ntimeout = \"30s\"\npool = 4\n", host.Options{Clock: still{clock}, Store: shared})
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(w.path), "plans.toml"), []byte(`
version = "test"
default = "free"
[plan.free]
tokens = { rate = "60000/min", burst = 60000, estimate = 6000 }
runs = { max = 2, expires = "30s" }
`), 0o600))
	require.NoError(t, w.host.Reload(t.Context()))
	root, err := agent.New(agent.Config{Name: "root", Run: func(c agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return llm(t, "asks", spends(c.Session().UserID())).Run(c)
	}})
	require.NoError(t, err)
	r := w.runnerFor(root)

	var all sync.WaitGroup
	for i := 1; i <= runs; i++ {
		all.Go(func() {
			out := demo.Run(context.Background(), r, demo.Turn{User: fmt.Sprint(i), Text: "hi"})
			assert.NoError(t, out.Err())
			assert.Equal(t, []string{"done"}, out.Texts())
		})
	}
	all.Wait()

	for i := 1; i <= runs; i++ {
		owner := store.Owner{Kind: store.OwnerUser, App: "app", User: fmt.Sprint(i)}
		limit, ok := w.host.Limit("app", fmt.Sprint(i), "tokens")
		require.True(t, ok)
		balance, err := shared.Balance(t.Context(), owner, "tokens", *limit.Bucket)
		require.NoError(t, err)
		assert.EqualValues(t, 60000-i, balance, "user %d", i)
		held, err := shared.Held(t.Context(), owner, "runs")
		require.NoError(t, err)
		assert.Zero(t, held, "leases of user %d", i)
	}
	open, operations := w.host.Open()
	assert.Zero(t, open+operations, "open runs and operations")
}

// spends is a model whose calls cost as many tokens as the user's number.
type spends string

func (spends) Name() string { return "spends" }

func (s spends) GenerateContent(context.Context, *model.LLMRequest, bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		var n int32
		_, _ = fmt.Sscan(string(s), &n) // users are numbers here
		yield(&model.LLMResponse{
			Content:       genai.NewContentFromText("done", genai.RoleModel),
			UsageMetadata: &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: n, TotalTokenCount: n},
		}, nil)
	}
}

func llm(t *testing.T, name string, m model.LLM, tools ...tool.Tool) agent.Agent {
	t.Helper()
	if scripted, ok := m.(*demo.Model); ok {
		m = scripted.For(name)
	}
	a, err := llmagent.New(llmagent.Config{Name: name, Model: m, Tools: tools})
	require.NoError(t, err)
	return a
}

// runnerFor puts the host in front of another agent than the world's own.
func (w *world) runnerFor(root agent.Agent) *runner.Runner {
	w.t.Helper()
	r, err := runner.New(runner.Config{
		AppName: "app", Agent: root, SessionService: w.sessions, AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{w.host.Plugin()}},
	})
	require.NoError(w.t, err)
	return r
}
