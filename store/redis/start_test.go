package redis

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/redis/redistest"
)

const secret = "s3cret-/@#?%:"

// refusal is what Open says about a Config. It never names the password.
func refusal(t *testing.T, url string, options ...func(*Config)) error {
	t.Helper()
	c := Config{URL: url, Namespace: "test", Timeout: 2 * time.Second, Log: quiet()}
	for _, option := range options {
		option(&c)
	}
	s, err := Open(ctx, c)
	if err == nil {
		require.NoError(t, s.Close(ctx))
	}
	require.Error(t, err)
	for _, part := range []string{"s3cret", secret} {
		assert.NotContains(t, err.Error(), part)
	}
	return err
}

func login(user, password string) func(*Config) {
	return func(c *Config) { c.Username, c.Password = user, password }
}

func TestOutageAWrongURLIsExplained(t *testing.T) {
	for url, says := range map[string]string{
		"":                                            "scheme",
		"localhost:6379":                              "scheme",
		"http://localhost":                            "want redis, rediss",
		"redis+ring://localhost":                      "want +sentinel or +cluster",
		"redis+sentinel://localhost":                  "master_name",
		"redis://localhost/zero":                      "database number",
		"redis://localhost?colour=red":                "colour",
		"redis://localhost?pool_size=many":            "pool_size",
		"redis+cluster://localhost?addr=x":            "addr",
		"redis://:s3cret-/@#?%:@localhost":            "as %XX",
		"redis://:12/s3cret@localhost":                "as %XX",
		"redis://:12?s3cret@localhost":                "as %XX",
		"redis://:12#s3cret@localhost":                "as %XX",
		"redis+sentinel://:12/s3cret@h?master_name=m": "as %XX",
	} {
		err := refusal(t, url)
		assert.ErrorContains(t, err, "url", url)
		assert.ErrorContains(t, err, says, url)
		assert.NotErrorIs(t, err, store.ErrUnavailable, url)
	}
}

func TestOutageAWrongConfigIsExplained(t *testing.T) {
	for _, namespace := range []string{"", "Shop", "a:b", "{a}", strings.Repeat("a", 65)} {
		assert.ErrorContains(t, refusal(t, "redis://localhost", func(c *Config) { c.Namespace = namespace }), "namespace")
	}
	empty := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for says, change := range map[string]func(*Config){
		"use rediss://":    func(c *Config) { c.URL, c.CA = "redis://localhost", empty },
		"no certificate":   func(c *Config) { c.CA = empty },
		"ca: open":         func(c *Config) { c.CA = empty + "2" },
		"go together":      func(c *Config) { c.Cert = empty },
		"cert, key: tls: ": func(c *Config) { c.Cert, c.Key = empty, empty },
	} {
		assert.ErrorContains(t, refusal(t, "rediss://localhost", change), says)
	}
}

func TestOutageNobodyIsThere(t *testing.T) {
	server := redistest.Single(t)
	server.Kill(t)
	err := refusal(t, server.URL())
	assert.ErrorIs(t, err, store.ErrUnavailable)
	assert.ErrorContains(t, err, "check that the server runs")
}

func TestACLPasswordsAndUsers(t *testing.T) {
	server := redistest.Single(t, redistest.Password(secret))
	succeed(t, opened(t, server.URL()), ann)
	succeed(t, opened(t, "redis://"+server.Addr, login("", secret)), ann)
	succeed(t, opened(t, "redis://:wrong@"+server.Addr, login("", secret)), ann)
	server.Do(t, "ACL", "SETUSER", "kim", "on", ">"+secret, "+@all", "~*")
	succeed(t, opened(t, "redis://"+server.Addr, login("kim", secret)), ann)

	for _, c := range []struct {
		user, password, says string
	}{
		{"", "", "the server wants a password"},
		{"", "s3cret2", "check username and password"},
		{"kim", "s3cret2", "check username and password"},
		{"nobody", secret, "check username and password"},
	} {
		err := refusal(t, "redis://"+server.Addr, login(c.user, c.password))
		assert.ErrorIs(t, err, store.ErrUnavailable)
		assert.ErrorContains(t, err, c.says)
	}
}

