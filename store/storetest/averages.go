package storetest

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
)

// learn adds calls of an agent to its average.
func (w *world) learn(id, agent string, calls, units int64) int64 {
	w.Helper()
	means, err := w.store.Learn(w.ctx, id, []store.Sample{{App: "shop", Agent: agent, Model: "m", Calls: calls, Units: units}})
	require.NoError(w, err)
	require.Len(w, means, 1)
	return means[0]
}

var averageRules = []rule{
	{"average/it is the mean, rounded up, and 0 where nothing is known", func(w *world) {
		assert.Zero(w, w.learn(w.id(), "desk", 0, 0))
		assert.EqualValues(w, 100, w.learn(w.id(), "desk", 1, 100))
		assert.EqualValues(w, 67, w.learn(w.id(), "desk", 2, 101))
		assert.EqualValues(w, 67, w.learn(w.id(), "desk", 0, 0))
		assert.Zero(w, w.learn(w.id(), "clerk", 0, 0))
	}},
	{"average/it is learned once for an id", func(w *world) {
		assert.EqualValues(w, 100, w.learn("flush-1", "desk", 1, 100))
		assert.EqualValues(w, 100, w.learn("flush-1", "desk", 1, 900))
		assert.EqualValues(w, 100, w.learn(w.id(), "desk", 0, 0))
	}},
	{"average/old calls fade", func(w *world) {
		w.learn(w.id(), "desk", 1_000_000, 1_000_000*1000)
		assert.EqualValues(w, 1000, w.learn(w.id(), "desk", 0, 0))
		assert.EqualValues(w, 1500, w.learn(w.id(), "desk", 100, 200_000))
		for range 20 {
			w.learn(w.id(), "desk", 100, 200_000)
		}
		assert.EqualValues(w, 2000, w.learn(w.id(), "desk", 0, 0))
	}},
	{"average/it agrees with the arithmetic in integers, also at the ends of the range", func(w *world) {
		var want store.Average
		for i, s := range []store.Average{{Units: 1e13, Calls: 1}, {Units: 1e13, Calls: 1e6}, {Units: 7, Calls: 3}, {Units: 9_999_999_999_999, Calls: 99}, {Units: 0, Calls: 1}, {Units: 1e13, Calls: 100}} {
			want = want.Add(s.Calls, s.Units)
			assert.Equal(w, want.Mean(), w.learn(w.id(), "desk", s.Calls, s.Units), i)
		}
	}},
	{"average/one is forgotten a month after its last call", func(w *world) {
		w.learn(w.id(), "desk", 1, 100)
		w.at(store.AverageLife - time.Millisecond)
		assert.EqualValues(w, 100, w.learn(w.id(), "desk", 0, 0))
		w.at(store.AverageLife)
		assert.Zero(w, w.learn(w.id(), "desk", 0, 0))
	}},
	{"average/bad numbers change nothing", func(w *world) {
		for _, bad := range []store.Sample{{Calls: -1}, {Calls: 1e6 + 1}, {Calls: 1, Units: -1}, {Calls: 1, Units: 1e13 + 1}, {Units: 1}} {
			_, err := w.store.Learn(w.ctx, w.id(), []store.Sample{{Agent: "desk", Calls: 1, Units: 1}, bad})
			assert.ErrorIs(w, err, store.ErrBadNumber, "%+v", bad)
		}
		_, err := w.store.Learn(w.ctx, "", nil)
		assert.ErrorIs(w, err, store.ErrMalformed)
	}},
	{"average/all samples of a call are answered in their order", func(w *world) {
		w.learn(w.id(), "desk", 1, 100)
		means, err := w.store.Learn(w.ctx, w.id(), []store.Sample{
			{App: "bank", Agent: "desk", Model: "m", Calls: 1, Units: 5}, {App: "shop", Agent: "desk", Model: "m"}, {App: "shop", Agent: "desk", Model: "n"},
		})
		require.NoError(w, err)
		assert.Equal(w, []int64{5, 100, 0}, means)
	}},
}
