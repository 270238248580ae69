package host_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/chaintest"
	"github.com/hookhost/hookhost/host/demo"
	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/memory"
)

// What stands in the two files reaches the parts that it is about, and what
// the host does beside the runs is done. Where time passes it is that of a
// synctest bubble.

// watched is a store that can be away, hang or be closed, and tells.
type watched struct {
	store.Store
	away   atomic.Bool
	hangs  atomic.Bool // until the call's time is over
	deaf   atomic.Bool // hangs for a minute, whatever the call's time
	closed atomic.Int32
}

func newWatched() *watched { return &watched{Store: memory.New(nil)} }

func (s *watched) Admit(ctx context.Context, a store.Admission) (store.Decision, error) {
	switch {
	case s.away.Load():
		return store.Decision{}, store.ErrUnavailable
	case s.hangs.Load():
		<-ctx.Done()
		return store.Decision{}, ctx.Err()
	case s.deaf.Load():
		time.Sleep(time.Minute)
	}
	return s.Store.Admit(ctx, a)
}

func (s *watched) Free(ctx context.Context, l store.Lease) (bool, error) {
	if s.away.Load() {
		return false, store.ErrUnavailable
	}
	return s.Store.Free(ctx, l)
}

func (s *watched) Close(ctx context.Context) error {
	s.closed.Add(1)
	return s.Store.Close(ctx)
}

// hearing is a native stage that hears these hooks and goes on.
type hearing abi.HookSet

func (h hearing) Hooks() abi.HookSet { return abi.HookSet(h) }

func (h hearing) Call(context.Context, *abi.Event) (abi.Verdict, error) {
	return abi.Verdict{Kind: abi.Continue}, nil
}

func (h hearing) Close(context.Context) error { return nil }

const nativeOnly = `
version = 1
order = ["hearing"]
[stage.hearing]
role = "observer"
`

func hearingOf(hooks ...abi.Hook) map[string]chain.Stage {
	return map[string]chain.Stage{"hearing": hearing(abi.SetOf(hooks...))}
}

func TestALeaseOutlivesItsExpiryWhileItsRunGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := openOn(t, `
version = "test"
default = "free"
[plan.free]
runs = { max = 1, expires = "30s" }
`, limitOnly, host.Options{}, demo.Reply{Text: "hello", Delay: demo.Duration(10 * time.Minute)})
		w.model.Sleep = func(ctx context.Context, d time.Duration) error {
			time.Sleep(d)
			held, err := w.host.Store().Held(ctx, ownerOf("ada"), "runs")
			assert.EqualValues(t, 1, held, "after ten minutes")
			return err
		}

		assert.Equal(t, []string{"hello"}, w.saysTo("ada"))

		require.NoError(t, w.host.Drain(t.Context()))
		held, err := w.host.Store().Held(t.Context(), ownerOf("ada"), "runs")
		require.NoError(t, err)
		assert.Zero(t, held, "the run is over")
	})
}

func TestARunWithoutAnEndIsEndedWhenItIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, nativeOnly, host.Options{Native: hearingOf(abi.BeforeRun, abi.AfterRun)}, demo.Reply{Text: "hello"})
		message := genai.NewContentFromText("hi", genai.RoleUser)
		next, stop := iter.Pull2(w.runner.Run(t.Context(), "ada", "session", message, agent.RunConfig{}))
		defer stop()
		_, err, _ := next()
		require.NoError(t, err)

		time.Sleep(30 * time.Minute)
		runs, _ := w.host.Open()
		assert.Equal(t, 1, runs, "half an hour is not idle")
		time.Sleep(32 * time.Minute)

		runs, operations := w.host.Open()
		assert.Zero(t, runs)
		assert.Zero(t, operations)
		assert.Contains(t, w.lines(), "after_run hearing continue run ended")
		assert.Contains(t, w.log.String(), "ended runs that went idle")
	})
}

