package redis

import (
	"context"
	"crypto/sha1"
	"crypto/tls"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/hookhost/hookhost/store"
)

//go:embed lua/*.lua
var sources embed.FS

// script is a Lua program as the server gets it.
type script struct{ name, source, sha string }

// libraries are what stands between the prelude and the scripts that need it.
var libraries = map[string]string{
	"claim": "claims", "claim_renew": "claims", "claim_end": "claims", "claim_result": "claims",
	"counter": "counters", "counter_add": "counters",
	"record": "activity", "activity_read": "activity",
}

var scriptNames = []string{
	"admit", "settle", "balance", "refill", "renew", "free", "held",
	"claim", "claim_renew", "claim_end", "claim_result", "value_get", "value_put", "counter", "counter_add",
	"record", "records", "activity_read", "active", "active_read", "learn", "override_set", "override_read", "marker",
}

// frugal are the scripts that a server runs also when it is out of memory,
// since they take none. The others it refuses before they begin.
var frugal = map[string]bool{
	"settle": true, "balance": true, "refill": true, "renew": true, "free": true, "held": true, "claim_renew": true, "claim_result": true,
	"value_get": true, "counter": true, "records": true, "activity_read": true, "active_read": true, "override_read": true,
}

// timeLine is how a script reads the clock: once, in the prelude.
const timeLine = "local time = redis.call('TIME')\n"

// loadScripts puts the scripts together, with a line that reads the clock.
func loadScripts(clock string) map[string]*script {
	read := func(name string) string {
		source, err := fs.ReadFile(sources, "lua/"+name+".lua")
		if err != nil {
			panic(err) // embedded
		}
		return string(source)
	}
	prelude := strings.Replace(read("prelude"), timeLine, clock, 1)
	scripts := map[string]*script{}
	for _, name := range scriptNames {
		source := "#!lua\n" + prelude
		if frugal[name] {
			source = "#!lua flags=allow-oom\n" + prelude
		}
		if library, needed := libraries[name]; needed {
			source += read(library)
		}
		source += read(name)
		sum := sha1.Sum([]byte(source))
		scripts[name] = &script{name, source, hex.EncodeToString(sum[:])}
	}
	return scripts
}

// call is one run of a script: what is asked and what came of it. Doing it
// twice does it once, since it carries an id or because of what it is.
type call struct {
	script *script
	keys   []string
	args   []any
	whole  bool // send the text: the server does not know the script

	reply any
	err   error
}

func (s *Store) call(script string, keys []string, args ...any) *call {
	return &call{script: s.scripts[script], keys: keys, args: args}
}

// command is a call on its way. The driver never repeats it.
type command struct{ *goredis.Cmd }

func (command) NoRetry() bool { return true }

func (c *call) command(ctx context.Context) command {
	args := make([]any, 0, 3+len(c.keys)+len(c.args))
	if c.whole {
		args = append(args, "eval", c.script.source)
	} else {
		args = append(args, "evalsha", c.script.sha)
	}
	args = append(args, len(c.keys))
	for _, key := range c.keys {
		args = append(args, key)
	}
	return command{goredis.NewCmd(ctx, append(args, c.args...)...)}
}

// Calls of a pipeline, and repetitions of what may pass if it is tried again.
const (
	maxPipeline  = 500
	atOnce       = 4 // pipelines
	repetitions  = 3
	firstBackoff = 10 * time.Millisecond
)

// ask makes one call and gives its reply.
func (s *Store) ask(ctx context.Context, script string, keys []string, args ...any) (*reply, error) {
	c := s.call(script, keys, args...)
	if err := s.do(ctx, c); err != nil {
		return nil, err
	}
	return c.result()
}

