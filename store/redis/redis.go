// Package redis is the store that many hosts share: on Redis 7.0 or newer,
// alone, with Sentinel or as a Cluster. Each operation is one Lua script in one
// slot, goes by the server's clock, and can be repeated.
package redis

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/hookhost/hookhost/store"
)

// Config says where the store is and how to reach it.
type Config struct {
	// URL is redis://, rediss:// (TLS), redis+sentinel://, rediss+sentinel://,
	// redis+cluster:// or rediss+cluster://, with the options of go-redis.
	URL         string
	Namespace   string        // before every key: 1 to 64 of a-z, 0-9, _ and -
	Timeout     time.Duration // of one operation, repetitions included; 0 is 250ms
	DialTimeout time.Duration // 0 is 1s
	Pool        int           // connections for each node; 0 is go-redis's default

	Username, Password string // win over those of the URL
	CA, Cert, Key      string // PEM files, for TLS: whom to trust, and who this is

	Log *slog.Logger // nil is slog.Default()
}

// Store implements store.Store.
type Store struct {
	client    goredis.UniversalClient
	namespace string
	timeout   time.Duration
	scripts   map[string]*script
}

var _ store.Store = (*Store)(nil)

const format = "hookhost 2" // of the keys

var namespaces = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)

// Open connects and checks that the store can work: the version of the server,
// that it is a master, the permissions, and whose the namespace is. A wrong
// Config is an error of its own, all else is store.ErrUnavailable.
func Open(ctx context.Context, c Config) (*Store, error) {
	return open(ctx, c, timeLine)
}

func open(ctx context.Context, c Config, clock string) (*Store, error) {
	if !namespaces.MatchString(c.Namespace) {
		return nil, fmt.Errorf("redis: namespace %q: want 1 to 64 of a-z, 0-9, _ and -", c.Namespace)
	}
	if c.Timeout == 0 {
		c.Timeout = 250 * time.Millisecond
	}
	if c.DialTimeout == 0 {
		c.DialTimeout = time.Second
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	quietDriver()
	client, err := connect(c)
	if err != nil {
		return nil, err
	}
	// The first operations wait for connections too.
	s := &Store{client: client, namespace: c.Namespace, timeout: c.Timeout + c.DialTimeout, scripts: loadScripts(clock)}
	if err := s.check(ctx, c.Log); err != nil {
		_ = client.Close()
		return nil, adviseTLS(c.URL, err)
	}
	s.timeout = c.Timeout
	return s, nil
}

// check finds out whether this server can be the store.
func (s *Store) check(ctx context.Context, log *slog.Logger) error {
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.eachMaster(limited, func(ctx context.Context, node *goredis.Client) error { return checkNode(ctx, node, log) }); err != nil {
		return err
	}
	reply, err := s.ask(ctx, "marker", []string{s.marker()}, format)
	if err != nil {
		return err
	}
	known := reply.text()
	if err := reply.end(); err != nil {
		return err
	}
	if known != format {
		return fmt.Errorf("redis: namespace[%s] is in the format %q, not %q: use another namespace, or a hookhost of that format", s.namespace, known, format)
	}
	return nil
}

func (s *Store) eachMaster(ctx context.Context, do func(context.Context, *goredis.Client) error) error {
	switch client := s.client.(type) {
	case *goredis.ClusterClient:
		if err := client.ForEachMaster(ctx, do); err != nil {
			return unavailable("", err)
		}
		return nil
	case *goredis.Client:
		return do(ctx, client)
	}
	return fmt.Errorf("redis: client of no known kind: %T", s.client)
}

// checkNode asks a server who it is.
func checkNode(ctx context.Context, node *goredis.Client, log *slog.Logger) error {
	hello, err := node.Do(ctx, "hello").Result()
	if goredis.HasErrorPrefix(err, "ERR unknown command") || goredis.HasErrorPrefix(err, "unknown command") {
		return fmt.Errorf("redis: %w: the server is too old, Redis 7.0 or newer is needed", store.ErrUnavailable)
	}
	if err != nil {
		return unavailable("", err)
	}
	about := pairs(hello)
	if !atLeast7(about["version"]) {
		return fmt.Errorf("redis: %w: the server is version %q, Redis 7.0 or newer is needed", store.ErrUnavailable, about["version"])
	}
	if about["role"] != "master" {
		return fmt.Errorf("redis: %w: the server is a %s, the store needs the master", store.ErrUnavailable, about["role"])
	}
	info, err := node.Info(ctx, "memory").Result()
	if err != nil {
		return unavailable("info", err)
	}
	if policy := infoField(info, "maxmemory_policy"); policy != "" && policy != "noeviction" {
		log.Warn("redis may evict limits, leases and reservations, which grants more than the plans allow: set maxmemory-policy to noeviction",
			"maxmemory_policy", policy, "maxmemory", infoField(info, "maxmemory"))
	}
	return nil
}

// pairs reads a flat list of names and values, and keeps what is a string.
func pairs(reply any) map[string]string {
	values, _ := reply.([]any)
	named := map[string]string{}
	for i := 0; i+1 < len(values); i += 2 {
		name, isName := values[i].(string)
		value, isText := values[i+1].(string)
		if isName && isText {
			named[name] = value
		}
	}
	return named
}

func atLeast7(version string) bool {
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	return err == nil && n >= 7
}

func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, found := strings.CutPrefix(line, name+":"); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Close ends the connections. What is called after it is store.ErrUnavailable.
func (s *Store) Close(context.Context) error {
	if err := s.client.Close(); err != nil && err != goredis.ErrClosed {
		return fmt.Errorf("redis: close: %w", err)
	}
	return nil
}

// nonce names one call, so that the server knows it when it comes again.
func nonce() string { return rand.Text() }
