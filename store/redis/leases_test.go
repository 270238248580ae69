package redis

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/redis/redistest"
)

// manyLeases takes every second of n leases, of three users in turn and some
// more of one.
func manyLeases(t *testing.T, s *Store, n int) (leases []store.Lease, held []bool) {
	calls := make([]*call, 0, n)
	for i := range n {
		l := store.Lease{Owner: store.Owner{Kind: store.OwnerUser, App: "shop", User: fmt.Sprint("user-", i/3)}, Limit: "runs", Member: fmt.Sprint("run-", i), Cap: runs}
		if i%10 == 0 {
			l.Owner = ann
		}
		leases, held = append(leases, l), append(held, i%2 == 0)
		if i%2 == 0 {
			o := s.owned(l.Owner)
			calls = append(calls, s.call("admit", []string{o.operation(l.Member), o.buckets(), o.leases(l.Limit)}, remembered, 1, "lease", n, runs.Expires.Milliseconds(), l.Member))
		}
	}
	require.NoError(t, s.do(ctx, calls...))
	return leases, held
}

func TestLeaseThousandsAreRenewedInPipelines(t *testing.T) {
	server := redistest.Single(t)
	wire := redistest.Proxy(t, server.Addr)
	s := opened(t, "redis://"+wire.Addr)
	leases, held := manyLeases(t, s, 3000)
	sets := map[store.Owner]bool{}
	for _, l := range leases {
		sets[l.Owner] = true
	}

	before, calls := wire.RoundTrips(), scriptCalls(t, server)
	got, err := s.Renew(ctx, leases)
	require.NoError(t, err)
	assert.Equal(t, held, got)
	assert.EqualValues(t, len(sets), scriptCalls(t, server)-calls, "one call for each set")
	assert.Less(t, wire.RoundTrips()-before, int64(len(sets)/50), "a large pipeline is answered while it is still sent, which counts more than once")

	server.Do(t, "SCRIPT", "FLUSH")
	got, err = s.Renew(ctx, leases)
	require.NoError(t, err)
	assert.Equal(t, held, got, "in a pipeline, too, the scripts are sent again")

	wire.DropReplies(1)
	got, err = s.Renew(ctx, leases)
	require.NoError(t, err)
	assert.Equal(t, held, got)
	live, err := s.Held(ctx, leases[1].Owner, "runs")
	require.NoError(t, err)
	assert.EqualValues(t, 1, live, "what was not held is not held now")
}

// scriptCalls counts the scripts that a server was asked to run.
func scriptCalls(t *testing.T, server *redistest.Server) int {
	t.Helper()
	var calls int
	_, err := fmt.Sscanf(server.Info(t, "cmdstat_evalsha"), "calls=%d,", &calls)
	require.NoError(t, err)
	return calls
}
