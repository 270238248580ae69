package redis

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/breaker"
	"github.com/hookhost/hookhost/store/redis/redistest"
)

// guarded is a store behind a breaker that fails the test if it opens.
func guarded(t *testing.T, s *Store) store.Store {
	return breaker.New(s, breaker.Options{Timeout: s.timeout, Switched: func(away bool, cause error) {
		assert.Fail(t, "the breaker switched", "away %v: %v", away, cause)
	}})
}

var bob = store.Owner{Kind: store.OwnerUser, App: "shop", User: "bob"}

func TestOutageCallersWithLittleTimeLeftMakeNoOutage(t *testing.T) {
	wire := redistest.Proxy(t, redistest.Single(t).Addr)
	s := opened(t, "redis://"+wire.Addr, func(c *Config) { c.Timeout = 500 * time.Millisecond })
	b := guarded(t, s)
	wire.Delay(20 * time.Millisecond)
	for range 3 * breaker.Failures {
		hurried, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
		_, err := b.Admit(hurried, turn(newID(), ann))
		require.ErrorIs(t, err, store.ErrUnavailable)
		cancel()
	}
	_, err := b.Admit(ctx, turn(newID(), bob))
	assert.NoError(t, err)
}

// What keeps the store from one thing for one user takes it from nobody else.
func TestOutageOneThingThatCannotBeDoneIsNoOutage(t *testing.T) {
	server := redistest.Single(t)
	rules, _ := documentedACL(t)
	setUser(t, server, rules)
	s := opened(t, "redis://"+server.Addr, login("hookhost", "secret"))
	keys := s.owned(ann)
	admit := func(s store.Store, o store.Owner) error { _, err := s.Admit(ctx, turn(newID(), o)); return err }
	record := func(s store.Store, o store.Owner) error {
		_, err := s.Record(ctx, store.Record{ID: newID(), Time: time.Now(), App: o.App, User: o.User})
		return err
	}
	put := func(args ...any) func() { return func() { server.Do(t, args...) } }
	acl := func(rules ...any) func() {
		return func() { server.Do(t, append([]any{"ACL", "SETUSER", "hookhost"}, rules...)...) }
	}
	for name, c := range map[string]struct {
		spoil func()
		fails func(store.Store, store.Owner) error
		works func(store.Store, store.Owner) error
	}{
		"a bucket of another type":           {put("XADD", keys.buckets(), "*", "a", "b"), admit, admit},
		"a bucket that holds something else": {put("HSET", keys.buckets(), "tokens", "nonsense"), admit, admit},
		"records of another type":            {put("SET", keys.records(), "x"), record, admit},
		"an activity that is none":           {put("HSET", keys.activity(), "minute", "x"), record, admit},
		"a command that is not allowed":      {acl("-rpush"), record, admit},
		"a key that is not allowed":          {acl("resetkeys", "~test:{u:shop:bob}:*"), admit, admit},
	} {
		t.Run(name, func(t *testing.T) {
			server.Do(t, "FLUSHALL")
			setUser(t, server, rules)
			c.spoil()
			b := guarded(t, s)
			for range 2 * breaker.Failures {
				err := c.fails(b, ann)
				require.ErrorIs(t, err, store.ErrUnavailable)
				require.ErrorIs(t, err, store.ErrOnlyThis)
			}
			assert.NoError(t, c.works(b, bob))
		})
	}
}

func TestOutageAServerThatRunsNoScriptsForUsIsAway(t *testing.T) {
	server := redistest.Single(t)
	rules, _ := documentedACL(t)
	setUser(t, server, rules)
	s := opened(t, "redis://"+server.Addr, login("hookhost", "secret"))
	server.Do(t, "ACL", "SETUSER", "hookhost", "-evalsha")
	_, err := take(s, ann, 1)
	require.ErrorIs(t, err, store.ErrUnavailable)
	assert.NotErrorIs(t, err, store.ErrOnlyThis)
}
