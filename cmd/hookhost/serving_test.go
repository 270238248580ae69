package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/redis/redistest"
)

// process runs the command line in a process of its own.
func process(t *testing.T, dir string, args ...string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Args = append([]string{"hookhost"}, args...) // TestMain runs the command by its name
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	require.NoError(t, cmd.Run(), out.String())
	return out.String()
}

// onRedis writes a manifest without stages on a server, and its plans.
func onRedis(t *testing.T, url, timeout string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"hooks.toml": fmt.Sprintf("version = 1\norder = []\n[store]\nurl = %q\nnamespace = \"n\"\ntimeout = %q\n[limits]\nplans = \"plans.toml\"\n", url, timeout),
		"plans.toml": "version = \"v1\"\ndefault = \"free\"\n[plan.free]\nturn = { rate = \"1/day\", burst = 3 }\n[plan.pro]\nturn = { rate = \"1/day\", burst = 50 }\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// A host that serves follows what another process sets, within the time that
// the command promises; and show says at once what was set.
func TestLimitsAreSetWhileAHostServes(t *testing.T) {
	dir := onRedis(t, redistest.Single(t).URL(), "200ms")
	h, err := host.Open(t.Context(), filepath.Join(dir, "hooks.toml"), host.Options{Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer func() { require.NoError(t, h.Close(t.Context())) }()
	planIs := func(want string) {
		t.Helper()
		// 2 seconds, and what a busy machine adds.
		require.Eventually(t, func() bool { return h.PlanOf(t.Context(), "support", "ada").Name == want }, 4*time.Second, 20*time.Millisecond)
	}
	planIs("free")

	process(t, dir, "limits", "set", "ada", "--plan", "pro", "--note", "incident 118", "--author", "kim")
	assert.Contains(t, process(t, dir, "limits", "show", "ada"), "is on plan pro")
	planIs("pro")
	assert.Equal(t, host.FromStore, h.PlanOf(t.Context(), "support", "ada").Source)

	process(t, dir, "limits", "reset", "ada")
	planIs("free")
}

// Nobody's turn waits for an operator, who gets more time than a turn does.
func TestOperatorsHaveMoreTimeThanTurns(t *testing.T) {
	server := redistest.Single(t)
	wire := redistest.Proxy(t, server.Addr)
	wire.Delay(100 * time.Millisecond)
	dir := onRedis(t, "redis://"+wire.Addr, "20ms")

	process(t, dir, "limits", "set", "ada", "--plan", "pro", "--note", "incident 118", "--author", "kim")
	assert.Contains(t, process(t, dir, "limits", "show", "ada"), "is on plan pro")
}

// What many users did is read as a whole.
func TestTopOfManyUsers(t *testing.T) {
	const users = 3000
	dir := onRedis(t, redistest.Single(t).URL(), "500ms")
	h, err := host.Open(t.Context(), filepath.Join(dir, "hooks.toml"), host.Options{Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	now, total := time.Now(), int64(0)
	for i := range users {
		total = int64(i)
		_, err := h.Store().Record(t.Context(), store.Record{
			ID: fmt.Sprint(i), App: "support", User: fmt.Sprint("user-", i), Plan: "free", Time: now, Turn: true, Tokens: store.Tokens{Total: &total},
		})
		require.NoError(t, err)
	}
	require.NoError(t, h.Close(t.Context()))

	assert.Regexp(t, `(?m)^user-2999 +support +free +2999 +1 `, process(t, dir, "limits", "top", "-n", "3"))
	suggested := process(t, dir, "limits", "suggest", "--plan", "free")
	assert.Contains(t, suggested, "# the last 7d, 3000 users\n")
	assert.Contains(t, suggested, "# 95% of 3000 user-minutes with a turn had at most 1 turn; times 2.5\n")
	assert.Contains(t, suggested, `turn = { rate = "3/min", burst = 3 }`)
	assert.NotContains(t, suggested, "too little")
}
