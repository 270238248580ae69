package host_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/memory"
)

const someLimits = `
version = "v1"
default = "free"
[plan.free]
turn = { rate = "1/day", burst = 5 }
tokens = { rate = "1/day", burst = 100, estimate = 10 }
runs = { max = 2, expires = "30s" }
[plan.pro]
turn = { rate = "1/day", burst = 50 }
refunds = { rate = "1/day", burst = 3 }
[app]
calls = { rate = "1/day", burst = 7 }
[global]
calls = { rate = "1/day", burst = 9 }
`

// openLimits opens limits on a store that the test holds, for a manifest whose
// module is not there.
func openLimits(t *testing.T, plans string, shared store.Store) *host.Limits {
	t.Helper()
	path := write(t, t.TempDir(), strings.Replace(limitOnly, "MODULE/ratelimit", "gone.wasm", 1))
	writePlans(t, filepath.Dir(path), plans)
	l, err := host.OpenLimits(t.Context(), path, host.Options{Store: shared})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close(context.WithoutCancel(t.Context()))) })
	return l
}

// take charges a bucket of the owner.
func take(t *testing.T, s store.Store, owner store.Owner, limit string, burst, cost int64) {
	t.Helper()
	d, err := s.Admit(t.Context(), store.Admission{ID: limit + t.Name(), Owner: owner, Items: []store.Item{{
		Limit: limit, Take: &store.Take{Bucket: store.Bucket{Units: 1, Per: 24 * time.Hour, Burst: burst}, Cost: cost},
	}}})
	require.NoError(t, err)
	require.Equal(t, store.Now, d.Kind)
}

func TestLimitsShowWhatHoldsForAUser(t *testing.T) {
	shared := memory.New(nil)
	take(t, shared, ownerOf("ada"), "turn", 5, 2)
	take(t, shared, store.Owner{Kind: store.OwnerGlobal}, "calls", 9, 4)
	_, err := shared.Admit(t.Context(), store.Admission{ID: "run", Owner: ownerOf("ada"), Items: []store.Item{{
		Limit: "runs", Acquire: &store.Acquire{Cap: store.Cap{Max: 2, Expires: time.Minute}, Member: "run"},
	}}})
	require.NoError(t, err)
	l := openLimits(t, someLimits, shared)

	shown, err := l.Show(t.Context(), "app", "ada")
	require.NoError(t, err)

	assert.Equal(t, host.UserPlan{Name: "free", Source: host.FromDefault}, shown.Plan)
	assert.Equal(t, "v1", shown.Version)
	var lines []string
	for _, one := range shown.Limits {
		line := one.Scope + " " + one.Name
		if one.Bucket != nil {
			line += " of " + one.Bucket.Rate.String()
		}
		lines = append(lines, line)
	}
	assert.Equal(t, []string{"user runs", "user tokens of 1/day", "user turn of 1/day", "app calls of 1/day", "global calls of 1/day"}, lines)
	assert.EqualValues(t, 1, shown.Limits[0].Held)
	assert.EqualValues(t, []int64{100, 3, 7, 5}, []int64{
		shown.Limits[1].Balance, shown.Limits[2].Balance, shown.Limits[3].Balance, shown.Limits[4].Balance,
	})
}

func TestLimitsAreSetForHostsThatServe(t *testing.T) {
	shared := memory.New(nil)
	l := openLimits(t, someLimits, shared)

	err := l.SetOverride(t.Context(), store.Override{User: "ada", Plan: "gold"})
	require.ErrorIs(t, err, host.ErrNoPlan)
	assert.EqualError(t, err, `"gold": no such plan: want free, pro`)
	require.NoError(t, l.SetOverride(t.Context(), store.Override{User: "ada", Plan: "pro", Author: "kim", Note: "incident 118"}))

	shown, err := l.Show(t.Context(), "app", "ada")
	require.NoError(t, err)
	assert.Equal(t, host.UserPlan{Name: "pro", Source: host.FromStore, Author: "kim", Note: "incident 118"}, shown.Plan)

	require.NoError(t, l.SetOverride(t.Context(), store.Override{User: "ada", Author: "kim"}))
	shown, err = l.Show(t.Context(), "app", "ada")
	require.NoError(t, err)
	assert.Equal(t, host.FromDefault, shown.Plan.Source)
}

func TestRefillMakesTheBucketsOfAllPlansFull(t *testing.T) {
	shared := memory.New(nil)
	take(t, shared, ownerOf("ada"), "turn", 5, 5)
	take(t, shared, ownerOf("ada"), "refunds", 3, 3)
	take(t, shared, ownerOf("eve"), "turn", 5, 5)
	l := openLimits(t, someLimits, shared)

	names, err := l.Refill(t.Context(), "app", "ada")
	require.NoError(t, err)

	assert.Equal(t, []string{"refunds", "tokens", "turn"}, names)
	for owner, want := range map[string]int64{"ada": 5, "eve": 0} {
		n, err := shared.Balance(t.Context(), ownerOf(owner), "turn", store.Bucket{Units: 1, Per: 24 * time.Hour, Burst: 5})
		require.NoError(t, err)
		assert.Equal(t, want, n, owner)
	}
}

