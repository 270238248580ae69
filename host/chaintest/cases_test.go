package chaintest

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/agent/workflowagents/parallelagent"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/demo"
	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/memory"
)

// The cases whose calls have to overlap in a given way, or whose agents no
// scenario file has, with the shipped guests.

// plenty never refuses and gives nothing back in the time of a test.
const plenty = `
version = "test"
default = "test"
[plan.test]
turn = { rate = "1/h", burst = 100000 }
tokens = { rate = "1/h", burst = 60000, estimate = 6000 }
runs = { max = 1000, expires = "30s" }
`

// shipped is a host with the shipped manifest and these plans, on a clock that
// stands still.
type shipped struct {
	t        *testing.T
	host     *host.Host
	sessions session.Service
}

func newShipped(t *testing.T, plans string) *shipped {
	t.Helper()
	dir := t.TempDir()
	plansFile := filepath.Join(dir, "plans.toml")
	require.NoError(t, os.WriteFile(plansFile, []byte(plans), 0o600))
	all, err := Parse(filepath.Join("..", "..", "chaintests", "test.toml"), []byte(fmt.Sprintf(`
manifest = "../hooks.toml"
plans = %q
stage.meter.pool = 32
stage.ratelimit.pool = 32
stage.redact.pool = 32
[[turn]]
text = "-"
expect.refused = []`, plansFile)))
	require.NoError(t, err)
	path, _, err := all[0].compose(dir)
	require.NoError(t, err)
	clock := NewClock()
	h, err := host.Open(t.Context(), path, host.Options{
		Dev: true, CacheDir: CacheDir(), Clock: clock, Store: memory.New(clock), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(explain(all[0].placed(err)))
	}
	t.Cleanup(func() { require.NoError(t, h.Close(context.Background())) })
	return &shipped{t: t, host: h, sessions: session.InMemoryService()}
}

func (s *shipped) runner(root agent.Agent) *runner.Runner {
	s.t.Helper()
	r, err := runner.New(runner.Config{
		AppName: App, Agent: root, SessionService: s.sessions, AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{s.host.Plugin()}},
	})
	require.NoError(s.t, err)
	return r
}

func (s *shipped) tree(tree demo.Tree) *runner.Runner {
	s.t.Helper()
	root, err := tree.Agent()
	require.NoError(s.t, err)
	return s.runner(root)
}

func (s *shipped) left(user, limit string) int64 {
	s.t.Helper()
	l, defined := s.host.Limit(s.t.Context(), App, user, limit)
	require.True(s.t, defined)
	require.NoError(s.t, s.host.Drain(s.t.Context()))
	n, err := s.host.Store().Balance(s.t.Context(), owner(user), limit, *l.Bucket)
	require.NoError(s.t, err)
	return n
}

func (s *shipped) records(user string) []store.Record {
	s.t.Helper()
	require.NoError(s.t, s.host.Drain(s.t.Context()))
	records, err := s.host.Store().Records(s.t.Context(), owner(user))
	require.NoError(s.t, err)
	return records
}

// nothingLeft checks that no run, operation or lease is left open.
func (s *shipped) nothingLeft(users ...string) {
	s.t.Helper()
	runs, operations := s.host.Open()
	assert.Zero(s.t, runs)
	assert.Zero(s.t, operations)
	require.NoError(s.t, s.host.Drain(s.t.Context()))
	for _, user := range users {
		held, err := s.host.Store().Held(s.t.Context(), owner(user), "runs")
		require.NoError(s.t, err)
		assert.Zero(s.t, held, user)
	}
}

// meeting lets nobody pass before so many have come.
func meeting(n int) func(context.Context, time.Duration) error {
	var all sync.WaitGroup
	all.Add(n)
	return func(context.Context, time.Duration) error {
		all.Done()
		all.Wait()
		return nil
	}
}

func tokens(total int32) *demo.Usage { return &demo.Usage{Prompt: total, Total: total} }

