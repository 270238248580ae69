package host_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/chaintest"
	"github.com/hookhost/hookhost/host/demo"
	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/breaker"
	"github.com/hookhost/hookhost/store/redis/redistest"
)

// Each way in which a real server goes away, against each on_store_error. What
// is promised: a turn never waits for more than one timeout of the store; after
// a few calls it waits for nothing; the switch is told once each way; and after
// it nothing was granted beyond the bound of the policy.

const (
	storeTimeout = 400 * time.Millisecond
	burst        = 6 // of the bucket of turns, which gets next to nothing back meanwhile
	usedBefore   = 2
	localShare   = burst / 2 // of one of two processes
)

// outage is a way to go away and to come back.
type outage struct {
	start  func(t *testing.T) *backend
	begin  func(t *testing.T, b *backend)
	end    func(t *testing.T, b *backend)
	loses  bool // the data, and with it what was used before
	short  bool // it is over before anybody sees it
	refuse bool // the server answers that it cannot
}

// backend is what the hosts of a test share.
type backend struct {
	url    string
	server *redistest.Server
	wire   *redistest.Wire
	trio   *redistest.Trio
	other  *redistest.Server
}

func oneServer(options ...redistest.Option) func(t *testing.T) *backend {
	return func(t *testing.T) *backend {
		s := redistest.Single(t, options...)
		return &backend{url: s.URL(), server: s}
	}
}

var outages = map[string]outage{
	"stopped": {
		start: oneServer(redistest.AppendOnly()),
		begin: func(t *testing.T, b *backend) { b.server.Stop(t) },
		end:   func(t *testing.T, b *backend) { b.server.Restart(t) },
	},
	"killed, without its data": {
		start: oneServer(),
		begin: func(t *testing.T, b *backend) { b.server.Kill(t) },
		end:   func(t *testing.T, b *backend) { b.server.Restart(t) },
		loses: true,
	},
	"paused": {
		start: oneServer(),
		begin: func(t *testing.T, b *backend) { b.server.Pause(t) },
		end:   func(t *testing.T, b *backend) { b.server.Resume(t) },
	},
	"slow": {
		start: func(t *testing.T) *backend {
			s := redistest.Single(t)
			w := redistest.Proxy(t, s.Addr)
			return &backend{url: "redis://" + w.Addr, server: s, wire: w}
		},
		begin: func(_ *testing.T, b *backend) { b.wire.Delay(5 * storeTimeout) },
		end:   func(_ *testing.T, b *backend) { b.wire.Delay(0) },
	},
	"out of memory": {
		start:  oneServer(),
		begin:  func(t *testing.T, b *backend) { b.server.Do(t, "CONFIG", "SET", "maxmemory", "1") },
		end:    func(t *testing.T, b *backend) { b.server.Do(t, "CONFIG", "SET", "maxmemory", "0") },
		refuse: true,
	},
	"a read-only replica": {
		start: func(t *testing.T) *backend {
			b := oneServer()(t)
			b.other = redistest.Single(t)
			return b
		},
		begin:  func(t *testing.T, b *backend) { b.server.MakeReplicaOf(t, b.other) },
		end:    func(t *testing.T, b *backend) { b.server.Do(t, "REPLICAOF", "NO", "ONE") },
		loses:  true,
		refuse: true,
	},
	"flushed": {
		start: oneServer(),
		begin: func(t *testing.T, b *backend) { b.server.Do(t, "FLUSHALL") },
		end:   func(*testing.T, *backend) {},
		loses: true, short: true,
	},
	"restarted": {
		start: oneServer(redistest.AppendOnly()),
		begin: func(t *testing.T, b *backend) { b.server.Restart(t) },
		end:   func(*testing.T, *backend) {},
		short: true,
	},
	"failed over": {
		start: func(t *testing.T) *backend {
			trio := redistest.Sentinel(t)
			return &backend{url: trio.URL(), server: trio.Master, trio: trio}
		},
		begin: func(t *testing.T, b *backend) { b.trio.Master.Kill(t) },
		end:   func(t *testing.T, b *backend) { b.trio.Failover(t) },
	},
}

