package redis

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/redis/redistest"
)

func setPlan(t *testing.T, s *Store, user, plan string) {
	t.Helper()
	require.NoError(t, s.SetOverride(ctx, store.Override{User: user, Plan: plan}))
}

// plansSince is what a reader is told.
func plansSince(t *testing.T, s *Store, since string) (changes store.OverrideChanges, plans map[string]string) {
	t.Helper()
	changes, err := s.Overrides(ctx, since)
	require.NoError(t, err)
	plans = map[string]string{}
	for _, o := range changes.Changed {
		plans[o.User] = o.Plan
	}
	return changes, plans
}

// A replica that takes over does not have what did not reach it: the reader who
// saw it reads all, whatever was set since.
func TestAReaderForgetsWhatAFailoverLost(t *testing.T) {
	for name, lost := range map[string]func(t *testing.T, s *Store){
		"a new one":         func(t *testing.T, s *Store) { setPlan(t, s, "bob", "pro") },
		"another plan":      func(t *testing.T, s *Store) { setPlan(t, s, "ann", "free") },
		"one that was back": func(t *testing.T, s *Store) { setPlan(t, s, "ann", "") },
	} {
		for _, more := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", and more after it ", more), func(t *testing.T) {
				server := redistest.Single(t)
				s := opened(t, server.URL())
				setPlan(t, s, "ann", "pro")
				before, _ := plansSince(t, s, "")
				dumps := map[string]any{}
				for _, kind := range []string{"users", "log", "changes"} {
					dumps[s.overrides(kind)] = server.Do(t, "DUMP", s.overrides(kind))
				}
				lost(t, s)
				seen, _ := plansSince(t, s, before.Revision)
				require.False(t, seen.Whole)
				require.Len(t, seen.Changed, 1)

				for key, dump := range dumps {
					server.Do(t, "RESTORE", key, 0, dump, "REPLACE")
				}
				want := map[string]string{"ann": "pro"}
				if more {
					setPlan(t, s, "cleo", "pro")
					want["cleo"] = "pro"
				}
				after, plans := plansSince(t, s, seen.Revision)
				assert.True(t, after.Whole)
				assert.Equal(t, want, plans)
				again, _ := plansSince(t, s, after.Revision)
				assert.False(t, again.Whole)
				assert.Empty(t, again.Changed)
			})
		}
	}
}

func TestAReaderFarBehindReadsAll(t *testing.T) {
	server := redistest.Single(t)
	s := opened(t, server.URL())
	setPlan(t, s, "ann", "pro")
	first, _ := plansSince(t, s, "")
	for i := range keptChanges - 1 {
		setPlan(t, s, "bob", fmt.Sprint("plan-", i))
	}
	changes, plans := plansSince(t, s, first.Revision)
	assert.False(t, changes.Whole)
	assert.Equal(t, map[string]string{"bob": "plan-1022"}, plans)

	setPlan(t, s, "bob", "pro")
	changes, plans = plansSince(t, s, first.Revision)
	assert.True(t, changes.Whole)
	assert.Equal(t, map[string]string{"ann": "pro", "bob": "pro"}, plans)
	assert.EqualValues(t, keptChanges, server.Do(t, "ZCARD", s.overrides("changes")))
}

func TestOutageOverridesOfAnotherTypeAreNoticed(t *testing.T) {
	server := redistest.Single(t)
	s := opened(t, server.URL())
	for kind, says := range map[string]string{"users": "overrides: WRONGTYPE", "log": "override log: WRONGTYPE", "changes": "override changes: WRONGTYPE"} {
		server.Do(t, "FLUSHALL")
		server.Do(t, "SET", s.overrides(kind), "x")
		for what, err := range map[string]error{
			"read": func() error { _, err := s.Overrides(ctx, ""); return err }(),
			"set":  s.SetOverride(ctx, store.Override{User: "ann", Plan: "pro"}),
		} {
			require.ErrorIs(t, err, store.ErrInTheWay, "%s %s", what, kind)
			assert.ErrorContains(t, err, says, what)
		}
		assert.EqualValues(t, 1, server.Do(t, "DBSIZE"), "nothing was written")
	}
}
