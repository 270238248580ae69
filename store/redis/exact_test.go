package redis

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/memory"
	"github.com/hookhost/hookhost/store/redis/redistest"
	"github.com/hookhost/hookhost/store/storetest"
)

// TestExactMemoryAndRedisAnswerTheSame does the same random sequences on both
// engines, by one clock.
func TestExactMemoryAndRedisAnswerTheSame(t *testing.T) {
	server := redistest.Single(t)
	clock := newServerClock(t, server)
	s := onClock(t, server, "exact")
	t.Cleanup(func() { require.NoError(t, s.Close(ctx)) })
	began := clock.Now()
	for range storetest.Checks(t, 6) {
		rapid.Check(t, func(t *rapid.T) {
			server.Do(clock.t, "FLUSHDB")
			clock.Set(began)
			newTwins(t, memory.New(clock.ManualClock), s, clock).run()
		})
	}
}

// twins are both engines and what the sequence needs to know.
type twins struct {
	*rapid.T
	memory, redis store.Store
	clock         serverClock
	latest        time.Time // that the clock showed
	owners        []store.Owner
	plans         []store.Bucket
	ends          map[string]time.Time // of what is remembered
	tokens        [][2]int64           // of claims, as each engine gave them
}

var (
	buckets   = []string{"turn", "tokens", ":{}\x00"}
	leaseSets = []string{"runs", "turn"}
	claimKeys = []string{"m-1", "m:2"}
)

func newTwins(t *rapid.T, m, r store.Store, clock serverClock) *twins {
	shadow := rapid.SampledFrom([]string{"", "limiter", "a:b"}).Draw(t, "shadow")
	user := store.Owner{Kind: store.OwnerUser, App: "shop", User: rapid.SampledFrom([]string{"ann", "{}", "}x", "a:b", "\x00\xff", "日本"}).Draw(t, "user"), Shadow: shadow}
	return &twins{
		T: t, memory: m, redis: r, clock: clock, latest: clock.Now(), ends: map[string]time.Time{},
		owners: []store.Owner{user, {Kind: store.OwnerApp, App: "shop", Shadow: shadow}, {Kind: store.OwnerGlobal, Shadow: shadow}},
		plans:  rapid.SliceOfN(rapid.Custom(drawPlan), 1, 3).Draw(t, "plans"),
	}
}

// amount prefers numbers on which arithmetic breaks.
func amount(least int64) *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64Range(least, 20), rapid.Int64Range(least, 100_000), rapid.Int64Range(least, store.MaxUnits), rapid.Int64Range(store.MaxUnits-3, store.MaxUnits))
}

// drawPlan draws a rate N/P, also with a P at the end of the range.
func drawPlan(t *rapid.T) store.Bucket {
	per := rapid.OneOf(rapid.Int64Range(1, 20), rapid.SampledFrom([]int64{1000, 60_000, 86_400_000}), rapid.Int64Range(1, 90_000_000), rapid.Int64Range(1, 9_000_000_000_000)).Draw(t, "per")
	n := rapid.OneOf(rapid.Int64Range(1, min(20, (1<<53)/per)), rapid.Int64Range(1, (1<<53)/per), rapid.Just((1<<53)/per)).Draw(t, "units")
	return store.Bucket{Units: n, Per: store.Millis(per), Burst: amount(1).Draw(t, "burst")}
}

// lasting draws how long something is to live.
func lasting(least int64) *rapid.Generator[time.Duration] {
	return rapid.Map(rapid.OneOf(rapid.Int64Range(least, 5_000_000), rapid.Int64Range(least, 100_000_000_000), rapid.Int64Range(least, 9_000_000_000_000_000_000)),
		func(ns int64) time.Duration { return time.Duration(ns) })
}

func (w *twins) run() {
	operations := map[string]func(){
		"admit": w.admit, "admit more": w.admit, "settle": w.settle, "renew": w.renew, "free": w.free, "refill": w.refill,
		"claim": w.claim, "end claim": w.endClaim, "renew claim": w.renewClaim, "value": w.value, "counter": w.count, "learn": w.learn,
		"record": w.record, "record more": w.record,
	}
	names := make([]string, 0, len(operations))
	for name := range operations {
		names = append(names, name)
	}
	slices.Sort(names)
	for range rapid.IntRange(1, 20).Draw(w.T, "steps") {
		operations[rapid.SampledFrom(names).Draw(w.T, "op")]()
		w.moveClock()
		w.look()
	}
}