func TestOutageTLS(t *testing.T) {
	server := redistest.Single(t, redistest.TLS(), redistest.Password(secret))
	succeed(t, opened(t, server.URL(), func(c *Config) { c.CA = server.CA }), ann)
	succeed(t, opened(t, server.URL(), func(c *Config) { c.CA, c.Cert, c.Key = server.CA, server.Cert, server.Key }), ann)

	err := refusal(t, server.URL())
	assert.ErrorIs(t, err, store.ErrUnavailable)
	assert.ErrorContains(t, err, "set ca")
	assert.ErrorIs(t, refusal(t, "redis://"+server.Addr), store.ErrUnavailable, "no TLS")

	server.Do(t, "CONFIG", "SET", "tls-auth-clients", "yes")
	assert.ErrorIs(t, refusal(t, server.URL(), func(c *Config) { c.CA = server.CA }), store.ErrUnavailable, "it wants to know who this is")
	succeed(t, opened(t, server.URL(), func(c *Config) { c.CA, c.Cert, c.Key = server.CA, server.Cert, server.Key }), ann)
}

func TestOutageWhereOneSpeaksTLSAndTheOtherDoesNot(t *testing.T) {
	plain, secure := redistest.Single(t), redistest.Single(t, redistest.TLS())
	for url, says := range map[string]string{
		"rediss://" + plain.Addr:                             "has to begin with redis://",
		"rediss+cluster://" + plain.Addr:                     "has to begin with redis+cluster://",
		"rediss+sentinel://" + plain.Addr + "?master_name=m": "has to begin with redis+sentinel://",
		"redis://" + secure.Addr:                             "has to begin with rediss://",
		"redis+cluster://" + secure.Addr:                     "has to begin with rediss+cluster://",
		"redis+sentinel://" + secure.Addr + "?master_name=m": "has to begin with rediss+sentinel://",
	} {
		err := refusal(t, url)
		assert.ErrorIs(t, err, store.ErrUnavailable, url)
		assert.ErrorContains(t, err, says, url)
	}

	plain.Pause(t)
	defer plain.Resume(t)
	assert.ErrorContains(t, refusal(t, plain.URL()), "check that the server is well", "which may be all that is wrong")
}

func TestOutageAServerThatIsTooOld(t *testing.T) {
	for hello, says := range map[string]string{
		"*4\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n6.0.9\r\n": `version "6.0.9", Redis 7.0 or newer`,
		"-ERR unknown command `hello`, with args beginning with:\r\n":           "too old",
		"*4\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:2\r\n":            `version ""`,
	} {
		err := refusal(t, "redis://"+fake(t, hello))
		assert.ErrorIs(t, err, store.ErrUnavailable)
		assert.ErrorContains(t, err, says)
	}
}