// cutOffRuns is how many streams a test cuts off: 1,000, or what
// HOOKHOST_CASE_RUNS says.
func cutOffRuns(t *testing.T) int {
	text, set := os.LookupEnv("HOOKHOST_CASE_RUNS")
	if !set {
		return 1000
	}
	runs, err := strconv.Atoi(text)
	require.NoError(t, err, "HOOKHOST_CASE_RUNS")
	return runs
}

// The case asks for 10,000 runs, which HOOKHOST_CASE_RUNS=10000 makes. Without
// it there are 1,000.
func TestCase028NothingIsLeftOfStreamsThatWereCutOff(t *testing.T) {
	const each = 10
	all := cutOffRuns(t)
	require.GreaterOrEqual(t, all, each, "runs: one user makes %d", each)
	s := newShipped(t, plenty)
	m := &demo.Model{Repeat: true, Replies: []demo.Reply{{Chunks: []string{"one ", "two "}, Hang: true}}}
	r := s.tree(demo.Tree{Shape: demo.LLM, Model: m})
	var users []string
	for i := range all / each {
		users = append(users, fmt.Sprint("user-", i))
		for n := range each {
			demo.Run(t.Context(), r, demo.Turn{
				User: users[i], Session: fmt.Sprint(n), Text: "Hi", Stream: true,
				Each: func(*session.Event) bool { return false },
			})
		}
	}
	s.nothingLeft(users...)
	for _, user := range users {
		records := s.records(user)
		require.Len(t, records, each)
		for _, record := range records {
			assert.Equal(t, "cancelled", record.Outcome)
			assert.Nil(t, record.Tokens.Total)
		}
		assert.EqualValues(t, 60000-6000*each, s.left(user, "tokens"), "each estimate stays charged")
	}
}

// inTurn runs agents one after the other and goes on when one of them fails,
// as code that tries again does.
func inTurn(t *testing.T, agents ...agent.Agent) agent.Agent {
	t.Helper()
	a, err := agent.New(agent.Config{
		Name: "in_turn", SubAgents: agents,
		Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				for _, sub := range ctx.Agent().SubAgents() {
					for ev, err := range sub.Run(ctx) {
						if err != nil {
							break
						}
						if !yield(ev, nil) {
							return
						}
					}
				}
			}
		},
	})
	require.NoError(t, err)
	return a
}

func TestCase029RetriesStepsAndBranchesAddUp(t *testing.T) {
	s := newShipped(t, plenty)
	usage := func(prompt, candidates int32) *demo.Usage {
		return &demo.Usage{Prompt: prompt, Candidates: candidates, Total: prompt + candidates}
	}
	m := &demo.Model{Sleep: meeting(2), Replies: []demo.Reply{
		{Agent: "attempt_1", Error: "503 unavailable"},
		{Agent: "attempt_2", Calls: []demo.Call{{Name: "lookup", Args: map[string]any{"order": "A-1"}}}, Usage: usage(100, 20)},
		{Agent: "attempt_2", Text: "It has shipped.", Usage: usage(150, 30)},
		{Agent: "left", Text: "Left.", Usage: usage(200, 40), Delay: 1},
		{Agent: "right", Text: "Right.", Usage: usage(300, 60), Delay: 1},
		{Agent: "again", Text: "It still has.", Usage: usage(100, 20)},
	}}
	llm := func(name string) agent.Agent {
		a, err := llmagent.New(llmagent.Config{Name: name, Model: m.For(name), Tools: new(demo.Desk).Tools()})
		require.NoError(t, err)
		return a
	}
	branches, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{
		Name: "branches", SubAgents: []agent.Agent{llm("left"), llm("right")},
	}})
	require.NoError(t, err)
	_, err = s.sessions.Create(t.Context(), &session.CreateRequest{
		AppName: App, UserID: "ada", SessionID: "s", State: map[string]any{"idempotency_key": "ticket-7"},
	})
	require.NoError(t, err)

	out := demo.Run(t.Context(), s.runner(inTurn(t, llm("attempt_1"), llm("attempt_2"), branches)), demo.Turn{User: "ada", Session: "s", Text: "Hi"})
	require.NoError(t, out.Err())
	sums := summed(s.records("ada"))
	assert.Equal(t, []string{"5"}, sums["calls"], "four with usage, one attempt that failed")
	assert.ElementsMatch(t, []string{"error", "done", "done", "done", "done"}, sums["outcomes"])
	assert.Equal(t, []string{"750"}, sums["prompt"])
	assert.Equal(t, []string{"150"}, sums["candidates"])
	assert.Equal(t, []string{"900"}, sums["total"])
	assert.EqualValues(t, 99999, s.left("ada", "turn"), "one turn")
	assert.EqualValues(t, 60000-900, s.left("ada", "tokens"))

	out = demo.Run(t.Context(), s.runner(llm("again")), demo.Turn{User: "ada", Session: "s", Text: "Hi"})
	require.NoError(t, out.Err())
	all := s.records("ada")
	assert.Equal(t, []string{"1020"}, summed(all)["total"])
	assert.Len(t, all, 6)
	for _, record := range all {
		assert.Equal(t, "ticket-7", record.IdempotencyKey)
	}

	fresh, err := s.host.Store().Record(t.Context(), all[1])
	require.NoError(t, err)
	assert.False(t, fresh, "a record has an id: writing it again changes nothing")
	assert.Len(t, s.records("ada"), 6)
	s.nothingLeft("ada")
}