// moveClock goes forward by a little or by much, or back.
func (w *twins) moveClock() {
	ms := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 20), rapid.Int64Range(0, 100_000), rapid.Int64Range(0, 31_536_000_000), rapid.Int64Range(-100_000, 0)).Draw(w.T, "clock")
	w.clock.Advance(time.Duration(ms) * time.Millisecond)
	if now := w.clock.Now(); now.After(w.latest) {
		w.latest = now
	}
}

// agree asks both and compares what they say.
func agree[T any](w *twins, what string, ask func(store.Store) (T, error)) (T, error) {
	want, wantErr := ask(w.memory)
	got, err := ask(w.redis)
	require.Equal(w, kind(wantErr), kind(err), "%s: %v", what, err)
	require.Equal(w, want, got, what)
	return want, err
}

// kind is the error of the store that it is.
func kind(err error) error {
	for _, known := range []error{store.ErrUnavailable, store.ErrBadNumber, store.ErrMalformed, store.ErrNoUser, store.ErrUnknownID, store.ErrFenced} {
		if errors.Is(err, known) {
			return known
		}
	}
	return err
}

// look reads everything, also so that both forget what has expired before the
// clock goes back.
func (w *twins) look() {
	for _, o := range w.owners {
		plan := rapid.SampledFrom(w.plans).Draw(w.T, "plan")
		for _, limit := range buckets {
			_, _ = agree(w, "balance", func(s store.Store) (int64, error) { return s.Balance(ctx, o, limit, plan) })
		}
		for _, limit := range leaseSets {
			_, _ = agree(w, "held", func(s store.Store) (int64, error) { return s.Held(ctx, o, limit) })
		}
	}
	since := w.clock.Now().Add(-time.Duration(rapid.Int64Range(0, 10*24).Draw(w.T, "since")) * time.Hour)
	_, _ = agree(w, "activity", func(s store.Store) ([]store.Activity, error) {
		return s.Activity(ctx, store.Owner{Kind: store.OwnerApp, App: "shop"}, since)
	})
	for _, key := range claimKeys {
		_, _ = agree(w, "result", func(s store.Store) (string, error) {
			result, done, err := s.ClaimResult(ctx, w.claimKey(key))
			return fmt.Sprint(string(result), done), err
		})
		_, _ = agree(w, "value", func(s store.Store) (string, error) {
			value, found, err := s.GetValue(ctx, store.ValueKey{Owner: w.owners[0], Name: "n", Key: key})
			return fmt.Sprint(string(value), found), err
		})
		_, _ = agree(w, "records", func(s store.Store) ([]store.Record, error) {
			return s.Records(ctx, store.Owner{Kind: store.OwnerUser, App: "shop", User: key})
		})
		_, _ = agree(w, "counter", func(s store.Store) (int64, error) { return s.Counter(ctx, w.owners[0], key) })
	}
}

// record writes one of a user, which comes a little late.
func (w *twins) record() {
	r := store.Record{
		ID: fmt.Sprint("op-", rapid.IntRange(1, 1000).Draw(w.T, "id")), App: "shop", User: w.key(), Plan: rapid.SampledFrom([]string{"free", "pro"}).Draw(w.T, "plan"),
		Time: w.clock.Now().Add(-time.Duration(rapid.Int64Range(0, 100_000).Draw(w.T, "late")) * time.Millisecond), Turn: rapid.Bool().Draw(w.T, "turn"),
	}
	r.ID += r.User
	r.Tokens.Prompt = rapid.Ptr(amount(0), true).Draw(w.T, "prompt")
	r.Tokens.Total = rapid.Ptr(amount(0), true).Draw(w.T, "total")
	_, _ = agree(w, "record", func(s store.Store) (bool, error) { return s.Record(ctx, r) })
}

func (w *twins) owner() store.Owner { return rapid.SampledFrom(w.owners).Draw(w.T, "owner") }

// id draws one of a few ids of a kind of operation. Where it was forgotten only
// before the clock went back, it is not said whether it is known.
func (w *twins) id(of string) (id string, open bool) {
	id = fmt.Sprint("op-", rapid.IntRange(1, 6).Draw(w.T, "id"))
	return id, w.certain(of + id)
}

func (w *twins) certain(what string) bool {
	ends, known := w.ends[what]
	return !known || ends.After(w.latest) || !ends.After(w.clock.Now())
}

