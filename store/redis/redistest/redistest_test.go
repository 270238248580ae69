package redistest_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store/redis/redistest"
)

func TestServersAreApart(t *testing.T) {
	one, other := redistest.Single(t), redistest.Single(t)
	one.Do(t, "SET", "k", "v")
	assert.Equal(t, "v", one.Do(t, "GET", "k"))
	assert.Nil(t, other.Do(t, "GET", "k"))
}

func TestServerIsGoneWithItsTest(t *testing.T) {
	redistest.Require(t)
	var addr string
	t.Run("test", func(t *testing.T) { addr = redistest.Single(t).Addr })
	_, err := net.Dial("tcp", addr)
	assert.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func refusesSoon(t *testing.T, addr string) {
	t.Helper()
	assert.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, 5*time.Second, 20*time.Millisecond)
}

func TestServerIsTakenAwayAndComesBack(t *testing.T) {
	for name, away := range map[string]func(*redistest.Server){
		"stopped": func(s *redistest.Server) { s.Stop(t) },
		"killed":  func(s *redistest.Server) { s.Kill(t) },
		"paused":  func(s *redistest.Server) { s.Pause(t) },
	} {
		t.Run(name, func(t *testing.T) {
			kept, lost := redistest.Single(t, redistest.AppendOnly()), redistest.Single(t)
			for _, s := range []*redistest.Server{kept, lost} {
				s.Do(t, "SET", "k", "v")
				away(s)
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				assert.Error(t, client(t, &redis.Options{Addr: s.Addr}).Ping(ctx).Err())
				cancel()
				s.Restart(t)
			}
			assert.Equal(t, "v", kept.Do(t, "GET", "k"))
			assert.Nil(t, lost.Do(t, "GET", "k"))
		})
	}
}

func TestPausedServerGoesOn(t *testing.T) {
	s := redistest.Single(t)
	s.Do(t, "SET", "k", "v")
	s.Pause(t)
	s.Resume(t)
	assert.Equal(t, "v", s.Do(t, "GET", "k"))
}

func TestConfigAndPassword(t *testing.T) {
	s := redistest.Single(t, redistest.Config("maxmemory 10mb"), redistest.Password("a b"))
	assert.Equal(t, "10485760", s.Info(t, "maxmemory"))
	assert.Error(t, client(t, &redis.Options{Addr: s.Addr}).Ping(t.Context()).Err())
	o, err := redis.ParseURL(s.URL())
	require.NoError(t, err)
	assert.NoError(t, client(t, o).Ping(t.Context()).Err())
}

func TestServerWithoutADefaultUser(t *testing.T) {
	users := t.TempDir() + "/users.acl"
	require.NoError(t, os.WriteFile(users, []byte("user default off\nuser ann on >secret ~* +@all\n"), 0o600))
	s := redistest.Single(t, redistest.Config("aclfile "+users))
	assert.NoError(t, client(t, &redis.Options{Addr: s.Addr, Username: "ann", Password: "secret"}).Ping(t.Context()).Err())
}

func TestTLS(t *testing.T) {
	s := redistest.Single(t, redistest.TLS(), redistest.Config("tls-auth-clients yes"))
	s.Do(t, "PING")
	ca, err := os.ReadFile(s.CA)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(ca))
	cert, err := tls.LoadX509KeyPair(s.Cert, s.Key)
	require.NoError(t, err)
	o, err := redis.ParseURL(s.URL())
	require.NoError(t, err)

	o.TLSConfig.RootCAs = roots
	assert.Error(t, client(t, o).Ping(t.Context()).Err(), "without a certificate")
	o.TLSConfig.Certificates = []tls.Certificate{cert}
	assert.NoError(t, client(t, o).Ping(t.Context()).Err())
	o.TLSConfig.RootCAs = nil
	assert.Error(t, client(t, o).Ping(t.Context()).Err(), "of an unknown authority")
}

func TestReplica(t *testing.T) {
	master, replica := redistest.Single(t, redistest.Password("p")), redistest.Single(t)
	replica.MakeReplicaOf(t, master)
	master.Do(t, "SET", "k", "v")
	master.Do(t, "WAIT", 1, 5000)
	assert.Equal(t, "v", replica.Do(t, "GET", "k"))
	assert.ErrorContains(t, replica.Client.Set(t.Context(), "k", "w", 0).Err(), "READONLY")
}

// A server that cannot start fails its test, with what it wrote to its log.
func TestServerThatCannotStart(t *testing.T) {
	redistest.Require(t)
	f := &failed{TB: t}
	var ended sync.WaitGroup
	ended.Go(func() { redistest.Single(f, redistest.Config("no-such-line 1")) })
	ended.Wait()
	assert.Contains(t, f.text, "no-such-line")
}

// failed is a test whose failure is looked at.
type failed struct {
	testing.TB
	text string
}

