package host_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"

	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/chaintest"
	"github.com/hookhost/hookhost/host/demo"
	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/redis"
	"github.com/hookhost/hookhost/store/redis/redistest"
)

// What a process that is killed leaves behind. The tests run their own binary
// again, which then is such a process instead of a test.

const victimManifest, victimStore = "HOOKHOST_TEST_VICTIM_MANIFEST", "HOOKHOST_TEST_VICTIM_STORE"

func TestMain(m *testing.M) {
	var err error
	switch {
	case os.Getenv(victimManifest) != "":
		err = serveForEver(os.Getenv(victimManifest))
	case os.Getenv(victimStore) != "":
		err = liveForEver(os.Getenv(victimStore))
	default:
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// serveForEver runs a turn of ada's whose model never answers.
func serveForEver(path string) error {
	ctx := context.Background()
	h, err := host.Open(ctx, path, host.Options{Dev: true, CacheDir: chaintest.CacheDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	root, err := demo.Agent(demo.LLM, &demo.Model{Replies: []demo.Reply{{Hang: true}}})
	if err != nil {
		return err
	}
	r, err := runner.New(runner.Config{
		AppName: "app", Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{h.Plugin()}},
	})
	if err != nil {
		return err
	}
	return demo.Run(ctx, r, demo.Turn{User: "ada", Text: "hi"}).Err()
}

const shortExpiry = 900 * time.Millisecond

// liveForEver says that it lives, on the store at this URL.
func liveForEver(url string) error {
	ctx := context.Background()
	s, err := redis.Open(ctx, redis.Config{URL: url, Namespace: "shared"})
	if err != nil {
		return err
	}
	host.NewProcess(s, 1, shortExpiry).Run(ctx)
	return nil
}

// victim starts this binary as a process to be killed.
func victim(t *testing.T, env string) (kill func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), env)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	ended := false
	kill = func() {
		if !ended {
			ended = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(kill)
	return kill
}

func TestAKilledProcessIsCountedNoMore(t *testing.T) {
	server := oneServer()(t)
	s, err := redis.Open(t.Context(), redis.Config{URL: server.url, Namespace: "shared"})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	p := host.NewProcess(s, 1, shortExpiry)
	over := make(chan struct{})
	go func() { p.Run(ctx); close(over) }()
	defer func() { stop(); <-over; require.NoError(t, s.Close(context.WithoutCancel(t.Context()))) }()
	kill := victim(t, victimStore+"="+server.url)
	require.Eventually(t, func() bool { return p.Count() == 2 }, 20*time.Second, 10*time.Millisecond)

	kill()

	began := time.Now()
	require.Eventually(t, func() bool { return p.Count() == 1 }, 20*time.Second, 10*time.Millisecond)
	assert.Less(t, time.Since(began), 2*shortExpiry, "its lease and one heartbeat")
}

// The slots of a killed process come back when its leases lapse, which it
// renewed while it lived.
func TestTheRunsOfAKilledProcessEndWithTheirLeases(t *testing.T) {
	redistest.Require(t)
	b := oneServer()(t)
	w, _ := openOnRedis(t, b.url, "shared", "closed")
	held := func() int64 {
		n, err := w.host.Store().Held(context.WithoutCancel(t.Context()), ownerOf("ada"), "runs")
		require.NoError(t, err)
		return n
	}
	kill := victim(t, victimManifest+"="+w.path)
	require.Eventually(t, func() bool { return held() == 1 }, 20*time.Second, 10*time.Millisecond)
	time.Sleep(3 * time.Second)
	require.EqualValues(t, 1, held(), "beyond its expiry of two seconds")
	kill()
	began := time.Now()

	require.Eventually(t, func() bool { return held() == 0 }, 20*time.Second, 10*time.Millisecond)

	assert.Less(t, time.Since(began), 2500*time.Millisecond)
	n, err := w.host.Store().Balance(t.Context(), ownerOf("ada"), "tokens", store.Bucket{Units: 1, Per: 24 * time.Hour, Burst: 10000})
	require.NoError(t, err)
	assert.EqualValues(t, 9900, n, "the estimate of the model call that nobody settled stays charged")
}