// A plan in shadow is counted by each stage for itself.
func TestLimitsInShadowAreShownAndRefilledWhereTheyAreCounted(t *testing.T) {
	shared := memory.New(nil)
	mine := ownerOf("ada")
	mine.Shadow = "ratelimit"
	take(t, shared, mine, "turn", 5, 2)
	l := openLimits(t, strings.Replace(someLimits, "[plan.free]", "[plan.free]\nmode = \"shadow\"", 1), shared)

	turn := func() host.ShownLimit {
		shown, err := l.Show(t.Context(), "app", "ada")
		require.NoError(t, err)
		i := slices.IndexFunc(shown.Limits, func(one host.ShownLimit) bool { return one.Name == "turn" })
		require.NotEqual(t, -1, i)
		return shown.Limits[i]
	}
	assert.Equal(t, "ratelimit", turn().Shadow)
	assert.EqualValues(t, 3, turn().Balance)
	_, err := l.Refill(t.Context(), "app", "ada")
	require.NoError(t, err)
	assert.EqualValues(t, 5, turn().Balance)
}

func TestOverridesOfOneUser(t *testing.T) {
	l := openLimits(t, someLimits, memory.New(nil))
	mine := store.Override{User: "ada", App: "app", Plan: "pro", Author: "kim"}
	for _, o := range []store.Override{{User: "eve", Plan: "pro"}, mine, {User: "ada", Plan: "pro"}, {User: "ada"}} {
		require.NoError(t, l.SetOverride(t.Context(), o))
	}
	got, err := l.Overrides(t.Context(), "ada")
	require.NoError(t, err)
	assert.Equal(t, []store.Override{mine}, got)
}

func TestTopHasTheUsersWithTheMostTokensFirst(t *testing.T) {
	shared := memory.New(nil)
	now := time.Now().Truncate(time.Minute)
	for i, r := range []store.Record{
		{User: "ada", Time: now.Add(-time.Minute), Tokens: store.Tokens{Total: new(int64(900))}},
		{User: "ada", Time: now, Tokens: store.Tokens{Total: new(int64(10))}},
		{User: "eve", Time: now, Tokens: store.Tokens{Total: new(int64(50))}},
		{User: "bob", Time: now.Add(-time.Hour), Tokens: store.Tokens{Total: new(int64(5000))}},
	} {
		r.ID, r.App = fmt.Sprint(i), "app"
		_, err := shared.Record(t.Context(), r)
		require.NoError(t, err)
	}
	l := openLimits(t, someLimits, shared)

	top, err := l.Top(t.Context(), store.Owner{Kind: store.OwnerGlobal}, now.Add(-5*time.Minute))
	require.NoError(t, err)

	require.Len(t, top, 2, "bob did nothing of late")
	assert.Equal(t, "eve", top[0].User)
	assert.EqualValues(t, 50, top[0].Last.Tokens)
	assert.Equal(t, "ada", top[1].User)
	records, err := l.Records(t.Context(), ownerOf("ada"))
	require.NoError(t, err)
	assert.Len(t, records, 2)
}

func TestLimitsSayWhyTheyCannotBeOpened(t *testing.T) {
	at := write(t, t.TempDir(), limitOnly+"[store]\nurl = \"memory://\"\n")
	_, err := host.OpenLimits(t.Context(), at, host.Options{})
	require.ErrorIs(t, err, host.ErrStoreInside)
	var place *manifest.Error
	require.ErrorAs(t, err, &place)
	assert.Equal(t, 11, place.Line)

	at = write(t, t.TempDir(), limitOnly)
	_, err = host.OpenLimits(t.Context(), at, host.Options{})
	require.ErrorIs(t, err, host.ErrStoreInside, "the default is memory too")

	at = write(t, t.TempDir(), strings.Replace(limitOnly, `plans = "plans.toml"`, "", 1))
	l, err := host.OpenLimits(t.Context(), at, host.Options{Store: memory.New(nil)})
	require.NoError(t, err, "there may be records all the same")
	_, err = l.Top(t.Context(), store.Owner{Kind: store.OwnerGlobal}, time.Time{})
	require.NoError(t, err)
	_, err = l.Plans()
	require.ErrorIs(t, err, host.ErrNoPlans)
	_, err = l.Show(t.Context(), "app", "ada")
	require.ErrorIs(t, err, host.ErrNoPlans)
	require.ErrorIs(t, l.SetOverride(t.Context(), store.Override{User: "ada", Plan: "free"}), host.ErrNoPlans)
	_, err = l.Refill(t.Context(), "app", "ada")
	require.ErrorIs(t, err, host.ErrNoPlans)
}