func (f *failed) Errorf(format string, args ...any) { f.text += fmt.Sprintf(format, args...) }
func (f *failed) FailNow()                          { runtime.Goexit() }

func TestMissingServer(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for list, fails := range map[string]bool{"": false, "pubsub": false, "redis": true, "pubsub,redis": true} {
		t.Setenv("HOOKHOST_TEST_REQUIRE", list)
		o := &outcome{TB: t}
		var ended sync.WaitGroup
		ended.Go(func() { redistest.Require(o) })
		ended.Wait()
		assert.Equal(t, fails, o.failed, list)
		assert.Equal(t, !fails, o.skipped, list)
	}
}

// outcome is a test whose end is looked at.
type outcome struct {
	testing.TB
	failed, skipped bool
}

func (o *outcome) Fatalf(string, ...any) { o.failed = true; runtime.Goexit() }
func (o *outcome) Skipf(string, ...any)  { o.skipped = true; runtime.Goexit() }

func TestSentinelFailsOver(t *testing.T) {
	trio := redistest.Sentinel(t)
	o, err := redis.ParseFailoverURL(strings.Replace(trio.URL(), "redis+sentinel", "redis", 1))
	require.NoError(t, err)
	c := redis.NewFailoverClient(o)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.Set(t.Context(), "k", "v", 0).Err())
	trio.Master.Do(t, "WAIT", 1, 5000)

	first := trio.Master
	trio.Failover(t)
	require.NotEqual(t, first, trio.Master)
	assert.Equal(t, first, trio.Replica)
	assert.Equal(t, "v", c.Get(t.Context(), "k").Val())
	require.NoError(t, c.Set(t.Context(), "k", "w", 0).Err())
	assert.Equal(t, "w", trio.Master.Do(t, "GET", "k"))
}

func TestClusterFailsOver(t *testing.T) {
	shards := redistest.Cluster(t)
	o, err := redis.ParseClusterURL(strings.Replace(shards.URL(), "redis+cluster", "redis", 1))
	require.NoError(t, err)
	c := redis.NewClusterClient(o)
	t.Cleanup(func() { _ = c.Close() })
	keys := []string{"a", "b", "c", "d", "e", "f"}
	for _, key := range keys {
		require.NoError(t, c.Set(t.Context(), key, key, 0).Err())
	}
	for _, master := range shards.Nodes[:3] {
		assert.NotEmpty(t, master.Info(t, "db0"), "each master has keys")
		master.Do(t, "WAIT", 1, 5000)
	}

	shards.Failover(t, 0)
	c.ReloadState(t.Context()) // a client that only meets a dead master does not do this for up to a minute
	for _, key := range keys {
		assert.Eventually(t, func() bool { return c.Get(t.Context(), key).Val() == key }, 10*time.Second, 50*time.Millisecond)
	}
}

func TestProxyCountsRoundTrips(t *testing.T) {
	s := redistest.Single(t)
	w := redistest.Proxy(t, s.Addr)
	c := client(t, &redis.Options{Addr: w.Addr})
	require.NoError(t, c.Ping(t.Context()).Err())
	assert.EqualValues(t, 1, w.RoundTrips(), "the handshake is none")
	_, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for range 1000 {
			p.Incr(t.Context(), "n")
		}
		return nil
	})
	require.NoError(t, err)
	assert.EqualValues(t, 2, w.RoundTrips(), "a pipeline is one")
}

func TestProxyDelaysReplies(t *testing.T) {
	w := redistest.Proxy(t, redistest.Single(t).Addr)
	c := client(t, &redis.Options{Addr: w.Addr})
	require.NoError(t, c.Ping(t.Context()).Err())
	w.Delay(50 * time.Millisecond)
	start := time.Now()
	require.NoError(t, c.Ping(t.Context()).Err())
	assert.GreaterOrEqual(t, time.Since(start), 50*time.Millisecond)
}

func TestProxyDropsReplies(t *testing.T) {
	s := redistest.Single(t)
	w := redistest.Proxy(t, s.Addr)
	c := client(t, &redis.Options{Addr: w.Addr})
	w.DropReplies(2)
	assert.Error(t, c.Incr(t.Context(), "n").Err())
	assert.Error(t, c.Incr(t.Context(), "n").Err())
	assert.EqualValues(t, 3, c.Incr(t.Context(), "n").Val(), "the server did all of it")
}

func TestProxyIsCutAndMended(t *testing.T) {
	w := redistest.Proxy(t, redistest.Single(t).Addr)
	c := client(t, &redis.Options{Addr: w.Addr})
	require.NoError(t, c.Ping(t.Context()).Err())
	w.Cut()
	assert.ErrorIs(t, c.Ping(t.Context()).Err(), syscall.ECONNREFUSED)
	w.Mend(t)
	assert.NoError(t, c.Ping(t.Context()).Err())
}

func client(t *testing.T, o *redis.Options) *redis.Client {
	o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries = true, -1, 1
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}