// remember notes when something is forgotten, unless it is still known.
func (w *twins) remember(what string, life time.Duration) {
	if ends := w.ends[what]; !ends.After(w.clock.Now()) {
		w.put(what, life)
	}
}

func (w *twins) put(what string, life time.Duration) {
	ends := w.clock.Now().Add(life)
	if ends.Before(w.clock.Now()) {
		ends = time.Unix(1<<40, 0)
	}
	w.ends[what] = ends
}

func (w *twins) admit() {
	o := w.owner()
	id, certain := w.id(fmt.Sprint("admit", o))
	if !certain {
		return
	}
	a := store.Admission{ID: id, Owner: o}
	for _, limit := range buckets {
		switch b := rapid.SampledFrom(w.plans).Draw(w.T, "plan"); rapid.IntRange(0, 3).Draw(w.T, "item") {
		case 1, 2:
			left, err := w.memory.Balance(ctx, o, limit, b)
			require.NoError(w, err)
			edge := min(max(left+rapid.Int64Range(-1, 1).Draw(w.T, "off"), 0), store.MaxUnits)
			t := store.Take{Bucket: b, Cost: rapid.OneOf(amount(0), rapid.Just(edge)).Draw(w.T, "cost")}
			t.MaxWait = rapid.OneOf(rapid.Just(time.Duration(0)), lasting(0)).Draw(w.T, "max wait")
			t.Reserve = rapid.OneOf(rapid.Just(time.Duration(0)), lasting(0)).Draw(w.T, "reserve")
			a.Items = append(a.Items, store.Item{Limit: limit, Take: &t})
		case 3:
			a.Items = append(a.Items, store.Item{Limit: limit, Room: &store.Room{Bucket: b, Cost: amount(0).Draw(w.T, "room")}})
		}
	}
	if rapid.Bool().Draw(w.T, "lease") {
		c := store.Cap{Max: rapid.OneOf(rapid.Int64Range(1, 3), rapid.Just(int64(1<<62))).Draw(w.T, "max"), Expires: lasting(1_000_000).Draw(w.T, "expires")}
		a.Items = append(a.Items, store.Item{Limit: "runs", Acquire: &store.Acquire{Cap: c, Member: w.member()}})
	}
	_, known := w.ends[fmt.Sprint("admit", o)+id]
	known = known && w.ends[fmt.Sprint("admit", o)+id].After(w.clock.Now())
	d, err := agree(w, "admit", func(s store.Store) (store.Decision, error) { return s.Admit(ctx, a) })
	if err != nil || known {
		return
	}
	w.remember(fmt.Sprint("admit", o)+id, store.Remembered)
	for _, item := range a.Items {
		if item.Take != nil && item.Take.Reserve > 0 && (d.Kind == store.Now || d.Kind == store.Later) {
			w.put(fmt.Sprint("reservation", o, item.Limit)+id, store.Millis(store.MillisOf(item.Take.Reserve)))
		}
	}
}

func (w *twins) member() string {
	return rapid.SampledFrom([]string{"run-1", "run-2", "\x00", "run-4"}).Draw(w.T, "member")
}

func (w *twins) settle() {
	o, limit := w.owner(), rapid.SampledFrom(buckets).Draw(w.T, "limit")
	what := fmt.Sprint("reservation", o, limit)
	id, certain := w.id(what)
	if !certain {
		return
	}
	r := store.Reservation{ID: id, Owner: o, Limit: limit, Bucket: rapid.SampledFrom(w.plans).Draw(w.T, "plan")}
	actual := amount(0).Draw(w.T, "actual")
	_, err := agree(w, "settle", func(s store.Store) (int64, error) { return s.Settle(ctx, r, actual) })
	if err == nil && w.ends["settled"+what+id] != w.ends[what+id] {
		w.put(what+id, store.Remembered)
		w.ends["settled"+what+id] = w.ends[what+id]
	}
}

func (w *twins) leases() []store.Lease {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) store.Lease {
		return store.Lease{
			Owner: rapid.SampledFrom(w.owners).Draw(t, "owner"), Limit: rapid.SampledFrom(leaseSets).Draw(t, "limit"),
			Member: rapid.SampledFrom([]string{"run-1", "run-2", "\x00"}).Draw(t, "member"), Cap: store.Cap{Max: 1, Expires: lasting(1_000_000).Draw(t, "expires")},
		}
	}), 1, 6).Draw(w.T, "leases")
}

func (w *twins) renew() {
	leases := w.leases()
	_, _ = agree(w, "renew", func(s store.Store) ([]bool, error) { return s.Renew(ctx, leases) })
}