// onRedis is a manifest of the shipped limiter on this server.
func onRedis(url, namespace, policy string) string {
	return fmt.Sprintf(`
version = 1
order = ["ratelimit"]
[store]
url = %q
namespace = %q
timeout = "%dms"
dial_timeout = "%dms"
[limits]
plans = "plans.toml"
[stage.ratelimit]
module = "MODULE/ratelimit"
role = "responder"
grants = ["limit:turn", "limit:tokens", "limit:runs"]
timeout = "5s"
on_store_error = %q
refusal = "The service is busy."
`, url, namespace, storeTimeout.Milliseconds(), storeTimeout.Milliseconds(), policy)
}

var sixTurns = fmt.Sprintf(`
version = "test"
default = "free"
[plan.free]
turn = { rate = "1/day", burst = %d }
tokens = { rate = "1/day", burst = 10000, estimate = 100 }
runs = { max = 2, expires = "2s" }
[plan.more]
turn = { rate = "1/day", burst = 100 }
`, burst)

// openOnRedis is a host on a real server. The model answers for ever.
func openOnRedis(t *testing.T, url, namespace, policy string) (*world, *meter) {
	t.Helper()
	m := newMeter(t)
	w := openOn(t, sixTurns, onRedis(url, namespace, policy), host.Options{Meter: m}, demo.Reply{Text: "hello", Usage: &demo.Usage{Total: 10}})
	w.model.Repeat = true
	return w, m
}

// The ways in which a turn goes.
const (
	granted = "granted"
	denied  = "denied"
	full    = "full" // too many at once
	busy    = "busy"
)

// turn takes one turn of ada's, and says how it went and how long it took.
func (w *world) turn() (went string, took time.Duration) {
	w.t.Helper()
	began := time.Now()
	texts := w.saysTo("ada")
	took = time.Since(began)
	require.Len(w.t, texts, 1)
	switch {
	case texts[0] == "hello":
		return granted, took
	case texts[0] == "The service is busy.":
		return busy, took
	case strings.Contains(texts[0], "faster than your plan allows"):
		return denied, took
	case strings.Contains(texts[0], "at once as your plan allows"):
		return full, took
	}
	require.Fail(w.t, "a turn of no known kind", texts[0])
	return "", 0
}

// turns takes turns until one is not granted, and counts those that were.
func (w *world) turns() (n int, then string) {
	w.t.Helper()
	for ; n <= 10*burst; n++ {
		if then, _ = w.turn(); then != granted {
			return n, then
		}
	}
	return n, granted
}

func TestOutage(t *testing.T) {
	redistest.Require(t)
	for name, o := range outages {
		t.Run(name, func(t *testing.T) {
			b := o.start(t)
			hosts := map[string]*afflicted{}
			for _, policy := range []string{"open", "closed", "local"} {
				other, _ := openOnRedis(t, b.url, policy, policy)
				require.Eventually(t, func() bool { return other.alive(t) == 1 }, 5*time.Second, time.Millisecond)
				w, m := openOnRedis(t, b.url, policy, policy)
				require.Eventually(t, func() bool { return w.host.Replicas() == 2 }, 5*time.Second, time.Millisecond)
				hosts[policy] = &afflicted{world: w, meter: m, policy: policy}
				for range usedBefore {
					went, _ := w.turn()
					require.Equal(t, granted, went, policy)
				}
			}

			o.begin(t, b)
			for _, h := range hosts {
				h.during(t, o)
			}
			o.end(t, b)
			for _, h := range hosts {
				h.after(t, o)
			}
		})
	}
}

// alive counts the processes on the host's store.
func (w *world) alive(t *testing.T) int64 {
	t.Helper()
	n, err := w.host.Store().Held(t.Context(), store.Owner{Kind: store.OwnerGlobal}, host.ProcessesLimit)
	require.NoError(t, err)
	return n
}

// afflicted is a host that an outage comes over.
type afflicted struct {
	*world
	meter  *meter
	policy string
}

// during takes turns while the store is away.
func (h *afflicted) during(t *testing.T, o outage) {
	if o.short {
		return
	}
	want := map[string][]string{
		"open":   slices.Repeat([]string{granted}, burst),
		"closed": slices.Repeat([]string{busy}, burst),
		"local":  slices.Concat(slices.Repeat([]string{granted}, localShare), slices.Repeat([]string{denied}, burst-localShare)),
	}[h.policy]
	var went []string
	for range want {
		one, took := h.turn()
		went = append(went, one)
		assert.Less(t, took, 2*storeTimeout-50*time.Millisecond, "%s: at most one timeout", h.policy)
	}
	assert.Equal(t, want, went, h.policy)
	h.settled(t, 1)
	for range 3 {
		_, took := h.turn()
		assert.Less(t, took, storeTimeout/2, "%s: nobody waits any more", h.policy)
	}
	assert.Equal(t, 1, strings.Count(h.log.String(), "the store is away"), h.policy)
}

