package redis

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/redis/redistest"
)

func TestOutageCase021ScriptsThatWereForgottenAreSentAgain(t *testing.T) {
	server := redistest.Single(t, redistest.AppendOnly())
	s := opened(t, server.URL())
	charge := func(want int64) {
		t.Helper()
		d, err := take(s, ann, 1)
		require.NoError(t, err)
		assert.Equal(t, store.Decision{Kind: store.Now, Balance: want}, d)
	}
	charge(99)

	server.Do(t, "SCRIPT", "FLUSH")
	var all sync.WaitGroup
	var granted atomic.Int64
	for range 50 {
		all.Go(func() {
			d, err := take(s, ann, 1)
			if assert.NoError(t, err) && d.Kind == store.Now {
				granted.Add(1)
			}
		})
	}
	all.Wait()
	assert.EqualValues(t, 50, granted.Load())
	assert.EqualValues(t, 49, balance(t, s, ann))

	server.Restart(t)
	charge(48)
}

func TestOutageCase021ALostReplyChargesOnce(t *testing.T) {
	server := redistest.Single(t)
	wire := redistest.Proxy(t, server.Addr)
	s := opened(t, "redis://"+wire.Addr)
	d, err := take(s, ann, 1)
	require.NoError(t, err)
	assert.EqualValues(t, 99, d.Balance)

	for lost := 1; lost <= repetitions; lost++ {
		wire.DropReplies(lost)
		before := wire.RoundTrips()
		d, err = take(s, ann, 1)
		require.NoError(t, err)
		assert.Equal(t, store.Decision{Kind: store.Now, Balance: int64(99 - lost)}, d, "the first decision")
		assert.EqualValues(t, lost+1, wire.RoundTrips()-before)
	}
	left := int64(99 - repetitions)
	assert.Equal(t, left, balance(t, s, ann))

	wire.DropReplies(1 + repetitions)
	id := newID()
	_, err = s.Admit(ctx, turn(id, ann))
	require.ErrorIs(t, err, store.ErrUnavailable, "nobody ever answered")
	d, err = s.Admit(ctx, turn(id, ann))
	require.NoError(t, err)
	assert.Equal(t, store.Decision{Kind: store.Now, Balance: left - 10}, d, "whoever asks again with the id")
	assert.Equal(t, left-10, balance(t, s, ann))
}

func TestOutageEveryOperationSurvivesLostRepliesAndForgottenScripts(t *testing.T) {
	server := redistest.Single(t)
	wire := redistest.Proxy(t, server.Addr)
	s := opened(t, "redis://"+wire.Addr)
	succeed(t, s, ann) // so that the server knows the scripts, and what is lost is the reply of one that ran
	for name, disturb := range map[string]func(){
		"lost":      func() { wire.DropReplies(1) },
		"forgotten": func() { server.Do(t, "SCRIPT", "FLUSH") },
		"both": func() {
			server.Do(t, "SCRIPT", "FLUSH")
			wire.DropReplies(2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := store.Owner{Kind: store.OwnerUser, App: "shop", User: name}
			for _, op := range operations(s, o) {
				disturb()
				got, err := op.do()
				require.NoError(t, err, op.name)
				require.Equal(t, op.want, got, op.name)
			}
			records, err := s.Records(ctx, o)
			require.NoError(t, err)
			assert.Len(t, records, 1)
			all, err := s.Activity(ctx, o, time.Now().Add(-time.Hour))
			require.NoError(t, err)
			assert.EqualValues(t, 1, all[0].Last.Turns)
		})
	}
}

func TestOutageASecondRecordWithTheIdIsNotFresh(t *testing.T) {
	s := opened(t, redistest.Single(t).URL())
	for _, fresh := range []bool{true, false, false} {
		got, err := s.Record(ctx, store.Record{ID: "op", App: "shop", User: "ann"})
		require.NoError(t, err)
		assert.Equal(t, fresh, got)
	}
}

func TestOutageAServerThatIsAwayCostsOneTimeout(t *testing.T) {
	server := redistest.Single(t)
	const timeout = 200 * time.Millisecond
	s := opened(t, server.URL(), func(c *Config) { c.Timeout = timeout })
	_, err := take(s, ann, 1)
	require.NoError(t, err)

	fails := func() {
		t.Helper()
		began := time.Now()
		_, err := take(s, ann, 1)
		require.ErrorIs(t, err, store.ErrUnavailable)
		assert.Less(t, time.Since(began), timeout+100*time.Millisecond)
	}
	server.Pause(t)
	fails()
	fails() // on a connection that is not greeted either
	server.Resume(t)
	require.Eventually(t, func() bool { _, err := take(s, ann, 1); return err == nil }, patient, 10*time.Millisecond)
	server.Kill(t)
	fails()
	server.Restart(t)
	require.Eventually(t, func() bool { _, err := take(s, ann, 1); return err == nil }, patient, 10*time.Millisecond)
	assert.EqualValues(t, 99, balance(t, s, ann), "it came back empty, which is full")
}

func TestOutageAServerOutOfMemoryTakesNothingAndGivesBack(t *testing.T) {
	server := redistest.Single(t)
	s := opened(t, server.URL())
	id := newID()
	_, err := s.Admit(ctx, turn(id, ann))
	require.NoError(t, err)

	server.Do(t, "CONFIG", "SET", "maxmemory", "1")
	_, err = s.Admit(ctx, turn(newID(), ann))
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, "maxmemory")
	left, err := s.Settle(ctx, store.Reservation{ID: id, Owner: ann, Limit: "tokens", Bucket: hourly}, 20)
	require.NoError(t, err)
	assert.EqualValues(t, 80, left)
	lease := store.Lease{Owner: ann, Limit: "runs", Member: id, Cap: runs}
	renewed, err := s.Renew(ctx, []store.Lease{lease})
	require.NoError(t, err)
	assert.Equal(t, []bool{true}, renewed)
	held, err := s.Free(ctx, lease)
	require.NoError(t, err)
	assert.True(t, held)
}
