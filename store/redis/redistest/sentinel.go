package redistest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// MasterName is what the sentinels call their master.
const MasterName = "hookhost"

// Trio is a master and a replica under three sentinels.
type Trio struct {
	Master, Replica *Server // Failover changes them
	Sentinels       []*Server
}

// Sentinel starts a master, its replica and three sentinels that know all of
// them. They give up a master that is away for a second.
func Sentinel(t testing.TB, options ...Option) *Trio {
	t.Helper()
	trio := &Trio{Master: Single(t, options...), Replica: Single(t, options...)}
	trio.Replica.MakeReplicaOf(t, trio.Master)
	for range 3 {
		s := &Server{dir: t.TempDir(), settings: settings{sentinel: true, lines: []string{
			fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", MasterName, trio.Master.port),
			fmt.Sprintf("sentinel down-after-milliseconds %s 1000", MasterName),
			fmt.Sprintf("sentinel failover-timeout %s 3000", MasterName),
		}}}
		if trio.Master.password != "" {
			s.lines = append(s.lines, fmt.Sprintf("sentinel auth-pass %s %q", MasterName, trio.Master.password))
		}
		s.launch(t)
		trio.Sentinels = append(trio.Sentinels, s)
	}
	for _, s := range trio.Sentinels {
		eventually(t, patience, "a sentinel knows the others and the replica", func() bool {
			m := s.master(t)
			return m["num-other-sentinels"] == "2" && m["num-slaves"] == "1" && m["flags"] == "master"
		})
	}
	return trio
}

// URL is where clients find the sentinels.
func (trio *Trio) URL() string {
	u := url.URL{Scheme: "redis+sentinel", Host: trio.Sentinels[0].Addr}
	if trio.Master.password != "" {
		u.User = url.UserPassword("", trio.Master.password)
	}
	query := url.Values{"master_name": {MasterName}}
	for _, s := range trio.Sentinels[1:] {
		query.Add("addr", s.Addr)
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// Failover kills the master and waits until the sentinels made the replica the
// master. The old one is Replica then; a Restart brings it back as that.
func (trio *Trio) Failover(t testing.TB) {
	t.Helper()
	trio.Master.Kill(t)
	trio.Master, trio.Replica = trio.Replica, trio.Master
	for _, s := range trio.Sentinels {
		eventually(t, patience, "a sentinel names the new master", func() bool {
			m := s.master(t)
			return net.JoinHostPort(m["ip"], m["port"]) == trio.Master.Addr
		})
	}
	eventually(t, patience, "the replica is a master", func() bool { return trio.Master.Info(t, "role") == "master" })
}

// master is what a sentinel says of the master.
func (s *Server) master(t testing.TB) map[string]string {
	t.Helper()
	cmd := redis.NewMapStringStringCmd(context.Background(), "SENTINEL", "MASTER", MasterName)
	require.NoError(t, s.Client.Process(context.Background(), cmd))
	return cmd.Val()
}
