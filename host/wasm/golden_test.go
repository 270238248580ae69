package wasm

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/golden"
	sdk "github.com/hookhost/hookhost/abi/guest"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/host/internal/fake"
	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/memory"
	"github.com/hookhost/hookhost/store/storetest"
)

// What a native guest calls and what a compiled one imports is one thing.
var _ sdk.Host = (*hostfn.Call)(nil)

// TestGoldenCompiled runs the golden cases, which abi/golden runs natively,
// through the guest as it is compiled for the sandbox.
func TestGoldenCompiled(t *testing.T) {
	module := compiledGolden(t)
	for _, c := range golden.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			stage := goldenStage(t, module)
			ev := c.Event
			ev.Op, ev.Run = fake.NewScope(golden.OpID), fake.NewScope(golden.RunID)
			values := map[string]any{}
			for pointer, doc := range c.Documents {
				values[pointer] = json.RawMessage(doc)
			}
			ev.Subject = &fake.Subject{Texts: c.AllLeaves(), Values: values}

			verdict, err := stage.Call(t.Context(), &ev)

			if c.Bad || c.Want.Kind == abi.Fail {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.Want, verdict)
		})
	}
}

func compiledGolden(t *testing.T) []byte { return compiled(t, "abi/golden/guest") }

// compiled builds a Go guest of this module.
func compiled(t testing.TB, folder string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "guest.wasm")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-trimpath", "-o", path, "../../"+folder)
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	module, err := os.ReadFile(path)
	require.NoError(t, err)
	return module
}

func goldenStage(t *testing.T, module []byte) *Stage {
	t.Helper()
	services := &hostfn.Services{
		Store: memory.New(storetest.NewClock()),
		Plans: fake.Plans{
			"turn":   {Bucket: &store.Bucket{Units: 1, Per: time.Minute, Burst: 1}},
			"tokens": {Bucket: &store.Bucket{Units: 1000, Per: time.Second, Burst: 1000}, Estimate: hostfn.Estimate{By: hostfn.Fixed, Units: 600}, MaxWait: 2 * time.Second},
			"runs":   {Cap: &store.Cap{Max: 1, Expires: 30 * time.Second}},
		},
	}
	cfg := Config{Name: golden.Stage, Module: module, Timeout: 5 * time.Second, Secrets: map[string][]byte{"pii": []byte(golden.Secret)}}
	for _, key := range slices.Sorted(maps.Keys(golden.Config())) {
		cfg.Config = append(cfg.Config, hostfn.Setting{Key: key, Text: golden.Config()[key]})
	}
	for _, name := range golden.Grants() {
		grant, ok := abi.ParseGrant(name)
		require.True(t, ok, name)
		cfg.Grants = append(cfg.Grants, grant)
	}
	stage, err := New(Options{CacheDir: cacheDir, Log: slog.New(slog.DiscardHandler)}).Load(t.Context(), cfg, services)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stage.Close(context.WithoutCancel(t.Context()))) })
	return stage
}
