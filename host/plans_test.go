package host_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/demo"
	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/memory"
)

// manyPlans has every source of a plan that a file can have.
const manyPlans = `
version = "v1"
default = "free"
claim = "tier"
[users]
"listed" = "users"
"claims" = "users"
"both" = "users"
"set" = "users"
[plan.free]
turn = { rate = "1/day", burst = 1 }
[plan.users]
turn = { rate = "1/day", burst = 2 }
[plan.claim]
turn = { rate = "1/day", burst = 3 }
[plan.file]
turn = { rate = "1/day", burst = 4 }
[plan.store]
turn = { rate = "1/day", burst = 5 }
[override."both"]
plan = "file"
note = "incident 118"
[override."set"]
plan = "file"
[override."elsewhere"]
plan = "file"
app = "another"
`

const hearsNothing = nativeOnly + `
[limits]
plans = "plans.toml"
`

func onPlans(t *testing.T, plans string, o host.Options) *world {
	t.Helper()
	o.Native = hearingOf(abi.BeforeRun)
	return openOn(t, plans, hearsNothing, o)
}

func claiming(ctx context.Context, tier string) context.Context {
	return host.WithClaims(ctx, map[string]string{"tier": tier, "plan": "store"})
}

func TestWhatPutsAUserOnAPlan(t *testing.T) {
	shared := memory.New(nil)
	for _, o := range []store.Override{
		{User: "set", Plan: "store", Author: "kim", Note: "incident 7"},
		{App: "another", User: "listed", Plan: "store"},
		{User: "ended", Plan: "store", Until: time.Now().Add(-time.Second)},
		{User: "unknown", Plan: "gold"},
		{App: "app", User: "here", Plan: "store"},
		{User: "here", Plan: "file"},
	} {
		require.NoError(t, shared.SetOverride(t.Context(), o))
	}
	w := onPlans(t, manyPlans, host.Options{Store: shared})
	for name, c := range map[string]struct {
		user, tier string
		want       host.UserPlan
	}{
		"nothing":                             {user: "ada", want: host.UserPlan{Name: "free", Source: host.FromDefault}},
		"the list of users":                   {user: "listed", want: host.UserPlan{Name: "users", Source: host.FromUsers}},
		"a claim":                             {user: "ada", tier: "claim", want: host.UserPlan{Name: "claim", Source: host.FromClaim}},
		"a claim before the list":             {user: "claims", tier: "claim", want: host.UserPlan{Name: "claim", Source: host.FromClaim}},
		"a claim of a plan that is none":      {user: "claims", tier: "gold", want: host.UserPlan{Name: "users", Source: host.FromUsers}},
		"the file before a claim":             {user: "both", tier: "claim", want: host.UserPlan{Name: "file", Source: host.FromFile, Note: "incident 118"}},
		"the file, for another app":           {user: "elsewhere", want: host.UserPlan{Name: "free", Source: host.FromDefault}},
		"the store before all":                {user: "set", tier: "claim", want: host.UserPlan{Name: "store", Source: host.FromStore, Author: "kim", Note: "incident 7"}},
		"the store, that was over":            {user: "ended", want: host.UserPlan{Name: "free", Source: host.FromDefault}},
		"the store, with a plan that is none": {user: "unknown", tier: "claim", want: host.UserPlan{Name: "claim", Source: host.FromClaim}},
		"the store, for this app before all":  {user: "here", want: host.UserPlan{Name: "store", Source: host.FromStore}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if c.tier != "" {
				ctx = claiming(ctx, c.tier)
			}

			assert.Equal(t, c.want, w.host.PlanOf(ctx, "app", c.user))

			limit, defined := w.host.Limit(ctx, "app", c.user, "turn")
			require.True(t, defined)
			assert.Equal(t, c.want.Name, limit.Plan, "the numbers are the plan's")
			assert.EqualValues(t, map[string]int64{"free": 1, "users": 2, "claim": 3, "file": 4, "store": 5}[c.want.Name], limit.Bucket.Burst)
		})
	}
}

