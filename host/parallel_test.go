package host_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/agent/workflowagents/parallelagent"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"

	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/demo"
)

const branches = 8

// abreast puts an agent before the host whose branches call the model at the
// same time.
func (w *world) abreast() {
	w.t.Helper()
	cfg := agent.Config{Name: "panel"}
	for i := range branches {
		name := fmt.Sprint("branch_", i)
		branch, err := llmagent.New(llmagent.Config{Name: name, Model: w.model.For(name)})
		require.NoError(w.t, err)
		cfg.SubAgents = append(cfg.SubAgents, branch)
	}
	root, err := parallelagent.New(parallelagent.Config{AgentConfig: cfg})
	require.NoError(w.t, err)
	w.runner, err = runner.New(runner.Config{
		AppName: "app", Agent: root, SessionService: w.sessions, AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{w.host.Plugin()}},
	})
	require.NoError(w.t, err)
}

// Each call has its own estimate reserved while it goes on, so that branches
// that begin at once cannot spend the same tokens.
func TestParallelBranchesReserveAnEstimateEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := openOn(t, `
version = "test"
default = "free"
[plan.free]
tokens = { rate = "1/day", burst = 1000, estimate = 100 }
`, limitOnly, host.Options{}, demo.Reply{Text: "hello", Usage: &demo.Usage{Total: 30}, Delay: demo.Duration(time.Second)})
		w.model.Repeat = true
		w.abreast()
		limit, _ := w.host.Limit(t.Context(), "app", "ada", "tokens")
		var calling atomic.Int32
		w.model.Sleep = func(ctx context.Context, d time.Duration) error {
			calling.Add(1)
			time.Sleep(d)
			assert.EqualValues(t, branches, calling.Load(), "all at once")
			left, err := w.host.Store().Balance(ctx, ownerOf("ada"), "tokens", *limit.Bucket)
			assert.EqualValues(t, 1000-branches*100, left)
			time.Sleep(d)
			return err
		}

		assert.Len(t, w.saysTo("ada"), branches)

		assert.EqualValues(t, 1000-branches*30, w.balance(ownerOf("ada"), "tokens"), "each is settled by what it used")
	})
}