func (w *twins) free() {
	lease := w.leases()[0]
	_, _ = agree(w, "free", func(s store.Store) (bool, error) { return s.Free(ctx, lease) })
}

func (w *twins) refill() {
	o, limit := w.owner(), rapid.SampledFrom(buckets).Draw(w.T, "limit")
	_, _ = agree(w, "refill", func(s store.Store) (any, error) { return nil, s.Refill(ctx, o, limit) })
}

func (w *twins) claimKey(key string) store.ClaimKey {
	return store.ClaimKey{Owner: w.owners[0], Name: "n", Key: key}
}

func (w *twins) key() string { return rapid.SampledFrom(claimKeys).Draw(w.T, "key") }

// claim compares all but the tokens, which each engine makes its own way: the
// same claims have the same.
func (w *twins) claim() {
	key, holder, ttl := w.key(), rapid.SampledFrom([]string{"worker-1", "worker-2"}).Draw(w.T, "holder"), lasting(1_000_000).Draw(w.T, "ttl")
	var tokens [2]int64
	_, _ = agree(w, "claim", func(s store.Store) (store.Claim, error) {
		c, err := s.Claim(ctx, w.claimKey(key), holder, ttl)
		if s == w.memory {
			tokens[0] = c.Token
		} else {
			tokens[1] = c.Token
		}
		c.Token = 0
		return c, err
	})
	for _, earlier := range w.tokens {
		require.Equal(w, earlier[0] == tokens[0], earlier[1] == tokens[1])
	}
	w.tokens = append(w.tokens, tokens)
}

// token draws one that a claim gave.
func (w *twins) token() func(store.Store) int64 {
	drawn := rapid.SampledFrom(append(w.tokens, [2]int64{7_000_000, 7_000_000})).Draw(w.T, "token")
	return func(s store.Store) int64 {
		if s == w.memory {
			return drawn[0]
		}
		return drawn[1]
	}
}

func (w *twins) renewClaim() {
	key, token, ttl := w.key(), w.token(), lasting(1_000_000).Draw(w.T, "ttl")
	_, _ = agree(w, "renew claim", func(s store.Store) (any, error) { return nil, s.RenewClaim(ctx, w.claimKey(key), token(s), ttl) })
}

func (w *twins) endClaim() {
	key, token, retention := w.key(), w.token(), lasting(1_000_000).Draw(w.T, "retention")
	result := rapid.SampledFrom([][]byte{nil, {}, []byte("done"), {0, 255}}).Draw(w.T, "result")
	_, _ = agree(w, "end claim", func(s store.Store) (any, error) {
		return nil, s.EndClaim(ctx, w.claimKey(key), token(s), result, retention)
	})
}

func (w *twins) value() {
	key, ttl, value := w.key(), lasting(1_000_000).Draw(w.T, "ttl"), rapid.SliceOf(rapid.Byte()).Draw(w.T, "value")
	_, _ = agree(w, "put value", func(s store.Store) (any, error) {
		return nil, s.PutValue(ctx, store.ValueKey{Owner: w.owners[0], Name: "n", Key: key}, value, ttl)
	})
}

func (w *twins) count() {
	name := w.key()
	id, certain := w.id("add" + name)
	if !certain {
		return
	}
	delta := rapid.Int64Range(-store.MaxUnits, store.MaxUnits).Draw(w.T, "delta")
	_, err := agree(w, "add", func(s store.Store) (int64, error) { return s.AddCounter(ctx, w.owners[0], name, id, delta) })
	if err == nil {
		w.remember("add"+name+id, store.Remembered)
	}
}

func (w *twins) learn() {
	id, certain := w.id("learn")
	if !certain {
		return
	}
	sample := store.Sample{App: "shop", Agent: rapid.SampledFrom([]string{"desk", "a:b"}).Draw(w.T, "agent"), Model: "m", Calls: rapid.OneOf(rapid.Int64Range(0, 200), rapid.Int64Range(1, 1_000_000)).Draw(w.T, "calls")}
	if sample.Calls > 0 {
		sample.Units = rapid.OneOf(rapid.Int64Range(0, 100_000), rapid.Int64Range(0, 1e13), rapid.Just(int64(1e13))).Draw(w.T, "units")
	}
	_, _ = agree(w, "learn", func(s store.Store) ([]int64, error) { return s.Learn(ctx, id, []store.Sample{sample, sample}) })
	w.remember("learn"+id, store.Remembered)
}
