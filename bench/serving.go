package main

import (
	"fmt"
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

// openHost opens a host with that manifest on a Redis.
func openHost(l *lab, s settings, url, plans string, clock chain.Clock) *host.Host {
	path := writeManifest(l, fmt.Sprintf(manifest, url, shipped(l, s, "ratelimit")), plans)
	return openManifest(l, path, host.Options{Clock: clock})
}

// shipped is the module of a guest that ships.
func shipped(l *lab, s settings, guest string) string {
	module, err := filepath.Abs(filepath.Join(s.guests, guest, guest+".wasm"))
	require.NoError(l, err)
	_, err = os.Stat(module)
	require.NoError(l, err, "the guests have to be built first: make guests")
	return module
}

// writeManifest writes a manifest, and plans beside it.
func writeManifest(l *lab, manifest, plans string) (path string) {
	dir := l.TempDir()
	path = filepath.Join(dir, "hooks.toml")
	require.NoError(l, os.WriteFile(path, []byte(manifest), 0o600))
	require.NoError(l, os.WriteFile(filepath.Join(dir, "plans.toml"), []byte(plans), 0o600))
	return path
}

func openManifest(l *lab, path string, o host.Options) *host.Host {
	o.Dev, o.CacheDir, o.Log = true, os.Getenv("HOOKHOST_TEST_CACHE"), quiet
	h, err := host.Open(l.ctx, path, o)
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