// do makes the calls, in pipelines of which each has the store's timeout. One
// that fails keeps none of the others from being made: of a Cluster a single
// node may be away. The error is of the first call that failed.
func (s *Store) do(ctx context.Context, calls ...*call) error {
	if len(calls) <= maxPipeline {
		return s.attempt(ctx, calls)
	}
	pipelines := slices.Collect(slices.Chunk(calls, maxPipeline))
	errs := make([]error, len(pipelines))
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, pipeline := range pipelines {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			errs[i] = s.attempt(ctx, pipeline)
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// attempt sends calls, and those again that did not run or may not have run.
func (s *Store) attempt(ctx context.Context, calls []*call) error {
	if err := ctx.Err(); err != nil {
		return unavailable("", err)
	}
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()

	pending := calls
	for try := 0; ; try++ {
		s.send(limited, pending)
		unknown, again := s.triage(limited, pending)
		if len(unknown) > 0 && try <= repetitions {
			more := s.introduce(ctx, unknown)
			again = append(again, more...)
		}
		if len(again) == 0 || try >= repetitions || !sleep(limited, firstBackoff<<try) {
			break
		}
		pending = again
	}
	for _, c := range calls {
		if c.err != nil {
			return unavailable(c.script.name, c.err)
		}
	}
	return nil
}

// introduce sends calls whole to servers that do not know their script. It has
// a timeout of its own: a node that hangs may have used up the one before, in
// which the others said what they do not know.
func (s *Store) introduce(ctx context.Context, unknown []*call) (again []*call) {
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	s.send(limited, unknown)
	_, again = s.triage(limited, unknown)
	return again
}

// triage finds the calls whose script the server does not know, and those that
// may pass if they are made again.
func (s *Store) triage(ctx context.Context, calls []*call) (unknown, again []*call) {
	for _, c := range calls {
		switch {
		case c.err == nil:
		case goredis.HasErrorPrefix(c.err, "NOSCRIPT") && !c.whole:
			c.whole = true
			unknown = append(unknown, c)
		case passing(c.err):
			again = append(again, c)
		}
	}
	if cluster, is := s.client.(*goredis.ClusterClient); is && len(again) > 0 {
		cluster.ReloadState(ctx)
	}
	return unknown, again
}

func (s *Store) send(ctx context.Context, calls []*call) {
	if len(calls) == 1 {
		cmd := calls[0].command(ctx)
		_ = s.client.Process(ctx, cmd)
		calls[0].reply, calls[0].err = cmd.Result()
		return
	}
	pipe := s.client.Pipeline()
	cmds := make([]command, len(calls))
	for i, c := range calls {
		cmds[i] = c.command(ctx)
		_ = pipe.Process(ctx, cmds[i])
	}
	_, err := pipe.Exec(ctx)
	for i, c := range calls {
		c.reply, c.err = cmds[i].Result()
		if c.err == nil && c.reply == nil {
			c.err = err // it never left
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// passing reports whether the same call may succeed in a moment: nobody
// answered, or one who is just loading, failing over or moving slots.
func passing(err error) bool {
	var answer goredis.Error
	if errors.As(err, &answer) {
		for _, prefix := range []string{"LOADING", "READONLY", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "MOVED", "ASK", "max number of clients"} {
			if goredis.HasErrorPrefix(err, prefix) {
				return true
			}
		}
		return false
	}
	return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, goredis.ErrClosed)
}

// advice says what an operator can do about an error, by how it begins.
var advice = []struct{ prefix, text string }{
	{"WRONGPASS", "check username and password"},
	{"NOAUTH", "the server wants a password"},
	{"NOPERM", "the user lacks a permission, see the ACL in store/redis/README.md"},
	{"ERR The user executing the script", "the user lacks a permission, see the ACL in store/redis/README.md"},
	{"OOM", "the server is out of memory, raise maxmemory or free some"},
	{"READONLY", "the server is a replica, the store needs the master"},
	{"MISCONF", "the server cannot save and refuses writes"},
	{"CLUSTERDOWN", "the cluster does not serve all slots"},
	{"ERR This instance has cluster support disabled", "the server is no cluster, use redis:// or rediss://"},
	{"MOVED", "the server is part of a cluster, use redis+cluster:// or rediss+cluster://"},
	{"CROSSSLOT", "the server is part of a cluster, use redis+cluster:// or rediss+cluster://"},
}

// How answers begin that are of one operation: a command or a key that the
// server's user may not touch, a key in the way, a script that stumbled over
// what it read. Of a user who may run no script at all the server says that it
// has no permission to run evalsha: that is of all operations.
var (
	forbidden = []string{
		"ERR The user executing the script",
		"NOPERM No permissions to access a key", "NOPERM this user has no permissions to access one of the keys",
	}
	stumbled = []string{"WRONGTYPE", "ERR user_script", "user_script"}
)

func begins(err error, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(err.Error(), prefix) })
}

func isOnlyThis(err error) bool { return begins(err, forbidden) || begins(err, stumbled) }

// unavailable is what every failure of the server becomes. Its text goes to
// logs: it holds no id of a user and no secret.
func unavailable(script string, err error) error {
	where := "redis"
	if script != "" {
		where += " " + script
	}
	for _, a := range advice {
		if !goredis.HasErrorPrefix(err, a.prefix) && !strings.HasPrefix(err.Error(), a.prefix) {
			continue
		}
		if isOnlyThis(err) {
			return fmt.Errorf("%s: %w: %w: %w: %s", where, store.ErrUnavailable, store.ErrOnlyThis, err, a.text)
		}
		return fmt.Errorf("%s: %w: %w: %s", where, store.ErrUnavailable, err, a.text)
	}
	if isOnlyThis(err) {
		return fmt.Errorf("%s: %w: %w: %w", where, store.ErrUnavailable, store.ErrOnlyThis, err)
	}
	if kind, inTheWay := strings.CutPrefix(err.Error(), "HOOKHOST "); inTheWay {
		return fmt.Errorf("%s: %w: %s: %w, give the store a namespace or a database of its own", where, store.ErrUnavailable, kind, store.ErrInTheWay)
	}
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return fmt.Errorf("%s: %w: %w: set ca to the authority's file", where, store.ErrUnavailable, err)
	}
	var opErr *net.OpError
	if errors.As(err, &opErr) && opErr.Op == "dial" {
		return fmt.Errorf("%s: %w: %w: check that the server runs and that url names it", where, store.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w: %w", where, store.ErrUnavailable, err)
}

// adviseTLS says what to check where nothing was heard from a server that took
// the connection: two that do not agree on TLS wait for each other, or one hangs
// up.
func adviseTLS(url string, err error) error {
	var (
		opErr  *net.OpError
		record tls.RecordHeaderError
	)
	nobody := errors.As(err, &opErr) && opErr.Op == "dial"
	silent := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.As(err, &record)
	if nobody || !silent {
		return err
	}
	scheme, _, _ := strings.Cut(url, "://")
	if kind, secure := strings.CutPrefix(scheme, "rediss"); secure {
		return fmt.Errorf("%w: check that the server is well, and whether it speaks TLS: without it url has to begin with redis%s://", err, kind)
	}
	return fmt.Errorf("%w: check that the server is well, and whether it wants TLS: for it url has to begin with rediss%s://", err, strings.TrimPrefix(scheme, "redis"))
}
