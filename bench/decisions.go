package main

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/redis"
)

const connections = 50

// openStore opens the engine as a host does, with as many connections as the
// peers get.
func openStore(l *lab, url string) *redis.Store {
	s, err := redis.Open(l.ctx, redis.Config{URL: url, Namespace: "bench", Timeout: 10 * time.Second, Pool: connections})
	require.NoError(l, err)
	l.Cleanup(func() { _ = s.Close(l.ctx) })
	return s
}

// bucket is so large that everything is granted, and not full for long.
var bucket = store.Bucket{Units: 1, Per: time.Minute, Burst: 1e12}

// wholeTurn is what the limiter asks for when a run begins: a turn, room for
// tokens and a lease.
func wholeTurn(user, id string) store.Admission {
	return store.Admission{ID: id, Owner: store.Owner{Kind: store.OwnerUser, App: app, User: user}, Items: []store.Item{
		{Limit: "turn", Take: &store.Take{Bucket: bucket, Cost: 1}},
		{Limit: "tokens", Room: &store.Room{Bucket: bucket, Cost: 1}},
		{Limit: "runs", Acquire: &store.Acquire{Cap: store.Cap{Max: 2, Expires: time.Hour}, Member: "run"}},
	}}
}

// admit makes an admission that has to be granted.
func (l *lab) admit(s store.Store, a store.Admission) bool {
	d, err := s.Admit(l.ctx, a)
	return err == nil && d.Kind == store.Now
}

// perSecond makes n decisions from as many goroutines as there are
// connections, and gives how many were made in a second.
func perSecond(l *lab, n int, decide func(i int) (granted bool)) float64 {
	var next, refused atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	for range connections {
		all.Go(func() {
			for i := int(next.Add(1)); i <= n; i = int(next.Add(1)) {
				if !decide(i) {
					refused.Add(1)
				}
			}
		})
	}
	all.Wait()
	elapsed := time.Since(start)
	require.Zero(l, refused.Load(), "decisions that failed or were refused")
	return float64(n) / elapsed.Seconds()
}
