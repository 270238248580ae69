package redis

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/redis/redistest"
	"github.com/hookhost/hookhost/store/storetest"
)

// oddOwners are the suite's and some more.
func oddOwners() []store.Owner {
	user := func(id string) store.Owner { return store.Owner{Kind: store.OwnerUser, App: "shop", User: id} }
	return append(storetest.Owners(), user(strings.Repeat("\x00", 10_000)), user(strings.Repeat("x", 10_000)),
		user(strings.Repeat("x", 9_999)+"y"), user("a/b"), user("日本"), user("~"), user(strings.Repeat("x", 128)), user(strings.Repeat("x", 129)))
}

// oddIDsAreInOneSlotEach is case 020 on a cluster.
func oddIDsAreInOneSlotEach(t *testing.T, s *Store, cluster *redistest.Shards) {
	for i, o := range oddOwners() {
		d, err := s.Admit(ctx, turn("same", o))
		require.NoError(t, err, "%.50q", o)
		assert.Equal(t, store.Decision{Kind: store.Now, Balance: 90}, d, "%.50q", o)
		left, err := s.Settle(ctx, store.Reservation{ID: "same", Owner: o, Limit: "tokens", Bucket: hourly}, int64(i))
		require.NoError(t, err)
		assert.EqualValues(t, 100-i, left)
	}
	for i, o := range oddOwners() {
		assert.EqualValues(t, 100-i, balance(t, s, o), "%.50q", o)
		held, err := s.Held(ctx, o, "runs")
		require.NoError(t, err)
		assert.EqualValues(t, 1, held)
	}
	for _, node := range cluster.Nodes[:3] {
		for _, key := range node.Do(t, "KEYS", "*").([]any) {
			assert.LessOrEqual(t, len(key.(string)), 700)
			assert.Regexp(t, `^test:\{[A-Za-z0-9_.@:~%-]+\}(:[A-Za-z0-9_.@:~%-]*)?$`, key)
		}
	}
}

func TestSlotsAnEscapedPartIsShortAndItsOwn(t *testing.T) {
	assert.Equal(t, "u-42_a.b@c", escape("u-42_a.b@c"))
	assert.Equal(t, "a%3Ab%7D%00%C3%A9%25", escape("a:b}\x00é%"))
	assert.Equal(t, strings.Repeat("x", 128), escape(strings.Repeat("x", 128)))
	assert.Len(t, escape(strings.Repeat("x", 129)), 44)
	assert.Len(t, escape(strings.Repeat("\x00", 43)), 44)
	assert.Equal(t, "%7E", escape("~"), "what begins with ~ is a hash")
}

func FuzzEscape(f *testing.F) {
	f.Add("a:b", "a%3Ab")
	f.Add("", "~")
	f.Add(strings.Repeat("x", 128), strings.Repeat("x", 129))
	f.Add(strings.Repeat("{", 42), strings.Repeat("{", 43))
	f.Fuzz(func(t *testing.T, a, b string) {
		escaped := escape(a)
		assert.LessOrEqual(t, len(escaped), maxPart)
		assert.NotContains(t, escaped, ":")
		assert.False(t, strings.ContainsAny(escaped, "{}\n\x00 "))
		assert.Equal(t, a == b, escaped == escape(b))
	})
}