// settled waits until the alert is as it should be.
func (h *afflicted) settled(t *testing.T, away int64) {
	t.Helper()
	require.Eventually(t, func() bool { return h.meter.read("hookhost.store.away")[""] == away }, 20*time.Second, 20*time.Millisecond,
		"%s: the alert", h.policy)
}

// after takes what turns are left when the store is back.
func (h *afflicted) after(t *testing.T, o outage) {
	if !o.short {
		h.settled(t, 0)
		assert.Equal(t, map[string]int64{"to=away": 1, "to=back": 1}, h.meter.read("hookhost.store.switches"), h.policy)
		assert.Equal(t, 1, strings.Count(h.log.String(), "the store is back"), h.policy)
	}
	left := burst - usedBefore
	if o.loses {
		left = burst // the bound: what was in the buckets, once more
	}
	// A call that nobody got an answer to may have got its run a lease, which
	// lapses.
	require.Eventually(t, func() bool {
		held, err := h.host.Store().Held(context.WithoutCancel(t.Context()), ownerOf("ada"), "runs")
		return err == nil && held == 0
	}, 5*time.Second, 20*time.Millisecond, "%s: leases", h.policy)
	n, then := h.turns()
	assert.Equal(t, denied, then, "%s: the limit holds again", h.policy)
	assert.LessOrEqual(t, n, left, "%s: granted after it", h.policy)
	if o.refuse || o.short {
		assert.Equal(t, left, n, "%s: nothing was charged that was refused", h.policy)
	}
	assert.GreaterOrEqual(t, n, 1, "%s: calls that nobody got an answer to may have been charged, and no more", h.policy)
}

// One key of another program keeps one user from what is in it, and nobody else
// from anything.
func TestAKeyInTheWayOfOneUserIsNoOutage(t *testing.T) {
	redistest.Require(t)
	b := oneServer()(t)
	w, m := openOnRedis(t, b.url, "shared", "closed")
	b.server.Do(t, "XADD", "shared:{u:app:ada}:b", "*", "a", "b")
	for range 2 * breaker.Failures {
		went, _ := w.turn()
		require.Equal(t, busy, went)
	}
	assert.Equal(t, []string{"hello"}, w.saysTo("eve"))
	assert.Empty(t, m.read("hookhost.store.switches"))
	b.server.Do(t, "DEL", "shared:{u:app:ada}:b")
	went, _ := w.turn()
	assert.Equal(t, granted, went)
}

// The same where nobody waits for what the key is in the way of.
func TestAKeyInTheWayOfOneUsersRecordsIsNoOutage(t *testing.T) {
	redistest.Require(t)
	b := oneServer()(t)
	text := strings.Replace(onRedis(b.url, "shared", "closed"), `order = ["ratelimit"]`, `order = ["meter", "ratelimit"]`, 1) +
		"[stage.meter]\nmodule = \"MODULE/meter\"\nrole = \"observer\"\ngrants = [\"usage:write\"]\ntimeout = \"5s\"\n"
	m := newMeter(t)
	w := openOn(t, sixTurns, text, host.Options{Meter: m}, demo.Reply{Text: "hello", Usage: &demo.Usage{Total: 10}})
	w.model.Repeat = true
	b.server.Do(t, "SET", "shared:{u:app:ada}:records", "x")
	require.Equal(t, []string{"hello"}, w.saysTo("ada"))
	for i := range 15 { // while the record is tried again and again
		assert.Equal(t, []string{"hello"}, w.saysTo(fmt.Sprint("user-", i)))
		time.Sleep(200 * time.Millisecond)
	}
	assert.Empty(t, m.read("hookhost.store.switches"))
	assert.Zero(t, strings.Count(w.log.String(), "the store is away"))
	b.server.Do(t, "DEL", "shared:{u:app:ada}:records")
}

