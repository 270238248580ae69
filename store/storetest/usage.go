package storetest

import (
	"math"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
)

func count(n int64) *int64 { return &n }

func (w *world) record(r store.Record) bool {
	w.Helper()
	fresh, err := w.store.Record(w.ctx, r)
	require.NoError(w, err)
	return fresh
}

func (w *world) records(o store.Owner) []store.Record {
	w.Helper()
	records, err := w.store.Records(w.ctx, o)
	require.NoError(w, err)
	return records
}

func (w *world) add(o store.Owner, name, id string, delta int64) int64 {
	w.Helper()
	sum, err := w.store.AddCounter(w.ctx, o, name, id, delta)
	require.NoError(w, err)
	return sum
}

var usageRules = []rule{
	{"usage/a record is kept whole, missing numbers apart from zero", func(w *world) {
		r := store.Record{
			ID: "op", Run: "run", Time: start, App: "shop", User: "ann", Session: "s", Agent: "a", Model: "m", Plan: "free",
			IdempotencyKey: "key", Outcome: "done", Tokens: store.Tokens{Prompt: count(100), Cached: count(0)},
			Elapsed: time.Second, FirstChunk: time.Millisecond,
		}
		assert.True(w, w.record(r))
		got := w.records(ann)
		require.Len(w, got, 1)
		assert.True(w, r.Time.Equal(got[0].Time))
		got[0].Time = r.Time
		assert.Equal(w, r, got[0])
	}},
	{"usage/a record with a known id changes nothing", func(w *world) {
		assert.True(w, w.record(store.Record{ID: "op", App: "shop", User: "ann", Model: "m"}))
		assert.False(w, w.record(store.Record{ID: "op", App: "shop", User: "ann", Model: "other"}))
		got := w.records(ann)
		require.Len(w, got, 1)
		assert.Equal(w, "m", got[0].Model)
	}},
	{"usage/the records of a user, of an app, of all, the oldest first", func(w *world) {
		for _, r := range []store.Record{
			{ID: "1", App: "shop", User: "ann"}, {ID: "2", App: "shop", User: "bob"}, {ID: "3", App: "desk", User: "ann"}, {ID: "4", App: "shop", User: "ann"},
		} {
			w.record(r)
			w.clock.Advance(time.Millisecond) // of the same instant the order of several users is open
		}
		ids := func(o store.Owner) (ids []string) {
			for _, r := range w.records(o) {
				ids = append(ids, r.ID)
			}
			return ids
		}
		assert.Equal(w, []string{"1", "4"}, ids(ann))
		assert.Equal(w, []string{"1", "2", "4"}, ids(store.Owner{Kind: store.OwnerApp, App: "shop"}))
		assert.Equal(w, []string{"1", "2", "3", "4"}, ids(store.Owner{Kind: store.OwnerGlobal}))
		assert.Empty(w, ids(user("desk", "bob")))
	}},
	{"usage/what callers do to their numbers changes nothing", func(w *world) {
		mine := count(1)
		w.record(store.Record{ID: "op", App: "shop", User: "ann", Tokens: store.Tokens{Total: mine}})
		*mine = 2
		assert.EqualValues(w, 1, *w.records(ann)[0].Tokens.Total)
		*w.records(ann)[0].Tokens.Total = 3
		assert.EqualValues(w, 1, *w.records(ann)[0].Tokens.Total)
	}},
	{"usage/bad records are refused", func(w *world) {
		bad := map[string]store.Record{
			"prompt":      {ID: "op", Tokens: store.Tokens{Prompt: count(-1)}},
			"total":       {ID: "op", Tokens: store.Tokens{Total: count(store.MaxUnits + 1)}},
			"elapsed":     {ID: "op", Elapsed: -1},
			"first chunk": {ID: "op", FirstChunk: -1},
		}
		for field, r := range bad {
			_, err := w.store.Record(w.ctx, r)
			assert.ErrorIs(w, err, store.ErrBadNumber, field)
			assert.ErrorContains(w, err, field)
		}
		_, err := w.store.Record(w.ctx, store.Record{})
		assert.ErrorIs(w, err, store.ErrMalformed)
		assert.Empty(w, w.records(store.Owner{Kind: store.OwnerGlobal}))
	}},
	{"counter/additions are summed, each id once", func(w *world) {
		assert.EqualValues(w, 5, w.add(ann, "images", "a", 5))
		assert.EqualValues(w, 3, w.add(ann, "images", "b", -2))
		assert.EqualValues(w, 3, w.add(ann, "images", "a", 5), "repeated")
		assert.EqualValues(w, 1, w.add(ann, "videos", "a", 1), "another counter")
		assert.EqualValues(w, 1, w.add(bob, "images", "a", 1), "another owner")
		sum, err := w.store.Counter(w.ctx, ann, "images")
		require.NoError(w, err)
		assert.EqualValues(w, 3, sum)
		sum, err = w.store.Counter(w.ctx, ann, "nothing")
		require.NoError(w, err)
		assert.Zero(w, sum)
	}},
	{"counter/bad additions are refused", func(w *world) {
		for _, delta := range []int64{math.MinInt64, -store.MaxUnits - 1, store.MaxUnits + 1, math.MaxInt64} {
			_, err := w.store.AddCounter(w.ctx, ann, "images", w.id(), delta)
			assert.ErrorIs(w, err, store.ErrBadNumber)
			assert.ErrorContains(w, err, "delta")
		}
		_, err := w.store.AddCounter(w.ctx, ann, "images", "", 1)
		assert.ErrorIs(w, err, store.ErrMalformed)
		assert.EqualValues(w, 0, w.add(ann, "images", "look", 0))
	}},
	{"counter/a sum does not wrap", func(w *world) {
		var sum int64
		for range math.MaxInt64 / int64(store.MaxUnits) {
			sum = w.add(ann, "images", w.id(), store.MaxUnits)
		}
		_, err := w.store.AddCounter(w.ctx, ann, "images", w.id(), store.MaxUnits)
		assert.ErrorIs(w, err, store.ErrBadNumber)
		assert.Equal(w, sum, w.add(ann, "images", w.id(), 0))
	}},
}
