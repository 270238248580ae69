package storetest

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
)

var turnKey = store.ClaimKey{Owner: ann, Name: "turns", Key: "message-1"}

func (w *world) claim(holder string, ttl time.Duration) store.Claim {
	w.Helper()
	c, err := w.store.Claim(w.ctx, turnKey, holder, ttl)
	require.NoError(w, err)
	return c
}

// claimed takes the key and gives the token.
func (w *world) claimed(holder string, ttl time.Duration) int64 {
	w.Helper()
	c := w.claim(holder, ttl)
	require.Equal(w, store.Claimed, c.State)
	return c.Token
}

func (w *world) end(token int64, result []byte) error {
	return w.store.EndClaim(w.ctx, turnKey, token, result, time.Hour)
}

func (w *world) result() (string, bool) {
	w.Helper()
	result, done, err := w.store.ClaimResult(w.ctx, turnKey)
	require.NoError(w, err)
	return string(result), done
}

var claimRules = []rule{
	{"claim/one holder has a key, the others learn who", func(w *world) {
		w.claimed("worker-1", time.Minute)
		assert.Equal(w, store.Claim{State: store.HeldElsewhere, Holder: "worker-1"}, w.claim("worker-2", time.Minute))
	}},
	{"claim/the holder that claims again keeps token and key", func(w *world) {
		token := w.claimed("worker-1", time.Minute)
		w.at(50 * time.Second)
		assert.Equal(w, token, w.claimed("worker-1", time.Minute))
		w.at(109 * time.Second)
		assert.Equal(w, store.HeldElsewhere, w.claim("worker-2", time.Minute).State)
	}},
	{"claim/a token grows with each claim and never restarts", func(w *world) {
		var last int64
		for range 5 {
			lapsed := w.claimed("worker-1", time.Second)
			assert.Greater(w, lapsed, last)
			w.clock.Advance(time.Second)
			given := w.claimed("worker-2", time.Second)
			assert.Greater(w, given, lapsed)
			require.NoError(w, w.end(given, nil))
			kept := w.claimed("worker-3", time.Second)
			assert.Greater(w, kept, given)
			require.NoError(w, w.end(kept, []byte("done")))
			last = kept
			w.clock.Advance(24 * time.Hour)
		}
	}},
	{"claim/whose claim lapsed is fenced, taken over or not", func(w *world) {
		old := w.claimed("worker-1", time.Minute)
		w.at(time.Minute)
		assert.ErrorIs(w, w.store.RenewClaim(w.ctx, turnKey, old, time.Minute), store.ErrFenced)
		assert.ErrorIs(w, w.end(old, []byte("late")), store.ErrFenced)
		fresh := w.claimed("worker-2", time.Minute)
		assert.ErrorIs(w, w.store.RenewClaim(w.ctx, turnKey, old, time.Minute), store.ErrFenced)
		assert.ErrorIs(w, w.end(old, []byte("late")), store.ErrFenced)
		assert.ErrorIs(w, w.end(old, nil), store.ErrFenced)
		assert.NoError(w, w.end(fresh, []byte("right")))
		result, done := w.result()
		assert.True(w, done)
		assert.Equal(w, "right", result)
	}},
	{"claim/renewing prolongs it", func(w *world) {
		token := w.claimed("worker-1", time.Minute)
		w.at(59 * time.Second)
		require.NoError(w, w.store.RenewClaim(w.ctx, turnKey, token, time.Minute))
		w.at(118 * time.Second)
		assert.Equal(w, store.HeldElsewhere, w.claim("worker-2", time.Minute).State)
		w.at(119 * time.Second)
		assert.Equal(w, store.Claimed, w.claim("worker-2", time.Minute).State)
	}},
	{"claim/a completed one gives its result until the retention is over", func(w *world) {
		_, done := w.result()
		assert.False(w, done)
		token := w.claimed("worker-1", time.Minute)
		_, done = w.result()
		assert.False(w, done)
		require.NoError(w, w.end(token, []byte("answer")))
		require.NoError(w, w.end(token, []byte("answer")), "repeated")
		require.NoError(w, w.end(token, []byte("other")), "the first result stays")
		assert.ErrorIs(w, w.store.RenewClaim(w.ctx, turnKey, token, time.Minute), store.ErrFenced)
		w.at(time.Hour - time.Millisecond)
		assert.Equal(w, store.Claim{State: store.Completed, Result: []byte("answer")}, w.claim("worker-2", time.Minute))
		result, done := w.result()
		assert.True(w, done)
		assert.Equal(w, "answer", result)
		w.at(time.Hour)
		_, done = w.result()
		assert.False(w, done)
		assert.Equal(w, store.Claimed, w.claim("worker-2", time.Minute).State)
	}},
	{"claim/what callers do to a result changes nothing", func(w *world) {
		mine := []byte("answer")
		require.NoError(w, w.end(w.claimed("worker-1", time.Minute), mine))
		mine[0] = 'x'
		w.claim("worker-2", time.Minute).Result[1] = 'x'
		theirs, _, err := w.store.ClaimResult(w.ctx, turnKey)
		require.NoError(w, err)
		theirs[2] = 'x'
		result, _ := w.result()
		assert.Equal(w, "answer", result)
	}},
	{"claim/an empty result is a result", func(w *world) {
		require.NoError(w, w.end(w.claimed("worker-1", time.Minute), []byte{}))
		_, done := w.result()
		assert.True(w, done)
		assert.Equal(w, store.Completed, w.claim("worker-2", time.Minute).State)
	}},
	{"claim/one that is given back is free, and giving back can be repeated", func(w *world) {
		token := w.claimed("worker-1", time.Minute)
		require.NoError(w, w.end(token, nil))
		require.NoError(w, w.end(token, nil))
		_, done := w.result()
		assert.False(w, done)
		w.claimed("worker-2", time.Minute)
		assert.ErrorIs(w, w.end(token, nil), store.ErrFenced)
		assert.Equal(w, store.HeldElsewhere, w.claim("worker-3", time.Minute).State)
	}},
	{"claim/bad numbers and no holder are refused", func(w *world) {
		_, err := w.store.Claim(w.ctx, turnKey, "worker-1", 0)
		assert.ErrorIs(w, err, store.ErrBadNumber)
		assert.ErrorContains(w, err, "ttl")
		_, err = w.store.Claim(w.ctx, turnKey, "", time.Minute)
		assert.ErrorIs(w, err, store.ErrMalformed)
		token := w.claimed("worker-1", time.Minute)
		assert.ErrorIs(w, w.store.RenewClaim(w.ctx, turnKey, token, -1), store.ErrBadNumber)
		err = w.store.EndClaim(w.ctx, turnKey, token, []byte("answer"), 0)
		assert.ErrorIs(w, err, store.ErrBadNumber)
		assert.ErrorContains(w, err, "retention")
		assert.Equal(w, store.HeldElsewhere, w.claim("worker-2", time.Minute).State)
	}},
}
