package wasm

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/host/internal/fake"
	"github.com/hookhost/hookhost/store"
)

// cacheDir keeps compiled fixtures for all the tests: in a race binary
// compiling takes ten times as long.
var cacheDir string

func TestMain(m *testing.M) {
	cacheDir = os.Getenv("HOOKHOST_TEST_CACHE")
	if cacheDir != "" {
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "hookhost-wasm-test")
	if err != nil {
		panic(err)
	}
	cacheDir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// bench is a host around one stage.
type bench struct {
	t        testing.TB
	cfg      Config
	runtime  *Runtime
	store    *fake.Store
	services *hostfn.Services
	log      *bytes.Buffer
	stage    *Stage
}

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	module, err := os.ReadFile(filepath.Join("testdata", name+".wasm"))
	require.NoError(t, err)
	return module
}

func newBench(t testing.TB, name string) *bench {
	b := &bench{t: t, store: fake.NewStore(), log: &bytes.Buffer{}}
	log := slog.New(slog.NewTextHandler(b.log, nil))
	b.runtime = New(Options{CacheDir: cacheDir, Log: log})
	b.services = &hostfn.Services{
		Store: b.store,
		Plans: fake.Plans{"turn": {Bucket: &store.Bucket{Units: 1, Per: time.Second, Burst: 100}}},
		Log:   log,
	}
	// The limit is wide: it is there for what loops, and tests run beside others.
	b.cfg = Config{Name: "probe", Module: fixture(t, name), Timeout: 5 * time.Second, Memory: 4 << 20, Pool: 2}
	return b
}

func (b *bench) granted(grants ...string) *bench {
	for _, text := range grants {
		g, ok := abi.ParseGrant(text)
		require.True(b.t, ok, text)
		b.cfg.Grants = append(b.cfg.Grants, g)
	}
	return b
}

func (b *bench) within(timeout time.Duration) *bench {
	b.cfg.Timeout = timeout
	return b
}

func (b *bench) pool(size int) *bench {
	b.cfg.Pool = size
	return b
}

func (b *bench) set(key, text string) *bench {
	b.cfg.Config = append(b.cfg.Config, hostfn.Setting{Key: key, Text: text})
	return b
}

// loads the stage, which must work.
func (b *bench) loads() *bench {
	b.t.Helper()
	var err error
	b.stage, err = b.runtime.Load(b.t.Context(), b.cfg, b.services)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { require.NoError(b.t, b.stage.Close(context.Background())) })
	return b
}

// refuses to load the stage.
func (b *bench) refuses() error {
	b.t.Helper()
	_, err := b.runtime.Load(b.t.Context(), b.cfg, b.services)
	require.Error(b.t, err)
	var load *LoadError
	require.ErrorAs(b.t, err, &load)
	require.Equal(b.t, "probe", load.Stage)
	require.Zero(b.t, b.runtime.cache.InUse(), "the code of a module that did not load is freed")
	return err
}

// event is a before_model, by an agent of that name.
func event(agent string) *abi.Event {
	return &abi.Event{
		Hook: abi.BeforeModel, Of: abi.OpModel, Op: fake.NewScope("op-1"), Run: fake.NewScope("run-1"),
		App: "app", User: "user", Agent: agent,
	}
}

func (b *bench) call(agent string) (abi.Verdict, error) {
	return b.stage.Call(b.t.Context(), event(agent))
}

// fails expects one call to fail with a cause and gives the error.
func (b *bench) fails(cause chain.Cause) error {
	b.t.Helper()
	_, err := b.call("a")
	requireCause(b.t, cause, err)
	return err
}

func requireCause(t testing.TB, cause chain.Cause, err error) {
	t.Helper()
	var f *chain.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, cause, f.Cause, "%v", err)
	require.ErrorIs(t, err, chain.ErrFailed)
}

func (b *bench) answers(text string) {
	b.t.Helper()
	v, err := b.call("a")
	require.NoError(b.t, err)
	require.Equal(b.t, abi.Respond, v.Kind)
	require.Equal(b.t, text, v.Answer.Text)
}

func ownerOf(app, user string) store.Owner {
	return store.Owner{Kind: store.OwnerUser, App: app, User: user}
}
