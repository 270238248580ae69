package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
)

var overrideRules = []rule{
	{"override/what was set stands for all who ask, the oldest first", func(w *world) {
		until := start.Add(time.Hour)
		w.override(store.Override{App: "shop", User: "ann", Plan: "pro", Author: "kim", Note: "incident 118", Until: until})
		w.override(store.Override{User: "bob", Plan: "free"})
		w.override(store.Override{User: "ann", Plan: "free"})
		w.override(store.Override{User: "bob", Plan: "pro"})
		got := w.overrides("")
		assert.True(w, got.Whole)
		assert.Equal(w, []store.Override{
			{App: "shop", User: "ann", Plan: "pro", Author: "kim", Note: "incident 118", Until: until},
			{User: "ann", Plan: "free"},
			{User: "bob", Plan: "pro"},
		}, got.Changed)
	}},
	{"override/who asks again gets what changed, also what was taken back", func(w *world) {
		w.override(store.Override{User: "ann", Plan: "pro"})
		w.override(store.Override{User: "bob", Plan: "pro"})
		known := w.overrides("").Revision
		assert.Empty(w, w.overrides(known).Changed)
		w.override(store.Override{User: "ann", Note: "over"})
		w.override(store.Override{User: "cleo", Plan: "pro"})
		got := w.overrides(known)
		assert.False(w, got.Whole)
		assert.Equal(w, []store.Override{{User: "ann"}, {User: "cleo", Plan: "pro"}}, got.Changed)
		assert.Empty(w, w.overrides(got.Revision).Changed)
		assert.Equal(w, []store.Override{{User: "bob", Plan: "pro"}, {User: "cleo", Plan: "pro"}}, w.overrides("").Changed)
	}},
	{"override/odd ids stand apart", func(w *world) {
		all := slices.DeleteFunc(Owners(), func(o store.Owner) bool { return o.Kind != store.OwnerUser || o.Shadow != "" })
		for i, o := range all {
			w.override(store.Override{App: o.App, User: o.User, Plan: fmt.Sprint("plan-", i)})
		}
		got := w.overrides("").Changed
		require.Len(w, got, len(all))
		for i, o := range all {
			assert.Equal(w, store.Override{App: o.App, User: o.User, Plan: fmt.Sprint("plan-", i)}, got[i])
		}
	}},
	{"override/a revision of another store gives all", func(w *world) {
		w.override(store.Override{User: "ann", Plan: "pro"})
		for _, strange := range []string{"999999999", "no revision", "-"} {
			got := w.overrides(strange)
			assert.True(w, got.Whole, strange)
			assert.Len(w, got.Changed, 1, strange)
		}
	}},
	{"override/for nobody is refused", func(w *world) {
		assert.ErrorIs(w, w.store.SetOverride(w.ctx, store.Override{App: "shop", Plan: "pro"}), store.ErrNoUser)
		assert.Empty(w, w.overrides("").Changed)
	}},
}

func (w *world) override(o store.Override) {
	w.Helper()
	require.NoError(w, w.store.SetOverride(w.ctx, o))
}

func (w *world) overrides(since string) store.OverrideChanges {
	w.Helper()
	changes, err := w.store.Overrides(w.ctx, since)
	require.NoError(w, err)
	return changes
}
