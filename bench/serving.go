package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"

	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/demo"
)

const app = "app"

// The manifest has the shipped limiter alone, with a single instance.
const manifest = `
version = 1
order = ["ratelimit"]
[store]
url = %q
namespace = "bench"
timeout = "10s"
[limits]
plans = "plans.toml"
[stage.ratelimit]
module = %q
role = "responder"
grants = ["limit:turn", "limit:tokens", "limit:runs"]
timeout = "5m"
pool = 1
`

// openHost opens a host on a Redis.
func openHost(l *lab, s settings, url, plans string, clock chain.Clock) *host.Host {
	module, err := filepath.Abs(filepath.Join(s.guests, "ratelimit", "ratelimit.wasm"))
	require.NoError(l, err)
	_, err = os.Stat(module)
	require.NoError(l, err, "the guests have to be built first: make guests")
	dir := l.TempDir()
	path := filepath.Join(dir, "hooks.toml")
	require.NoError(l, os.WriteFile(path, fmt.Appendf(nil, manifest, url, module), 0o600))
	require.NoError(l, os.WriteFile(filepath.Join(dir, "plans.toml"), []byte(plans), 0o600))
	h, err := host.Open(l.ctx, path, host.Options{
		Dev: true, CacheDir: os.Getenv("HOOKHOST_TEST_CACHE"), Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Clock: clock,
	})
	require.NoError(l, err)
	l.Cleanup(func() {
		if err := h.Close(l.ctx); err != nil {
			l.Errorf("closing the host: %v", err)
		}
	})
	return h
}

// newRunner runs an agent that says hello, behind a plugin, with sessions of its
// own.
func newRunner(l *lab, p *plugin.Plugin) *runner.Runner {
	m := &demo.Model{Repeat: true, Replies: []demo.Reply{{Text: "Hello.", Usage: &demo.Usage{Prompt: 20, Candidates: 2, Total: 22}}}}
	root, err := demo.Agent(demo.LLM, m)
	require.NoError(l, err)
	r, err := runner.New(runner.Config{
		AppName: app, Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{p}},
	})
	require.NoError(l, err)
	return r
}
