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

// comesBack waits until an operation works again.
func comesBack(t *testing.T, what string, do func() error) {
	t.Helper()
	var err error
	require.Eventually(t, func() bool { err = do(); return err == nil }, patient, 50*time.Millisecond, "%s: %v", what, err)
}

func short(c *Config) { c.Timeout = 500 * time.Millisecond }

func TestOutageASentinelFailsOver(t *testing.T) {
	trio := redistest.Sentinel(t)
	s := opened(t, trio.URL(), short)
	succeed(t, s, ann)
	require.NoError(t, s.Refill(ctx, ann, "tokens"))
	_, err := take(s, ann, 40)
	require.NoError(t, err)
	trio.Master.Do(t, "WAIT", 1, 5000)

	trio.Failover(t)
	comesBack(t, "take", func() error { _, err := s.Balance(ctx, ann, "tokens", hourly); return err })
	assert.EqualValues(t, 60, balance(t, s, ann), "what was replicated is kept")
	succeed(t, s, store.Owner{Kind: store.OwnerUser, App: "shop", User: "bob"})
}

func TestSlotsAndOutageOnACluster(t *testing.T) {
	cluster := redistest.Cluster(t)
	s := opened(t, cluster.URL(), short)
	t.Run("all operations", func(t *testing.T) { succeed(t, s, ann) })
	t.Run("odd ids", func(t *testing.T) { oddIDsAreInOneSlotEach(t, s, cluster) })
	t.Run("an acl", func(t *testing.T) { theDocumentedUserSuffices(t, cluster) })
	t.Run("leases of many nodes are renewed together", func(t *testing.T) {
		leases, held := manyLeases(t, s, 3000)
		got, err := s.Renew(ctx, leases)
		require.NoError(t, err)
		assert.Equal(t, held, got)
		for _, node := range cluster.Nodes[:3] {
			node.Do(t, "SCRIPT", "FLUSH")
		}
		got, err = s.Renew(ctx, leases)
		require.NoError(t, err)
		assert.Equal(t, held, got)
	})
	t.Run("a master that hangs holds up no lease of the others", func(t *testing.T) {
		leases, _ := manyLeases(t, s, 3000)
		for _, node := range cluster.Nodes[:3] {
			node.Do(t, "SCRIPT", "FLUSH") // nor do they have to know the script
		}
		renewed := func(node *redistest.Server) (n int) {
			for _, l := range leases {
				n += int(node.Client.ZCount(ctx, s.owned(l.Owner).leases(l.Limit), fmt.Sprint(time.Now().Add(90*time.Minute).UnixMilli()), "+inf").Val())
			}
			return n
		}
		cluster.Nodes[0].Pause(t)
		for i := range leases {
			leases[i].Cap.Expires = 2 * time.Hour
		}
		_, err := s.Renew(ctx, leases)
		require.ErrorIs(t, err, store.ErrUnavailable)
		cluster.Nodes[0].Resume(t)
		some := renewed(cluster.Nodes[1]) + renewed(cluster.Nodes[2])
		comesBack(t, "renew", func() error { _, err := s.Renew(ctx, leases); return err })
		all := renewed(cluster.Nodes[1]) + renewed(cluster.Nodes[2])
		assert.Equal(t, all, some)
		assert.Greater(t, some, 1000)
	})
	t.Run("a failover", func(t *testing.T) {
		for _, o := range oddOwners() {
			require.NoError(t, s.Refill(ctx, o, "tokens"))
			_, err := take(s, o, 40)
			require.NoError(t, err)
		}
		for _, node := range cluster.Nodes[:3] {
			node.Do(t, "WAIT", 1, 5000)
		}
		cluster.Failover(t, 0)
		for _, o := range oddOwners() {
			comesBack(t, "balance", func() error { _, err := s.Balance(ctx, o, "tokens", hourly); return err })
			assert.EqualValues(t, 60, balance(t, s, o))
		}
		succeed(t, s, store.Owner{Kind: store.OwnerUser, App: "shop", User: "bob"})
	})
}