func TestAPlanThatIsNoneIsSaidOnce(t *testing.T) {
	w := onPlans(t, manyPlans, host.Options{})
	for range 3 {
		w.host.PlanOf(claiming(t.Context(), "gold"), "app", "ada-the-user")
		w.host.PlanOf(claiming(t.Context(), "silver"), "app", "ada-the-user")
	}
	for i := range 1000 {
		w.host.PlanOf(claiming(t.Context(), fmt.Sprint("odd-", i)), "app", "ada-the-user")
	}

	assert.Equal(t, 1, strings.Count(w.log.String(), "plan=gold from=claim plans=v1"))
	assert.Equal(t, 1, strings.Count(w.log.String(), "plan=silver"))
	assert.LessOrEqual(t, strings.Count(w.log.String(), "no such plan"), 100, "a claim can hold anything")
	assert.NotContains(t, w.log.String(), "ada-the-user")
}

func TestAnOverrideInTheStoreHoldsWithinTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memory.New(nil)
		w := onPlans(t, manyPlans, host.Options{Store: shared})
		on := func() string { return w.host.PlanOf(t.Context(), "app", "ada").Name }
		require.Equal(t, "free", on())

		until := time.Now().Add(time.Hour)
		require.NoError(t, shared.SetOverride(t.Context(), store.Override{User: "ada", Plan: "store", Until: until}))
		time.Sleep(2*time.Second + time.Millisecond)
		assert.Equal(t, "store", on())

		require.NoError(t, shared.SetOverride(t.Context(), store.Override{User: "ada"}))
		time.Sleep(2*time.Second + time.Millisecond)
		assert.Equal(t, "free", on(), "taken back")

		require.NoError(t, shared.SetOverride(t.Context(), store.Override{User: "ada", Plan: "store", Until: until}))
		time.Sleep(time.Until(until) - time.Millisecond)
		assert.Equal(t, "store", on())
		time.Sleep(time.Millisecond)
		assert.Equal(t, "free", on(), "over")
	})
}

// forgetful is a store that can fail to tell overrides.
type forgetful struct {
	store.Store
	mu  sync.Mutex
	err error
}

func (f *forgetful) fails(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *forgetful) Overrides(ctx context.Context, since string) (store.OverrideChanges, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return store.OverrideChanges{}, f.err
	}
	return f.Store.Overrides(ctx, since)
}

func TestOverridesStayWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &forgetful{Store: memory.New(nil)}
		require.NoError(t, shared.SetOverride(t.Context(), store.Override{User: "ada", Plan: "store"}))
		w := onPlans(t, manyPlans, host.Options{Store: shared})
		shared.fails(store.ErrUnavailable)
		time.Sleep(time.Hour)

		assert.Equal(t, host.FromStore, w.host.PlanOf(t.Context(), "app", "ada").Source)

		require.NoError(t, shared.SetOverride(t.Context(), store.Override{User: "ada"}))
		shared.fails(nil)
		time.Sleep(2*time.Second + time.Millisecond)
		assert.Equal(t, host.FromDefault, w.host.PlanOf(t.Context(), "app", "ada").Source)
	})
}

func TestAHostStartsWithoutOverridesWhereTheStoreIsAway(t *testing.T) {
	shared := &forgetful{Store: memory.New(nil), err: errors.New("gone")}

	w := onPlans(t, manyPlans, host.Options{Store: shared})

	assert.Equal(t, host.FromDefault, w.host.PlanOf(t.Context(), "app", "ada").Source)
}

// curious is a native stage that hears every hook and asks which plan its user
// is on there.
type curious struct {
	host *host.Host

	mu    sync.Mutex
	heard map[abi.Hook]map[host.PlanSource]int
}

func (c *curious) Hooks() abi.HookSet { return abi.AllHooks }

func (c *curious) Call(ctx context.Context, ev *abi.Event) (abi.Verdict, error) {
	source := c.host.PlanOf(ctx, ev.App, ev.User).Source
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heard[ev.Hook] == nil {
		c.heard[ev.Hook] = map[host.PlanSource]int{}
	}
	c.heard[ev.Hook][source]++
	return abi.Verdict{Kind: abi.Continue}, nil
}

func (c *curious) Close(context.Context) error { return nil }

// at counts the calls of a hook.
func (c *curious) at(h abi.Hook) (calls int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.heard[h] {
		calls += n
	}
	return calls
}

