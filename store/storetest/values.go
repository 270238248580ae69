package storetest

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
)

var colour = store.ValueKey{Owner: ann, Name: "prefs", Key: "colour"}

func (w *world) put(value []byte, ttl time.Duration) {
	w.Helper()
	require.NoError(w, w.store.PutValue(w.ctx, colour, value, ttl))
}

func (w *world) get() (value []byte, found bool) {
	w.Helper()
	value, found, err := w.store.GetValue(w.ctx, colour)
	require.NoError(w, err)
	return value, found
}

var valueRules = []rule{
	{"value/it is found until it expires", func(w *world) {
		_, found := w.get()
		assert.False(w, found)
		w.put([]byte("red"), time.Second)
		w.at(999 * time.Millisecond)
		value, found := w.get()
		assert.True(w, found)
		assert.Equal(w, "red", string(value))
		w.at(time.Second)
		_, found = w.get()
		assert.False(w, found)
	}},
	{"value/a new one replaces value and expiry", func(w *world) {
		w.put([]byte("red"), time.Hour)
		w.put([]byte("blue"), time.Second)
		value, _ := w.get()
		assert.Equal(w, "blue", string(value))
		w.at(time.Second)
		_, found := w.get()
		assert.False(w, found)
	}},
	{"value/no expiry is early by parts of a millisecond", func(w *world) {
		w.put([]byte("red"), 1500*time.Microsecond)
		w.at(time.Millisecond)
		_, found := w.get()
		assert.True(w, found)
		w.at(2 * time.Millisecond)
		_, found = w.get()
		assert.False(w, found)
	}},
	{"value/an empty one is not a missing one", func(w *world) {
		w.put(nil, time.Hour)
		value, found := w.get()
		assert.True(w, found)
		assert.Empty(w, value)
	}},
	{"value/what callers do to their bytes changes nothing", func(w *world) {
		mine := []byte("red")
		w.put(mine, time.Hour)
		mine[0] = 'x'
		value, _ := w.get()
		assert.Equal(w, "red", string(value))
		value[0] = 'x'
		value, _ = w.get()
		assert.Equal(w, "red", string(value))
	}},
	{"value/it must live for a while", func(w *world) {
		assert.ErrorIs(w, w.store.PutValue(w.ctx, colour, []byte("red"), 0), store.ErrBadNumber)
		_, found := w.get()
		assert.False(w, found)
	}},
}
