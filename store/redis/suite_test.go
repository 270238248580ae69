package redis

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store/storetest"
)

func startServer(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	cmd := exec.Command("redis-server", "--port", fmt.Sprint(port), "--save", "", "--dir", t.TempDir())
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	addr := fmt.Sprint("127.0.0.1:", port)
	c := goredis.NewClient(&goredis.Options{Addr: addr})
	defer c.Close()
	require.Eventually(t, func() bool { return c.Ping(context.Background()).Err() == nil }, 5*time.Second, 10*time.Millisecond)
	return addr
}

// testClock is the line by which the tests' scripts read the suite's clock.
const testClock = "local time = redis.call('LRANGE', 'clock', 0, 1)\n"

// serverClock is a storetest.Clock that the scripts go by.
type serverClock struct {
	*storetest.ManualClock
	t      testing.TB
	client *goredis.Client
}

func newServerClock(t testing.TB, addr string) serverClock {
	c := serverClock{storetest.NewClock(), t, goredis.NewClient(&goredis.Options{Addr: addr})}
	t.Cleanup(func() { require.NoError(t, c.client.Close()) })
	c.tell()
	return c
}

func (c serverClock) tell() {
	now := c.Now()
	pipe := c.client.TxPipeline()
	pipe.Del(context.Background(), "clock")
	pipe.RPush(context.Background(), "clock", strconv.FormatInt(now.Unix(), 10), strconv.Itoa(now.Nanosecond()/1000))
	_, err := pipe.Exec(context.Background())
	require.NoError(c.t, err)
}

func (c serverClock) Set(t time.Time) {
	c.ManualClock.Set(t)
	c.tell()
}

func (c serverClock) Advance(d time.Duration) {
	c.ManualClock.Advance(d)
	c.tell()
}

func TestSuite(t *testing.T) {
	addr := startServer(t)
	clock := newServerClock(t, addr)
	namespace := 0
	storetest.Run(t, func(t *testing.T) storetest.Engine {
		namespace++
		s, err := open(context.Background(), Config{URL: "redis://" + addr, Namespace: fmt.Sprint("suite-", namespace), Timeout: 30 * time.Second}, testClock)
		require.NoError(t, err)
		return storetest.Engine{Store: s, Clock: clock}
	})
}

func TestExactOnlyTheClockLineDiffers(t *testing.T) {
	shipped, tested := loadScripts(timeLine), loadScripts(testClock)
	for name, s := range shipped {
		require.Equal(t, 1, strings.Count(s.source, timeLine), name)
		require.Equal(t, 1, strings.Count(s.source, "TIME"), name)
		require.Equal(t, strings.Replace(s.source, timeLine, testClock, 1), tested[name].source)
	}
}