// sources are the ones that were met, over all hooks.
func (c *curious) sources() map[host.PlanSource]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	met := map[host.PlanSource]bool{}
	for _, sources := range c.heard {
		for source := range sources {
			met[source] = true
		}
	}
	return met
}

// openCurious is a host with a curious stage alone.
func openCurious(t *testing.T, replies ...demo.Reply) (*world, *curious) {
	t.Helper()
	stage := &curious{heard: map[abi.Hook]map[host.PlanSource]int{}}
	w := openOn(t, manyPlans, strings.ReplaceAll(hearsNothing, "hearing", "curious"), host.Options{Native: map[string]chain.Stage{"curious": stage}}, replies...)
	stage.host = w.host
	return w, stage
}

// The context that the runner is called with reaches every hook: ADK derives
// its own from it.
func TestClaimsReachEveryHook(t *testing.T) {
	w, stage := openCurious(t,
		demo.Reply{Calls: []demo.Call{{Name: "lookup", Args: map[string]any{"order": "A-1"}}, {Name: "ledger", Args: map[string]any{"order": "A-1"}}}},
		demo.Reply{Chunks: []string{"one ", "two"}},
		demo.Reply{Text: "left"}, demo.Reply{Text: "right"},
		demo.Reply{Text: "first"}, demo.Reply{Text: "second"},
		demo.Reply{Err: errors.New("down")},
	)
	ctx := claiming(t.Context(), "claim")
	for _, turn := range []struct {
		shape  demo.Shape
		stream bool
	}{{demo.LLM, true}, {demo.Parallel, false}, {demo.Workflow, false}, {demo.LLM, false}} {
		root, err := demo.Agent(turn.shape, w.model, new(demo.Desk).Tools()...)
		require.NoError(t, err)
		r, err := runner.New(runner.Config{
			AppName: "app", Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true,
			PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{w.host.Plugin()}},
		})
		require.NoError(t, err)
		demo.Run(ctx, r, demo.Turn{Text: "hi", Stream: turn.stream})
	}

	for _, h := range abi.Hooks() {
		if h == abi.Configure || h == abi.Close {
			continue
		}
		assert.Positive(t, stage.at(h), "%s was not reached", h)
	}
	assert.Equal(t, map[host.PlanSource]bool{host.FromClaim: true}, stage.sources())
}

// However a run ends, its end is told with what its user claimed.
func TestClaimsReachTheEndOfARun(t *testing.T) {
	message := genai.NewContentFromText("hi", genai.RoleUser)
	for name, ends := range map[string]func(t *testing.T, w *world, stop func(), cancel func()){
		"the caller stops reading": func(_ *testing.T, _ *world, stop, _ func()) { stop() },
		"the caller cancels":       func(_ *testing.T, _ *world, stop, cancel func()) { cancel(); stop() },
		"it goes idle":             func(*testing.T, *world, func(), func()) { time.Sleep(2 * time.Hour) },
		"the host closes": func(t *testing.T, w *world, _, _ func()) {
			require.NoError(t, w.host.Close(context.WithoutCancel(t.Context())))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, stage := openCurious(t, demo.Reply{Chunks: []string{"one ", "two ", "three"}})
				ctx, cancel := context.WithCancel(claiming(t.Context(), "claim"))
				defer cancel()
				next, stop := iter.Pull2(w.runner.Run(ctx, "ada", "session", message, agent.RunConfig{StreamingMode: agent.StreamingModeSSE}))
				defer stop()
				_, err, _ := next()
				require.NoError(t, err)
				require.Zero(t, stage.at(abi.AfterRun))

				ends(t, w, stop, cancel)

				assert.Positive(t, stage.at(abi.AfterRun))
				assert.Positive(t, stage.at(abi.Close), "of the model call that is cut off")
				assert.Equal(t, map[host.PlanSource]bool{host.FromClaim: true}, stage.sources())
			})
		})
	}
}

