package storetest

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
)

// spend records a model call of a user, now.
func (w *world) spend(o store.Owner, plan string, turn bool, total int64) {
	w.Helper()
	w.record(store.Record{
		ID: w.id(), Time: w.clock.Now(), App: o.App, User: o.User, Plan: plan, Turn: turn,
		Tokens: store.Tokens{Total: &total},
	})
}

func (w *world) activity(o store.Owner, since time.Duration) []store.Activity {
	w.Helper()
	all, err := w.store.Activity(w.ctx, o, start.Add(since))
	require.NoError(w, err)
	return all
}

var activityRules = []rule{
	{"activity/turns and tokens are counted by the minute", func(w *world) {
		for minute, calls := range []int{1, 3, 3} {
			w.at(time.Duration(minute) * time.Minute)
			for i := range calls {
				w.spend(ann, "free", i < 2, 1234)
			}
		}
		assert.Equal(w, []store.Activity{{
			App: "shop", User: "ann", Plan: "free",
			Turns:  store.Histogram{1: 1, 2: 2},
			Tokens: store.Histogram{1300: 1, 3800: 2},
			Last:   store.Minute{Start: start.Add(2 * time.Minute), Turns: 2, Tokens: 3702},
		}}, w.activity(ann, 0))
	}},
	{"activity/a minute without one is in no histogram", func(w *world) {
		w.spend(ann, "free", true, 0)
		w.at(3 * time.Hour)
		w.spend(ann, "pro", false, 7)
		assert.Equal(w, []store.Activity{{
			App: "shop", User: "ann", Plan: "pro", Turns: store.Histogram{1: 1}, Tokens: store.Histogram{7: 1},
			Last: store.Minute{Start: start.Add(3 * time.Hour), Tokens: 7},
		}}, w.activity(ann, 0))
	}},
	{"activity/a record counts once", func(w *world) {
		total := int64(10)
		r := store.Record{ID: "op", Time: w.clock.Now(), App: "shop", User: "ann", Turn: true, Tokens: store.Tokens{Total: &total}}
		w.record(r)
		w.record(r)
		assert.Equal(w, store.Minute{Start: start, Turns: 1, Tokens: 10}, w.activity(ann, 0)[0].Last)
	}},
	{"activity/a record that comes late counts in the newest minute", func(w *world) {
		w.at(time.Hour)
		w.spend(ann, "free", true, 1)
		w.at(0)
		w.spend(ann, "free", true, 1)
		assert.Equal(w, store.Minute{Start: start.Add(time.Hour), Turns: 2, Tokens: 2}, w.activity(ann, 0)[0].Last)
	}},
	{"activity/the plan is that of the newest record, also within a minute", func(w *world) {
		w.at(time.Hour)
		w.spend(ann, "free", true, 1)
		w.spend(ann, "pro", true, 1)
		assert.Equal(w, "pro", w.activity(ann, 0)[0].Plan)
		w.at(0)
		w.spend(ann, "free", true, 1)
		assert.Equal(w, "pro", w.activity(ann, 0)[0].Plan, "a late one")
	}},
	{"activity/app and global owners see their users, in order", func(w *world) {
		other := user("bank", "zoe")
		for _, o := range []store.Owner{bob, other, ann} {
			w.spend(o, "free", true, 1)
		}
		names := func(o store.Owner) (names []string) {
			for _, a := range w.activity(o, 0) {
				names = append(names, a.App+"/"+a.User)
			}
			return names
		}
		assert.Equal(w, []string{"shop/ann", "shop/bob"}, names(store.Owner{Kind: store.OwnerApp, App: "shop"}))
		assert.Equal(w, []string{"bank/zoe", "shop/ann", "shop/bob"}, names(store.Owner{Kind: store.OwnerGlobal}))
		assert.Equal(w, []string{"shop/bob"}, names(bob))
	}},
	{"activity/who was not active since then is left out, and days before it", func(w *world) {
		w.spend(ann, "free", true, 1)
		w.spend(bob, "free", true, 1)
		w.at(7 * 24 * time.Hour)
		w.spend(ann, "free", true, 2)
		all := w.activity(store.Owner{Kind: store.OwnerGlobal}, 7*24*time.Hour)
		require.Len(w, all, 1)
		assert.Equal(w, store.Histogram{2: 1}, all[0].Tokens)
		assert.Equal(w, store.Histogram{1: 1, 2: 1}, w.activity(ann, 0)[0].Tokens)
	}},
	{"activity/it is kept for eight days and then forgotten", func(w *world) {
		w.spend(ann, "free", true, 1)
		w.spend(bob, "free", true, 1)
		w.at(store.ActivityKept)
		w.spend(ann, "free", true, 2)
		assert.Len(w, w.activity(ann, 0)[0].Tokens, 2)
		w.at(store.ActivityKept + 24*time.Hour)
		w.spend(ann, "free", true, 3)
		assert.Equal(w, store.Histogram{2: 1, 3: 1}, w.activity(ann, 0)[0].Tokens)
		assert.Empty(w, w.activity(bob, 0))
	}},
}
