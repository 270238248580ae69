package redis

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/redis/redistest"
	"github.com/hookhost/hookhost/store/storetest"
)

var ctx = context.Background()

const patient = 20 * time.Second // more than any test takes

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// opened is a store with the shipped scripts.
func opened(t testing.TB, url string, options ...func(*Config)) *Store {
	t.Helper()
	c := Config{URL: url, Namespace: "test", Timeout: patient, Log: quiet()}
	for _, option := range options {
		option(&c)
	}
	s, err := Open(ctx, c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(ctx)) })
	return s
}

// testClock is the line by which the tests' scripts read the suite's clock.
const testClock = "local time = redis.call('LRANGE', 'clock', 0, 1)\n"

// serverClock is a storetest.Clock that those scripts go by.
type serverClock struct {
	*storetest.ManualClock
	t      testing.TB
	server *redistest.Server
}

func newServerClock(t testing.TB, server *redistest.Server) serverClock {
	c := serverClock{storetest.NewClock(), t, server}
	c.tell()
	return c
}

func (c serverClock) tell() {
	now := c.Now()
	pipe := c.server.Client.TxPipeline()
	pipe.Del(ctx, "clock")
	pipe.RPush(ctx, "clock", strconv.FormatInt(now.Unix(), 10), strconv.Itoa(now.Nanosecond()/1000))
	_, err := pipe.Exec(ctx)
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

// onClock is a store whose scripts go by such a clock.
func onClock(t testing.TB, server *redistest.Server, namespace string) *Store {
	t.Helper()
	s, err := open(ctx, Config{URL: server.URL(), Namespace: namespace, Timeout: patient, Log: quiet()}, testClock)
	require.NoError(t, err)
	return s
}

var (
	ann    = store.Owner{Kind: store.OwnerUser, App: "shop", User: "ann"}
	hourly = store.Bucket{Units: 1, Per: time.Hour, Burst: 100}
	runs   = store.Cap{Max: 100, Expires: time.Hour}
)

var ids atomic.Int64

func newID() string { return fmt.Sprint("op-", ids.Add(1)) }

func take(s *Store, o store.Owner, cost int64) (store.Decision, error) {
	return s.Admit(ctx, store.Admission{ID: newID(), Owner: o, Items: []store.Item{{Limit: "tokens", Take: &store.Take{Bucket: hourly, Cost: cost}}}})
}

func balance(t testing.TB, s *Store, o store.Owner) int64 {
	t.Helper()
	left, err := s.Balance(ctx, o, "tokens", hourly)
	require.NoError(t, err)
	return left
}

// turn is an admission of all kinds of things: a turn, tokens with a
// reservation, room, and a lease.
func turn(id string, o store.Owner) store.Admission {
	return store.Admission{ID: id, Owner: o, Items: []store.Item{
		{Limit: "turn", Take: &store.Take{Bucket: hourly, Cost: 1}},
		{Limit: "tokens", Take: &store.Take{Bucket: hourly, Cost: 10, Reserve: time.Minute}},
		{Limit: "room", Room: &store.Room{Bucket: hourly, Cost: 10}},
		{Limit: "runs", Acquire: &store.Acquire{Cap: runs, Member: id}},
	}}
}

// operations are all that a store can do, each checked for what it came to, in
// an order in which they build on each other.
func operations(s *Store, o store.Owner) []operation {
	var token int64
	id := newID()
	lease := store.Lease{Owner: o, Limit: "runs", Member: id, Cap: runs}
	claim := store.ClaimKey{Owner: o, Name: "turns", Key: id}
	value := store.ValueKey{Owner: o, Name: "prefs", Key: id}
	record := store.Record{ID: id, Time: time.Now(), App: o.App, User: o.User, Turn: true}
	reservation := store.Reservation{ID: id, Owner: o, Limit: "tokens", Bucket: hourly}
	return []operation{
		{"admit", func() (any, error) { d, err := s.Admit(ctx, turn(id, o)); return d.Kind, err }, store.Now},
		{"settle", func() (any, error) { return s.Settle(ctx, reservation, 30) }, int64(70)},
		{"balance", func() (any, error) { return s.Balance(ctx, o, "tokens", hourly) }, int64(70)},
		{"refill", func() (any, error) { return nil, s.Refill(ctx, o, "tokens", "turn") }, nil},
		{"renew", func() (any, error) { return s.Renew(ctx, []store.Lease{lease}) }, []bool{true}},
		{"held", func() (any, error) { return s.Held(ctx, o, "runs") }, int64(1)},
		{"free", func() (any, error) { return s.Free(ctx, lease) }, true},
		{"claim", func() (any, error) {
			c, err := s.Claim(ctx, claim, "worker", time.Minute)
			token = c.Token
			return c.State, err
		}, store.Claimed},
		{"renew claim", func() (any, error) { return nil, s.RenewClaim(ctx, claim, token, time.Minute) }, nil},
		{"end claim", func() (any, error) { return nil, s.EndClaim(ctx, claim, token, []byte("done"), time.Minute) }, nil},
		{"claim result", func() (any, error) { result, _, err := s.ClaimResult(ctx, claim); return string(result), err }, "done"},
		{"put value", func() (any, error) { return nil, s.PutValue(ctx, value, []byte("red"), time.Minute) }, nil},
		{"get value", func() (any, error) { got, _, err := s.GetValue(ctx, value); return string(got), err }, "red"},
		{"add", func() (any, error) { return s.AddCounter(ctx, o, id, id, 3) }, int64(3)},
		{"counter", func() (any, error) { return s.Counter(ctx, o, id) }, int64(3)},
		{"record", func() (any, error) { return s.Record(ctx, record) }, true},
		{"records", func() (any, error) {
			all, err := s.Records(ctx, store.Owner{Kind: store.OwnerGlobal})
			return len(all) > 0, err
		}, true},
		{"activity", func() (any, error) {
			all, err := s.Activity(ctx, store.Owner{Kind: store.OwnerGlobal}, time.Now().Add(-time.Hour))
			return len(all) > 0, err
		}, true},
		{"set override", func() (any, error) {
			return nil, s.SetOverride(ctx, store.Override{App: o.App, User: id, Plan: "pro"})
		}, nil},
		{"overrides", func() (any, error) { all, err := s.Overrides(ctx, ""); return len(all.Changed) > 0, err }, true},
		{"learn", func() (any, error) {
			return s.Learn(ctx, id, []store.Sample{{App: "a", Agent: id, Calls: 1, Units: 7}, {App: "b", Agent: id, Calls: 1, Units: 8}})
		}, []int64{7, 8}},
	}
}

type operation struct {
	name string
	do   func() (any, error)
	want any
}

// succeed does all that a store can do.
func succeed(t testing.TB, s *Store, o store.Owner) {
	t.Helper()
	for _, op := range operations(s, o) {
		got, err := op.do()
		require.NoError(t, err, op.name)
		require.Equal(t, op.want, got, op.name)
	}
}

// fillRecords writes more records of a user than are kept.
func fillRecords(s *Store) error {
	var calls []*call
	user := s.owned(ann)
	for range MaxRecords + 1 {
		record := store.Record{ID: newID(), App: ann.App, User: ann.User}
		calls = append(calls, s.call("record", []string{user.records(), user.recordOrder(), user.activity()},
			record.ID, newID(), encodeRecord(record), MaxRecords, RecordLife.Milliseconds(), 0, 0, "", 0, 0, 0, 0))
	}
	return s.do(ctx, calls...)
}