// fake is a server that answers everything the same.
func fake(t *testing.T, answer string) (addr string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for in := bufio.NewReader(conn); ; {
					line, err := in.ReadString('\n')
					if err != nil {
						return
					}
					if strings.HasPrefix(line, "*") {
						_, _ = fmt.Fprint(conn, answer)
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

func TestOutageAReplicaIsNotTheStore(t *testing.T) {
	master, replica := redistest.Single(t), redistest.Single(t)
	s := opened(t, replica.URL())
	replica.MakeReplicaOf(t, master)
	err := refusal(t, replica.URL())
	assert.ErrorIs(t, err, store.ErrUnavailable)
	assert.ErrorContains(t, err, "is a replica")
	_, err = take(s, ann, 1)
	assert.ErrorIs(t, err, store.ErrUnavailable)
	assert.ErrorContains(t, err, "the store needs the master")
}

func TestOutageASchemeOfAnotherKindOfServer(t *testing.T) {
	single := redistest.Single(t)
	assert.ErrorIs(t, refusal(t, "redis+cluster://"+single.Addr), store.ErrUnavailable)
	secured := redistest.Single(t, redistest.Config("cluster-enabled yes"), redistest.Password(secret))
	assert.ErrorContains(t, refusal(t, "redis+cluster://"+secured.Addr, login("", "s3cret2")), "check username and password")
	clustered := redistest.Single(t, redistest.Config("cluster-enabled yes"))
	assert.ErrorIs(t, refusal(t, clustered.URL()), store.ErrUnavailable)
}

func TestOutageAKeyOfAnotherTypeIsInTheWay(t *testing.T) {
	server := redistest.Single(t)
	server.Do(t, "HSET", "test:{format}", "a", "b")
	err := refusal(t, server.URL())
	assert.ErrorIs(t, err, store.ErrUnavailable)
	assert.ErrorContains(t, err, "namespace marker: WRONGTYPE")
	assert.ErrorContains(t, err, "give the store a namespace or a database of its own")

	server.Do(t, "DEL", "test:{format}")
	server.Do(t, "SET", "test:{format}", "hookhost 3")
	assert.ErrorContains(t, refusal(t, server.URL()), `namespace[test] is in the format "hookhost 3"`)
	server.Do(t, "DEL", "test:{format}")

	s, keys := opened(t, server.URL()), owned("")
	keys = s.owned(ann)
	for _, inTheWay := range []struct{ key, kind string }{
		{keys.buckets(), "bucket"}, {keys.leases("runs"), "lease set"}, {keys.operation("a"), "operation"},
	} {
		for _, put := range [][]any{{"XADD", inTheWay.key, "*", "a", "b"}, {"SET", inTheWay.key, "nonsense"}} {
			server.Do(t, "DEL", inTheWay.key)
			server.Do(t, put...)
			_, err := s.Admit(ctx, turn("a", ann))
			require.ErrorIs(t, err, store.ErrUnavailable)
			require.ErrorIs(t, err, store.ErrInTheWay)
			assert.ErrorContains(t, err, "redis admit: store unavailable: "+inTheWay.kind+": ")
			assert.NotContains(t, err.Error(), "ann")
		}
		server.Do(t, "DEL", inTheWay.key)
	}
	assert.EqualValues(t, 100, balance(t, s, ann), "nothing was charged")
}

func TestOutageAPolicyThatEvictsIsWarnedOf(t *testing.T) {
	server := redistest.Single(t)
	for _, policy := range []string{"noeviction", "allkeys-lru", "volatile-lru", "volatile-ttl", "allkeys-random"} {
		server.Do(t, "CONFIG", "SET", "maxmemory-policy", policy)
		var log bytes.Buffer
		opened(t, server.URL(), func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		if policy == "noeviction" {
			assert.Empty(t, log.String())
			continue
		}
		assert.Contains(t, log.String(), "level=WARN")
		assert.Contains(t, log.String(), "set maxmemory-policy to noeviction")
		assert.Contains(t, log.String(), "maxmemory_policy="+policy)
	}
}

// FuzzURL puts a password into a URL as it is: what is wrong with the URL is
// said without it.
func FuzzURL(f *testing.F) {
	for _, middle := range []string{"", "/", "?", "#", "@", ":", "%", "[", "?addr=", "/0?db=", "%zz", " ", "\n"} {
		for _, scheme := range []string{"redis", "rediss", "redis+sentinel", "redis+cluster", "other"} {
			f.Add(scheme, middle)
		}
	}
	f.Fuzz(func(t *testing.T, scheme, middle string) {
		client, err := connect(Config{URL: scheme + "://user:qzqz" + middle + "xkxk@host:1/0?master_name=m"})
		if err == nil {
			require.NoError(t, client.Close())
			return
		}
		assert.NotContains(t, err.Error(), "qzqz")
		assert.NotContains(t, err.Error(), "xkxk")
	})
}