// In a parallel agent the failure of one branch cancels the others, so the one
// that fails does it after the other has answered.
func TestCase035BranchesOfOneRunDoNotSwap(t *testing.T) {
	for name, c := range map[string]struct {
		left demo.Reply
		want int64
	}{
		"B both answer":   {demo.Reply{Agent: "left", Text: "Left.", Usage: tokens(1000), Delay: last}, 50000},
		"C the one fails": {demo.Reply{Agent: "left", Error: "503 unavailable", Delay: last}, 51000},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShipped(t, plenty)
			met, answered := meeting(2), make(chan struct{})
			m := &demo.Model{
				Replies: []demo.Reply{c.left, {Agent: "right", Text: "Right.", Usage: tokens(9000), Delay: first}},
				Sleep: func(ctx context.Context, d time.Duration) error {
					if d == time.Duration(last) {
						defer func() { <-answered }()
					}
					return met(ctx, d)
				},
			}
			r := s.tree(demo.Tree{Shape: demo.Parallel, Model: m, Each: func(cfg *llmagent.Config) {
				if cfg.Name == "right" {
					cfg.AfterAgentCallbacks = []agent.AfterAgentCallback{func(agent.Context) (*genai.Content, error) {
						close(answered)
						return nil, nil
					}}
				}
			}})
			demo.Run(t.Context(), r, demo.Turn{User: "ada", Text: "Hi"})
			assert.EqualValues(t, c.want, s.left("ada", "tokens"))
			s.nothingLeft("ada")
		})
	}
}

// The delays of the branches: who answers first, and who last.
const first, last = demo.Duration(1), demo.Duration(2)

func TestCase035RunsOfManyUsersAtOnceDoNotSwap(t *testing.T) {
	const runs = 500
	s := newShipped(t, plenty)
	var running sync.WaitGroup
	gate := make(chan struct{}, 32)
	for _, i := range rand.Perm(runs) {
		running.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			m := &demo.Model{Replies: []demo.Reply{{Text: "Hello.", Usage: tokens(int32(i + 1))}}}
			root, err := demo.Agent(demo.LLM, m)
			if !assert.NoError(t, err) {
				return
			}
			out := demo.Run(t.Context(), s.runner(root), demo.Turn{User: fmt.Sprint(i), Text: "Hi"})
			assert.Equal(t, []string{"Hello."}, out.Texts())
		})
	}
	running.Wait()
	for i := range runs {
		assert.EqualValues(t, 60000-(i+1), s.left(fmt.Sprint(i), "tokens"), "a usage of zeros alone would be none")
	}
	s.nothingLeft()
}
