package host_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/session"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/chaintest"
	"github.com/hookhost/hookhost/host/demo"
)

// TestWarmCache compiles the shipped guests into the cache that all tests
// share. `make cache` runs it alone, without the race detector, under which
// compiling takes ten times as long.
func TestWarmCache(t *testing.T) {
	_, hooks, err := host.Inspect(t.Context(), filepath.Join("..", "hooks.toml"), host.Options{Dev: true, CacheDir: chaintest.CacheDir()})
	require.NoError(t, err, "the guests have to be built first: make guests")
	assert.Len(t, hooks, 3)
}

func TestRunsKeepTheChainThatTheyBeganWith(t *testing.T) {
	w := open(t, redactOnly, host.Options{}, demo.Reply{Chunks: []string{"card ", "4111 1111", " 1111 1111"}}, demo.Reply{Text: "a@example.com"})
	before := w.host.Manifest().Version
	var reloaded error
	seen := 0

	out := demo.Run(t.Context(), w.runner, demo.Turn{Text: "hi", Stream: true, Each: func(*session.Event) bool {
		if seen++; seen == 1 {
			write(t, filepath.Dir(w.path), redactOnly+"[stage.redact.config]\nentities = [\"email\"]\n")
			reloaded = w.host.Reload(t.Context())
		}
		return true
	}})

	require.NoError(t, out.Err())
	require.NoError(t, reloaded)
	assert.Equal(t, []string{before}, w.versions(), "the run that was going on")
	assert.Equal(t, []string{"card [CARD]"}, out.Texts())
	assert.NotEqual(t, before, w.host.Manifest().Version)
	assert.Equal(t, []string{"[EMAIL]"}, w.says("hi"))
	assert.Len(t, w.versions(), 2, "the next run is on the new chain")
}

func TestAReloadTakesThePlansToo(t *testing.T) {
	w := open(t, limitOnly, host.Options{}, demo.Reply{Text: "hello"})
	w.model.Repeat = true
	require.Equal(t, []string{"hello"}, w.saysTo("ada"))
	require.Contains(t, w.saysTo("ada")[0], "faster than your plan allows")
	plans := filepath.Join(filepath.Dir(w.path), "plans.toml")
	require.NoError(t, os.WriteFile(plans, []byte(oneTurn+`
[plan.more]
turn = { rate = "100/s", burst = 100 }
[override."ada"]
plan = "more"
`), 0o600))

	require.NoError(t, w.host.Reload(t.Context()))

	assert.Eventually(t, func() bool { return w.saysTo("ada")[0] == "hello" }, 5*time.Second, 10*time.Millisecond, "ada's override")
	assert.Equal(t, []string{"hello"}, w.saysTo("eve"))
	assert.Contains(t, w.saysTo("eve")[0], "faster than your plan allows", "all others have the plan they had")
}

func TestAnOverlayChangesModes(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, redactOnly)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "hooks.canary.toml"), []byte("[stage.redact]\nmode = \"shadow\"\n"), 0o600))

	h, err := host.Open(t.Context(), path, host.Options{Dev: true, Env: "canary", CacheDir: chaintest.CacheDir()})
	require.NoError(t, err)
	defer func() { require.NoError(t, h.Close(t.Context())) }()

	assert.Equal(t, chain.Shadow, h.Manifest().Stages[0].Spec.Mode)
}

func TestABadManifestLeavesTheRunningChainAlone(t *testing.T) {
	for name, text := range map[string]string{
		"syntax":     redactOnly + "[stage.redact\n",
		"policy":     redactOnly + "on_error = \"opne\"\n",
		"config":     redactOnly + "[stage.redact.config]\nentities = [\"crad\"]\n",
		"no module":  strings.ReplaceAll(redactOnly, "MODULE/redact", "gone.wasm"),
		"not Wasm":   strings.ReplaceAll(redactOnly, "MODULE/redact", "hooks.toml"),
		"over-reach": strings.ReplaceAll(redactOnly, "MODULE/redact", "MODULE/ratelimit"),
		"store":      redactOnly + "[store]\nnamespace = \"other\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, redactOnly, host.Options{}, demo.Reply{Text: "4111 1111 1111 1111"})
			before := w.host.Manifest().Version
			write(t, filepath.Dir(w.path), text)

			err := w.host.Reload(t.Context())

			require.Error(t, err)
			t.Log(err)
			assert.Equal(t, before, w.host.Manifest().Version)
			assert.Equal(t, []string{"[CARD]"}, w.says("hi"))
		})
	}
}

func TestAGuestsNoToItsConfigurationIsPlacedInTheManifest(t *testing.T) {
	path := write(t, t.TempDir(), redactOnly+"[stage.redact.config]\nentities = [\"card\", \"crad\"]\n")

	_, err := host.Open(t.Context(), path, host.Options{Dev: true, CacheDir: chaintest.CacheDir()})

	var at *manifest.Error
	require.ErrorAs(t, err, &at)
	assert.Equal(t, "redact", at.Stage)
	assert.Equal(t, 8, at.Line)
	assert.Contains(t, at.Msg, "crad")
}

func TestAnUnpinnedModuleNeedsDev(t *testing.T) {
	path := write(t, t.TempDir(), redactOnly)

	_, err := host.Open(t.Context(), path, host.Options{CacheDir: chaintest.CacheDir()})
	require.ErrorContains(t, err, "not pinned: run hookhost pin")

	_, err = manifest.Pin(path)
	require.NoError(t, err)
	h, err := host.Open(t.Context(), path, host.Options{CacheDir: chaintest.CacheDir()})
	require.NoError(t, err)
	require.NoError(t, h.Close(t.Context()))
}