func TestWhatAGuestWritesIsLoggedOnlyWithOutput(t *testing.T) {
	for output, want := range map[bool]assert.ComparisonAssertionFunc{true: contains, false: lacks} {
		t.Run(fmt.Sprint(output), func(t *testing.T) {
			w := open(t, fmt.Sprintf(`
version = 1
order = ["prints"]
[stage.prints]
module = "FIXTURE/prints"
role = "observer"
output = %v
`, output), host.Options{}, demo.Reply{Text: "hello"})

			require.Equal(t, []string{"hello"}, w.says("hi"))

			want(t, w.log.String(), "guest: logged")
		})
	}
}

func contains(t assert.TestingT, s, part any, _ ...any) bool { return assert.Contains(t, s, part) }

func lacks(t assert.TestingT, s, part any, _ ...any) bool { return assert.NotContains(t, s, part) }

func TestAStageHasTheMemoryThatTheManifestGivesIt(t *testing.T) {
	text := `
version = 1
order = ["big"]
[stage.big]
module = "FIXTURE/big_memory"
role = "observer"
memory = "64MiB"
`
	w := open(t, text, host.Options{}, demo.Reply{Text: "hello"})
	assert.Equal(t, []string{"hello"}, w.says("hi"), "more than the default")

	_, err := host.Open(t.Context(), write(t, t.TempDir(), strings.Replace(text, "64MiB", "63MiB", 1)), host.Options{Dev: true, CacheDir: chaintest.CacheDir()})
	assert.ErrorContains(t, err, "needs more memory than the stage may have")
}

func TestAStageHasTheInstancesThatTheManifestGivesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newWatched()
		w := open(t, limitOnly+"pool = 1\n", host.Options{Store: shared}, demo.Reply{Text: "hello"})
		w.model.Repeat = true
		w.saysTo("the first") // ADK races where the first runs of a root overlap (fact 44)
		shared.deaf.Store(true)

		var both sync.WaitGroup
		for _, user := range []string{"ada", "eve"} {
			both.Go(func() { w.saysTo(user) })
		}
		both.Wait()

		assert.Contains(t, w.lines(), "before_run ratelimit failed pool_full closed", "the other one has the one instance")
	})
}

func TestACallToTheStoreTakesNoLongerThanTheManifestSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newWatched()
		shared.hangs.Store(true)
		w := open(t, limitOnly+"timeout = \"10s\"\n[store]\ntimeout = \"3s\"\n", host.Options{Store: shared})
		began := time.Now()

		w.saysTo("ada")

		assert.Equal(t, 3*time.Second, time.Since(began))
		assert.Contains(t, w.lines(), "before_run ratelimit failed store closed")
	})
}

// goesAway opens a host whose store goes away during the one turn that it
// plays.
func goesAway(t *testing.T) (*world, *watched) {
	shared := newWatched()
	w := openOn(t, `
version = "test"
default = "free"
[plan.free]
runs = { max = 1, expires = "30s" }
`, limitOnly, host.Options{Store: shared}, demo.Reply{Text: "hello", Delay: demo.Duration(time.Second)})
	w.model.Sleep = func(context.Context, time.Duration) error {
		shared.away.Store(true)
		return nil
	}
	require.Equal(t, []string{"hello"}, w.saysTo("ada"))
	return w, shared
}

func TestALeaseIsFreedWhenTheStoreIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, shared := goesAway(t)
		require.ErrorIs(t, w.host.Drain(t.Context()), store.ErrUnavailable)
		time.Sleep(10 * time.Second)
		shared.away.Store(false)
		time.Sleep(3 * time.Second) // the longest pause between two attempts is 2 s
		held, err := shared.Held(t.Context(), ownerOf("ada"), "runs")
		require.NoError(t, err)
		assert.Zero(t, held)
	})
}

