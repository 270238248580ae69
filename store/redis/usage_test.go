package redis

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/redis/redistest"
)

func TestTheNewestRecordsOfAUserAreKept(t *testing.T) {
	s := opened(t, redistest.Single(t).URL())
	require.NoError(t, fillRecords(s))
	last := store.Record{ID: "last", App: ann.App, User: ann.User}
	fresh, err := s.Record(ctx, last)
	require.NoError(t, err)
	assert.True(t, fresh)

	records, err := s.Records(ctx, store.Owner{Kind: store.OwnerApp, App: ann.App})
	require.NoError(t, err)
	require.Len(t, records, MaxRecords)
	assert.Equal(t, last.ID, records[MaxRecords-1].ID)
}

func TestManyUsersAreFoundThroughTheIndex(t *testing.T) {
	server := redistest.Single(t)
	s := opened(t, server.URL())
	const users = 1200
	began := time.Now()
	for i := range users {
		_, err := s.Record(ctx, store.Record{ID: "op", App: fmt.Sprint("app-", i%2), User: fmt.Sprint("user-", i), Time: began, Turn: true})
		require.NoError(t, err)
	}
	all, err := s.Activity(ctx, store.Owner{Kind: store.OwnerGlobal}, began)
	require.NoError(t, err)
	assert.Len(t, all, users)
	all, err = s.Activity(ctx, store.Owner{Kind: store.OwnerApp, App: "app-1"}, began)
	require.NoError(t, err)
	assert.Len(t, all, users/2)
	all, err = s.Activity(ctx, store.Owner{Kind: store.OwnerGlobal}, began.Add(2*time.Minute))
	require.NoError(t, err)
	assert.Empty(t, all)

	// A record heals an index that was lost.
	for n := range shards {
		server.Do(t, "DEL", s.shard(uint32(n)))
	}
	_, err = s.Record(ctx, store.Record{ID: "op-2", App: "app-0", User: "user-0", Time: began})
	require.NoError(t, err)
	all, err = s.Activity(ctx, store.Owner{Kind: store.OwnerGlobal}, began)
	require.NoError(t, err)
	assert.Len(t, all, 1)
}

// What one user or one part of the index has in its way takes nothing from
// those who look at all: it is skipped, and said.
func TestWhatIsInTheWayOfOneUserIsSkippedWhereAllAreRead(t *testing.T) {
	server := redistest.Single(t)
	s := opened(t, server.URL())
	all := store.Owner{Kind: store.OwnerGlobal}
	for i := range 200 {
		_, err := s.Record(ctx, store.Record{ID: "op", App: "shop", User: fmt.Sprint("user-", i), Time: time.Now(), Turn: true})
		require.NoError(t, err)
	}
	read := func() (records, activity int, errs [2]error) {
		r, err1 := s.Records(ctx, all)
		a, err2 := s.Activity(ctx, all, time.Now().Add(-time.Hour))
		return len(r), len(a), [2]error{err1, err2}
	}
	one := s.owned(store.Owner{Kind: store.OwnerUser, App: "shop", User: "user-7"})
	put := func(args ...any) {
		server.Do(t, "DEL", args[1])
		server.Do(t, args...)
	}
	for _, spoilt := range []func(){
		func() {
			server.Do(t, "HSET", one.records(), "op", "x")
			server.Do(t, "HSET", one.activity(), "strange", "x")
		},
		func() { put("SET", one.records(), "x"); put("SET", one.activity(), "x") },
	} {
		spoilt()
		records, activity, errs := read()
		assert.Equal(t, 199, records)
		assert.Equal(t, 199, activity)
		for i, what := range []string{"records", "activity"} {
			require.ErrorIs(t, errs[i], store.ErrIncomplete)
			assert.NotErrorIs(t, errs[i], store.ErrUnavailable)
			assert.ErrorContains(t, errs[i], "1 users' "+what+" skipped: ")
			assert.NotContains(t, errs[i].Error(), "user-7")
		}
		_, err := s.Records(ctx, store.Owner{Kind: store.OwnerUser, App: "shop", User: "user-7"})
		assert.ErrorIs(t, err, store.ErrOnlyThis, "who asks for this one is told")
		assert.NotErrorIs(t, err, store.ErrIncomplete)
	}

	put("SET", s.shard(3), "x")
	records, activity, errs := read()
	assert.Less(t, records, 199)
	assert.Greater(t, records, 100)
	assert.Equal(t, records, activity)
	assert.ErrorContains(t, errs[0], "1 of 16 parts of the index of users skipped: redis active_read: store unavailable")

	server.Pause(t)
	defer server.Resume(t)
	impatient, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, err := s.Records(impatient, all)
	require.ErrorIs(t, err, store.ErrUnavailable)
	assert.NotErrorIs(t, err, store.ErrIncomplete, "a server that is away is nothing to skip")
}

func TestWhoReadsManyUsersIsToldHowFarItIs(t *testing.T) {
	s := opened(t, redistest.Single(t).URL())
	for i := range 40 {
		_, err := s.Record(ctx, store.Record{ID: "op", App: "shop", User: fmt.Sprint("user-", i), Time: time.Now()})
		require.NoError(t, err)
	}
	var told [][2]int
	following := store.WithProgress(ctx, func(read, of int) { told = append(told, [2]int{read, of}) })
	_, err := s.Records(following, store.Owner{Kind: store.OwnerGlobal})
	require.NoError(t, err)
	assert.Equal(t, [][2]int{{0, 40}, {16, 40}, {32, 40}}, told)
}
