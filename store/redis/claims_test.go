package redis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/redis/redistest"
)

func TestClaimATokenOfBeforeAFlushIsFenced(t *testing.T) {
	server := redistest.Single(t)
	s := opened(t, server.URL())
	key := store.ClaimKey{Owner: ann, Name: "turns", Key: "m-1"}
	before, err := s.Claim(ctx, key, "worker-1", time.Minute)
	require.NoError(t, err)
	server.Do(t, "FLUSHALL")
	after, err := s.Claim(ctx, key, "worker-2", time.Minute)
	require.NoError(t, err)
	assert.Equal(t, store.Claimed, after.State)
	assert.Greater(t, after.Token, before.Token)
	assert.ErrorIs(t, s.EndClaim(ctx, key, before.Token, []byte("late"), time.Minute), store.ErrFenced)
	assert.NoError(t, s.EndClaim(ctx, key, after.Token, []byte("done"), time.Minute))
}