func TestCloseSaysWhatTheStoreDidNotTakeInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, shared := goesAway(t)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		err := w.host.Close(ctx)
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.ErrorContains(t, err, "outbox: gave up 1 writes")
		assert.Equal(t, 5*time.Second, time.Since(began))
		assert.EqualValues(t, 1, shared.closed.Load(), "all the same")
	})
}

func TestAPlanInShadowRefusesNothing(t *testing.T) {
	w := openOn(t, strings.Replace(oneTurn, "[plan.free]", "[plan.free]\nmode = \"shadow\"", 1), limitOnly, host.Options{}, demo.Reply{Text: "hello"})
	w.model.Repeat = true

	for range 2 {
		assert.Equal(t, []string{"hello"}, w.saysTo("ada"))
	}

	assert.EqualValues(t, 1, w.balance(ownerOf("ada"), "turn"), "the real bucket")
	shadow := ownerOf("ada")
	shadow.Shadow = "ratelimit"
	assert.EqualValues(t, 0, w.balance(shadow, "turn"), "that of the shadow")
}

func TestARunNeedsRoomForItsTurn(t *testing.T) {
	w := openOn(t, `
version = "test"
default = "free"
[plan.free]
tokens = { rate = "1/day", burst = 100, estimate = 10, turn_estimate = 60 }
`, limitOnly, host.Options{}, demo.Reply{Text: "hello", Usage: &demo.Usage{Total: 50}})
	w.model.Repeat = true
	require.Equal(t, []string{"hello"}, w.saysTo("ada"))
	require.EqualValues(t, 50, w.balance(ownerOf("ada"), "tokens"))

	w.saysTo("ada")

	assert.Contains(t, w.lines(), "before_run ratelimit respond limit.tokens")
	assert.Len(t, w.model.Requests(), 1)
}

func TestTheLocalShareIsDividedByTheReplicas(t *testing.T) {
	shared := newWatched()
	shared.away.Store(true)
	w := openOn(t, strings.Replace(oneTurn, "burst = 1", "burst = 6", 1),
		limitOnly+"on_store_error = \"local\"\n[store]\nreplicas = 3\n", host.Options{Store: shared}, demo.Reply{Text: "hello"})
	w.model.Repeat = true

	for range 2 {
		assert.Equal(t, []string{"hello"}, w.saysTo("ada"))
	}
	assert.Contains(t, w.saysTo("ada")[0], "faster than your plan allows")
}

// goldenOnly is a chain of the golden guest, which imports every family of
// functions and so needs a grant of each.
const goldenOnly = `
version = 1
order = ["golden"]
[limits]
plans = "plans.toml"
[stage.golden]
module = "MODULE/golden"
role = "responder"
hooks = ["on_user_message"]
grants = [
  "limit:turn", "limit:calls:app", "limit:calls:global", "usage:write", "kv:cache", "claim:job", "secret:pii",
]
[stage.golden.secrets]
pii = "env:HOOKHOST_TEST_SECRET"
`

// openGolden opens a host on goldenOnly, whose secret is "key".
func openGolden(t *testing.T, plans string) *world {
	t.Helper()
	t.Setenv("HOOKHOST_TEST_SECRET", "key")
	w := openOn(t, plans, goldenOnly, host.Options{}, demo.Reply{Text: "hello"})
	w.model.Repeat = true
	return w
}

func TestALimitOfTheAppIsSharedByItsUsers(t *testing.T) {
	w := openGolden(t, oneTurn+`
[app]
calls = { rate = "1/day", burst = 1 }
[global]
calls = { rate = "1/day", burst = 1 }
`)

	for _, scope := range []string{"app", "global"} {
		take := "take|calls:" + scope + "|1"
		assert.Equal(t, []string{"admitted open"}, w.tells("ada", take), scope)
		denied := w.tells("eve", take)
		require.Len(t, denied, 1)
		assert.Contains(t, denied[0], "denied calls:"+scope)
	}
	assert.Equal(t, []string{"admitted open"}, w.tells("ada", "take|turn|1"))
	assert.Equal(t, []string{"admitted open"}, w.tells("eve", "take|turn|1"), "a user's own is not shared")
}

