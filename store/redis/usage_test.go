package redis

import (
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
