package redistest

import (
	"context"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	masters  = 3
	allSlots = 16384
)

// Shards are the nodes of a cluster: three masters, and the replica of each
// three places after it.
type Shards struct {
	Nodes []*Server
}

// Cluster starts a cluster of three masters with a replica each and waits until
// all nodes agree on it. It gives up a master that is away for two seconds.
func Cluster(t testing.TB, options ...Option) *Shards {
	t.Helper()
	options = append([]Option{Config("cluster-enabled yes", "cluster-node-timeout 2000",
		"cluster-replica-validity-factor 0", "cluster-allow-replica-migration no",
		"repl-ping-replica-period 1", // nodes do not show a replica that has received nothing
	)}, options...)
	c := &Shards{}
	for range 2 * masters {
		c.Nodes = append(c.Nodes, Single(t, options...))
	}
	for i, node := range c.Nodes {
		node.Do(t, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
		if i < masters {
			node.Do(t, "CLUSTER", "ADDSLOTSRANGE", i*allSlots/masters, (i+1)*allSlots/masters-1)
		}
		c.Nodes[0].Do(t, "CLUSTER", "MEET", "127.0.0.1", node.port)
	}
	c.wait(t, "all nodes have met", func(node *Server) bool {
		return node.Info(t, "cluster_enabled") == "1" && node.clusterInfo(t, "cluster_known_nodes") == "6" &&
			node.clusterInfo(t, "cluster_size") == "3"
	})
	for i, replica := range c.Nodes[masters:] {
		replica.Do(t, "CLUSTER", "REPLICATE", c.Nodes[i].Do(t, "CLUSTER", "MYID"))
	}
	c.wait(t, "all nodes agree", func(node *Server) bool { return node.agrees(t, nil) })
	for _, replica := range c.Nodes[masters:] {
		eventually(t, patience, "a replica follows", func() bool { return replica.Info(t, "master_link_status") == "up" })
	}
	return c
}

// URL is where clients find the cluster.
func (c *Shards) URL() string {
	u := url.URL{Scheme: "redis+cluster", Host: c.Nodes[0].Addr}
	if p := c.Nodes[0].password; p != "" {
		u.User = url.UserPassword("", p)
	}
	query := url.Values{}
	for _, node := range c.Nodes[1:] {
		query.Add("addr", node.Addr)
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// Failover kills a master, 0 to 2, and waits until the others agree that its
// replica is the master.
func (c *Shards) Failover(t testing.TB, master int) {
	t.Helper()
	killed := c.Nodes[master]
	killed.Kill(t)
	c.wait(t, "all nodes agree on the new master", func(node *Server) bool {
		return node == killed || node.agrees(t, killed)
	})
}

func (c *Shards) wait(t testing.TB, what string, so func(*Server) bool) {
	t.Helper()
	for _, node := range c.Nodes {
		eventually(t, patience, what, func() bool { return so(node) })
	}
}

// agrees reports whether a node sees all slots served by masters, with all of
// their replicas but one where a node was lost.
func (s *Server) agrees(t testing.TB, lost *Server) bool {
	t.Helper()
	if s.clusterInfo(t, "cluster_state") != "ok" {
		return false
	}
	shards, err := s.Client.ClusterShards(context.Background()).Result()
	require.NoError(t, err)
	serving := map[string]int{} // by role
	for _, shard := range shards {
		for _, node := range shard.Nodes {
			if len(shard.Slots) == 0 || node.Health != "online" {
				continue
			}
			if lost != nil && int(node.Port) == lost.port {
				return false
			}
			serving[node.Role]++
		}
	}
	replicas := masters
	if lost != nil {
		replicas--
	}
	return serving["master"] == masters && serving["replica"] == replicas
}

func (s *Server) clusterInfo(t testing.TB, field string) string {
	t.Helper()
	info, err := s.Client.ClusterInfo(context.Background()).Result()
	require.NoError(t, err)
	return fieldOf(info, field)
}