func TestPlansAreReloadedAlone(t *testing.T) {
	w := onPlans(t, manyPlans, host.Options{})
	before := w.host.Manifest().Version
	write(t, filepath.Dir(w.path), "this is no manifest")
	writePlans(t, filepath.Dir(w.path), strings.NewReplacer(`"v1"`, `"v2"`, `default = "free"`, `default = "store"`).Replace(manyPlans))

	require.NoError(t, w.host.ReloadPlans())

	assert.Equal(t, "store", w.host.PlanOf(t.Context(), "app", "ada").Name)
	assert.Equal(t, before, w.host.Manifest().Version)
	assert.Contains(t, w.log.String(), `msg="plans reloaded" version=v2 before=v1`)
	assert.Contains(t, w.log.String(), "plans=v1", "at the start")
}

// seconds is the longest that a change of plans.toml takes.
const seconds = 7 * time.Second

func TestChangedPlansArePickedUpWithoutASignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := onPlans(t, manyPlans, host.Options{})
		dir := filepath.Dir(w.path)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.NotContains(t, w.log.String(), "plans reloaded", "nothing changed")
		write(t, dir, "this is no manifest")
		writePlans(t, dir, strings.NewReplacer(`"v1"`, `"v2"`, `default = "free"`, `default = "store"`).Replace(manyPlans))

		time.Sleep(seconds)
		synctest.Wait()

		assert.Equal(t, "store", w.host.PlanOf(t.Context(), "app", "ada").Name)
		assert.Equal(t, 1, strings.Count(w.log.String(), `msg="plans reloaded" version=v2 before=v1`))
	})
}

func TestChangedPlansThatAreBadAreSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := onPlans(t, manyPlans, host.Options{})
		dir := filepath.Dir(w.path)
		said := func() int {
			return strings.Count(w.log.String(), "changed plans refused, the running ones stay\" plans=v1")
		}
		for i, change := range []func(){
			func() { writePlans(t, dir, manyPlans+"bursts = 3\n") },
			func() { require.NoError(t, os.Remove(filepath.Join(dir, "plans.toml"))) },
			func() { writePlans(t, dir, strings.ReplaceAll(manyPlans, "1/day", "-1/day")) },
		} {
			change()
			time.Sleep(time.Minute)
			synctest.Wait()
			assert.Equal(t, i+1, said(), "once for each")
			assert.Equal(t, "free", w.host.PlanOf(t.Context(), "app", "nobody").Name)
		}
		writePlans(t, dir, manyPlans)
		time.Sleep(seconds)
		synctest.Wait()
		assert.NotContains(t, w.log.String(), "plans reloaded", "it is as it was")

		writePlans(t, dir, strings.Replace(manyPlans, `"v1"`, `"v2"`, 1))
		time.Sleep(seconds)
		synctest.Wait()
		assert.Contains(t, w.log.String(), "plans reloaded")
		assert.Equal(t, 3, said())
	})
}

// A file that is being written is not taken for whole, even where its beginning
// would do.
func TestPlansThatAreBeingWrittenAreNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := onPlans(t, manyPlans, host.Options{})
		text := manyPlans
		for range 20 {
			text += "# more\n"
			writePlans(t, filepath.Dir(w.path), text)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		assert.NotContains(t, w.log.String(), "plans reloaded")
	})
}

func TestBadPlansLeaveTheRunningOnesAlone(t *testing.T) {
	for name, bad := range map[string]string{
		"syntax":         manyPlans + "[plan.free\n",
		"an unknown key": manyPlans + "bursts = 3\n",
		"no such plan":   strings.Replace(manyPlans, `default = "free"`, `default = "gone"`, 1),
		"a bad rate":     strings.ReplaceAll(manyPlans, "1/day", "-1/day"),
		"nobody":         manyPlans + "[override.\"\"]\nplan = \"free\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := onPlans(t, manyPlans, host.Options{})
			writePlans(t, filepath.Dir(w.path), bad)
			for how, reload := range map[string]func() error{
				"alone": w.host.ReloadPlans, "with the manifest": func() error { return w.host.Reload(t.Context()) },
			} {
				var at *manifest.Errors
				require.ErrorAs(t, reload(), &at, how)
				assert.Contains(t, at.Error(), "plans.toml:")
				limit, defined := w.host.Limit(t.Context(), "app", "listed", "turn")
				require.True(t, defined)
				assert.EqualValues(t, 2, limit.Bucket.Burst)
			}
		})
	}
}
