package main

import (
	"fmt"

	"github.com/go-redis/redis_rate/v10"
	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/redis/redistest"
)

const (
	peersOfRound = 40_000
	peerUsers    = 1000
	counted      = 10
)

// measurePeer compares decisions with those of redis_rate (GCRA) on the same
// server: of one bucket, and of the two buckets of a turn, for which
// redis_rate is asked twice. Leases, reservations and repetition by id it has
// not.
func measurePeer(l *lab, s settings) []figure {
	server := redistest.Single(l)
	wire := redistest.Proxy(l, server.Addr)
	ours, gcra := openStore(l, server.URL()), newGCRA(l, server.Addr)
	oursWire, gcraWire := openStore(l, "redis://"+wire.Addr), newGCRA(l, wire.Addr)

	var one, whole, oneTrips, wholeTrips rounds
	for range s.rounds {
		empty(l, server)
		one.add(perSecond(l, peersOfRound, ids(func(user, id string) bool { return l.admit(ours, oneBucket(user, id)) })),
			perSecond(l, peersOfRound, ids(func(user, _ string) bool { return l.allow(gcra, "turn:"+user) })))
		empty(l, server)
		whole.add(perSecond(l, peersOfRound, ids(func(user, id string) bool { return l.admit(ours, wholeTurn(user, id)) })),
			perSecond(l, peersOfRound, ids(func(user, _ string) bool {
				return l.allow(gcra, "turn:"+user) && l.allow(gcra, "tokens:"+user)
			})))
		empty(l, server)
		oneTrips.add(trips(l, wire, ids(func(user, id string) bool { return l.admit(oursWire, oneBucket(user, id)) })),
			trips(l, wire, ids(func(user, _ string) bool { return l.allow(gcraWire, "turn:"+user) })))
		wholeTrips.add(trips(l, wire, ids(func(user, id string) bool { return l.admit(oursWire, wholeTurn(user, id)) })),
			trips(l, wire, ids(func(user, _ string) bool {
				return l.allow(gcraWire, "turn:"+user) && l.allow(gcraWire, "tokens:"+user)
			})))
	}
	return []figure{
		one.ratio("peer: decisions of one bucket", "per second", "redis_rate"),
		oneTrips.ratio("peer: round trips for one bucket", "count", "redis_rate"),
		whole.ratio("peer: turn, tokens and lease", "per second", "redis_rate, no lease"),
		wholeTrips.ratio("peer: round trips for turn, tokens, lease", "count", "redis_rate, no lease"),
	}
}

func oneBucket(user, id string) store.Admission {
	a := wholeTurn(user, id)
	a.Items = a.Items[:1]
	return a
}

func newGCRA(l *lab, addr string) *redis_rate.Limiter {
	client := goredis.NewClient(&goredis.Options{Addr: addr, PoolSize: connections, Protocol: 2, DisableIdentity: true})
	l.Cleanup(func() { _ = client.Close() })
	return redis_rate.NewLimiter(client)
}

// allow asks redis_rate for something that has to be granted.
func (l *lab) allow(r *redis_rate.Limiter, key string) bool {
	result, err := r.Allow(l.ctx, key, redis_rate.Limit{Rate: 1e6, Burst: 1e6, Period: 1e9})
	return err == nil && result.Allowed == 1
}

var peerIDs int

// ids gives the decisions of a round users and ids of their own.
func ids(decide func(user, id string) bool) func(int) bool {
	peerIDs++
	round := peerIDs
	return func(i int) bool { return decide(userName(i%peerUsers), fmt.Sprint(round, "-", i)) }
}

// trips is the round trips of a decision, of connections and scripts that are
// known.
func trips(l *lab, wire *redistest.Wire, decide func(int) bool) float64 {
	require.True(l, decide(0))
	before := wire.RoundTrips()
	for i := range counted {
		require.True(l, decide(i+1))
	}
	return float64(wire.RoundTrips()-before) / counted
}