func TestAGuestComputesWithASecretByItsName(t *testing.T) {
	w := openGolden(t, oneTurn)
	mac := hmac.New(sha256.New, []byte("key"))
	mac.Write([]byte("ada@example.com"))

	assert.Equal(t, []string{hex.EncodeToString(mac.Sum(nil))}, w.tells("ada", "hmac|pii|ada@example.com"))
}

// A guest's numbers are whole: what is no number never gets over the border.
func TestCase018BadNumbersOfAGuestChangeNothing(t *testing.T) {
	w := openGolden(t, strings.Replace(oneTurn, "burst = 1", "burst = 100", 1))
	var left int64 = 100
	for _, bad := range []string{"-2", "-50", "-9223372036854775808", "1000000000000001", "9223372036854775807"} {
		assert.Equal(t, []string{"bad argument"}, w.tells("ada", "take|turn|"+bad), "a cost of %s", bad)
		require.Equal(t, left, w.balance(ownerOf("ada"), "turn"))

		assert.Equal(t, []string{"admitted open"}, w.tells("ada", "take|turn|1"))
		left--
		require.Equal(t, left, w.balance(ownerOf("ada"), "turn"), "one less, and no other change")
	}
	for _, bad := range []string{"-1", "-50", "1000000000000001"} {
		assert.Equal(t, []string{"admitted open", "bad argument", "ok"}, w.tells("ada", "take|turn|1", "settle|"+bad, "settle|1"), "a settlement with %s", bad)
		left--
		require.Equal(t, left, w.balance(ownerOf("ada"), "turn"), "what was charged stands")
	}
	assert.Equal(t, []string{"admitted closed"}, w.tells("ada", "take|turn|0"), "a look")
	assert.Equal(t, left, w.balance(ownerOf("ada"), "turn"))
}

func TestTheLogSaysAtTheStartWhatTheHostDoesNotSee(t *testing.T) {
	w := open(t, redactOnly, host.Options{})

	for _, road := range host.Roads() {
		assert.Contains(t, w.log.String(), road)
	}
	assert.Contains(t, w.log.String(), "the user id is trusted")
}

func TestCloseClosesTheStore(t *testing.T) {
	shared := newWatched()
	w := open(t, nativeOnly, host.Options{Store: shared, Native: hearingOf(abi.BeforeRun)})
	require.Zero(t, shared.closed.Load())

	require.NoError(t, w.host.Close(t.Context()))

	assert.EqualValues(t, 1, shared.closed.Load())
}

// counted counts how often it is closed.
type counted struct {
	chain.Stage
	closed atomic.Int32
}

func (c *counted) Close(ctx context.Context) error {
	c.closed.Add(1)
	return c.Stage.Close(ctx)
}

func TestAReplacedChainIsClosedAfterItsLastRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var built []*counted
		w := open(t, nativeOnly, host.Options{Native: hearingOf(abi.BeforeRun), Wrap: func(_ string, s chain.Stage) chain.Stage {
			built = append(built, &counted{Stage: s})
			return built[len(built)-1]
		}}, demo.Reply{Text: "hello"})

		out := demo.Run(t.Context(), w.runner, demo.Turn{Text: "hi", Each: func(*session.Event) bool {
			write(t, filepath.Dir(w.path), nativeOnly)
			require.NoError(t, w.host.Reload(t.Context()))
			synctest.Wait()
			assert.Zero(t, built[0].closed.Load(), "the run goes on")
			return true
		}})

		require.Equal(t, []string{"hello"}, out.Texts())
		require.Len(t, built, 2)
		synctest.Wait()
		assert.EqualValues(t, 1, built[0].closed.Load())
		assert.Zero(t, built[1].closed.Load(), "the chain of the runs to come")
	})
}