func TestHangupReloads(t *testing.T) {
	w := open(t, redactOnly, host.Options{})
	before := w.host.Manifest().Version
	w.host.ReloadOnHangup()
	write(t, filepath.Dir(w.path), redactOnly+"mode = \"off\"\n")

	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))

	assert.Eventually(t, func() bool { return w.host.Manifest().Version != before }, 10*time.Second, time.Millisecond)
}

// closing fails when it is closed.
type closing struct {
	chain.Stage
	err error
}

func (c closing) Close(ctx context.Context) error { return errors.Join(c.Stage.Close(ctx), c.err) }

func TestCloseJoinsTheErrorsOfAllStages(t *testing.T) {
	broken := errors.New("broken")
	path := write(t, t.TempDir(), strings.Replace(redactOnly, `["redact"]`, `["redact", "other"]`, 1)+`
[stage.other]
module = "MODULE/redact"
role = "transformer"
`)
	h, err := host.Open(t.Context(), path, host.Options{Dev: true, CacheDir: chaintest.CacheDir(), Wrap: func(name string, s chain.Stage) chain.Stage {
		return closing{s, broken}
	}})
	require.NoError(t, err)

	err = h.Close(t.Context())

	require.ErrorIs(t, err, broken)
	assert.ErrorContains(t, err, "stage[redact] close")
	assert.ErrorContains(t, err, "stage[other] close")
	assert.ErrorIs(t, h.Reload(t.Context()), host.ErrClosed)
	assert.NoError(t, h.Close(t.Context()), "a second time")
}

func TestNothingGoesByAHostThatIsClosed(t *testing.T) {
	w := open(t, redactOnly, host.Options{}, demo.Reply{Text: "4111 1111 1111 1111"})
	require.NoError(t, w.host.Close(t.Context()))

	assert.Equal(t, []string{"The service is shutting down. Please try again shortly."}, w.says("hi"))
	assert.Empty(t, w.model.Requests(), "model calls")
}

func TestARunThatGoesOnAtTheCloseShowsNothingMore(t *testing.T) {
	w := open(t, redactOnly, host.Options{}, demo.Reply{Chunks: []string{"one ", "4111 1111 1111", " 1111"}})
	closed := false

	out := demo.Run(t.Context(), w.runner, demo.Turn{Text: "hi", Stream: true, Each: func(*session.Event) bool {
		if !closed {
			closed = true
			require.NoError(t, w.host.Close(t.Context()))
		}
		return true
	}})

	for _, text := range append(out.Chunks(), out.Texts()...) {
		assert.NotContains(t, text, "4111")
	}
}

func TestALimitWithoutNumbersIsSaid(t *testing.T) {
	w := open(t, strings.Replace(limitOnly, `"limit:turn"`, `"limit:trun"`, 1), host.Options{})

	assert.Contains(t, w.log.String(), "limit:trun stands in no table")
}

func TestPlansThatAreSeldomMeantSoAreSaid(t *testing.T) {
	w := openOn(t, oneTurn+"tokens = { rate = \"1/s\", burst = 100, estimate = 60 }\n", strings.Replace(limitOnly, "[limits]", "[limits]\nfan_out = 2", 1), host.Options{})
	warned := func() int {
		return strings.Count(w.log.String(), "level=WARN msg=\"the plans are seldom meant so\" rule=burst-below-fan-out")
	}
	assert.Equal(t, 1, warned(), "at the start")
	assert.NotContains(t, w.log.String(), "rule=unpinned", "which is for who writes the manifest")

	require.NoError(t, w.host.ReloadPlans())
	assert.Equal(t, 2, warned())
	require.NoError(t, w.host.Reload(t.Context()))
	assert.Equal(t, 3, warned())
}

func TestAHostLeavesNoGoroutine(t *testing.T) {
	path := write(t, t.TempDir(), redactOnly)
	before := runtime.NumGoroutine()

	h, err := host.Open(t.Context(), path, host.Options{Dev: true, CacheDir: chaintest.CacheDir()})
	require.NoError(t, err)
	require.NoError(t, h.Close(t.Context()))

	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	assert.LessOrEqual(t, runtime.NumGoroutine(), before)
}

func TestAStageThatDoesNotStartFollowsItsPolicy(t *testing.T) {
	text := `
version = 1
order = ["broken"]
[stage.broken]
module = "` + fixture(t, "exit_in_initialize") + `"
role = "transformer"
`
	path := write(t, t.TempDir(), text)
	_, err := host.Open(t.Context(), path, host.Options{Dev: true, CacheDir: chaintest.CacheDir()})
	require.ErrorContains(t, err, "stage[broken]", "closed refuses to start")

	w := open(t, text+"on_load_error = \"open\"\n", host.Options{}, demo.Reply{Text: "hello"})

	assert.Equal(t, []string{"hello"}, w.says("hi"), "open skips it")
	require.NotEmpty(t, w.steps)
	assert.Equal(t, chain.CauseLoad, w.steps[0].Cause)
	assert.Equal(t, abi.OnUserMessage, w.steps[0].Hook)
}

func fixture(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("wasm", "testdata", name+".wasm"))
	require.NoError(t, err)
	return path
}