func TestHostsOnOneServerShareTheirLimits(t *testing.T) {
	redistest.Require(t)
	b := oneServer()(t)
	first, _ := openOnRedis(t, b.url, "shared", "closed")
	require.Eventually(t, func() bool { return first.alive(t) == 1 }, 5*time.Second, time.Millisecond)
	second, _ := openOnRedis(t, b.url, "shared", "closed")
	other, _ := openOnRedis(t, b.url, "other", "closed")

	for range burst / 2 {
		for _, w := range []*world{first, second} {
			went, _ := w.turn()
			assert.Equal(t, granted, went)
		}
	}
	for _, w := range []*world{first, second} {
		went, _ := w.turn()
		assert.Equal(t, denied, went)
	}
	went, _ := other.turn()
	assert.Equal(t, granted, went, "another namespace")
	assert.Eventually(t, func() bool { return second.host.Replicas() == 2 }, 5*time.Second, 10*time.Millisecond)
}

func TestAnOverrideOfAnotherProcessHoldsWithinTwoSeconds(t *testing.T) {
	redistest.Require(t)
	b := oneServer()(t)
	w, _ := openOnRedis(t, b.url, "shared", "closed")
	l, err := host.OpenLimits(t.Context(), w.path, host.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close(context.WithoutCancel(t.Context()))) }()
	n, _ := w.turns()
	require.Equal(t, burst, n)

	require.NoError(t, l.SetOverride(t.Context(), store.Override{User: "ada", Plan: "more", Author: "kim"}))
	began := time.Now()
	require.Eventually(t, func() bool { return w.host.PlanOf(t.Context(), "app", "ada").Name == "more" }, 5*time.Second, 10*time.Millisecond)
	assert.Less(t, time.Since(began), 2500*time.Millisecond)

	shown, err := l.Show(t.Context(), "app", "ada")
	require.NoError(t, err)
	assert.Equal(t, host.FromStore, shown.Plan.Source)
	_, err = l.Refill(t.Context(), "app", "ada")
	require.NoError(t, err)
	went, _ := w.turn()
	assert.Equal(t, granted, went)
}

// A store that cannot be used keeps a host from starting, and the error says at
// which line of the manifest, why, and no password.
func TestABadStoreIsSaidAtTheStart(t *testing.T) {
	redistest.Require(t)
	locked := redistest.Single(t, redistest.Password("right-secret"))
	open := redistest.Single(t)
	for name, c := range map[string]struct{ url, more, want string }{
		"nobody there":     {url: "redis://127.0.0.1:1", want: "check that the server runs"},
		"a wrong password": {url: "redis://:wrong-secret@" + locked.Addr, want: "check username and password"},
		"no password":      {url: "redis://" + locked.Addr, want: "the server wants a password"},
		"a password unset": {url: "redis://" + locked.Addr, more: "password = \"env:HOOKHOST_TEST_UNSET\"\n", want: "HOOKHOST_TEST_UNSET is not set"},
		"no master's name": {url: "redis+sentinel://" + open.Addr, want: "master_name"},
		"no cluster":       {url: "redis+cluster://" + open.Addr, want: "use redis:// or rediss://"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(onRedis(c.url, "start", "closed"), "[limits]", c.more+"[limits]", 1)

			_, err := host.Open(t.Context(), write(t, t.TempDir(), text), host.Options{Dev: true, CacheDir: chaintest.CacheDir()})

			var at *manifest.Error
			require.ErrorAs(t, err, &at)
			assert.Contains(t, []string{"store.url", "store.password"}, at.Key)
			assert.Positive(t, at.Line)
			assert.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), "secret")
		})
	}
}

func TestAReloadCannotMoveTheStore(t *testing.T) {
	redistest.Require(t)
	b, other := oneServer()(t), oneServer()(t)
	w, _ := openOnRedis(t, b.url, "shared", "closed")
	for name, text := range map[string]string{
		"another server":    onRedis(other.url, "shared", "closed"),
		"another namespace": onRedis(b.url, "other", "closed"),
		"another pool":      strings.Replace(onRedis(b.url, "shared", "closed"), "[limits]", "pool = 3\n[limits]", 1),
	} {
		write(t, filepath.Dir(w.path), text)
		require.ErrorIs(t, w.host.Reload(t.Context()), host.ErrStoreFixed, name)
	}
	write(t, filepath.Dir(w.path), onRedis(b.url, "shared", "open"))
	require.NoError(t, w.host.Reload(t.Context()))
	went, _ := w.turn()
	assert.Equal(t, granted, went)
}
