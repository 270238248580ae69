package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/redis/redistest"
)

const (
	smallStore       = 1000
	warmUp           = 4000
	decisionsOfRound = 500
	pairsOfRound     = 8 // so that a disturbance meets both
)

// measureSize compares decisions in a store of few users with the same in one
// of many, one after the other on one connection.
func measureSize(l *lab, s settings) []figure {
	large, small := newPopulation(l, s.users), newPopulation(l, smallStore)
	for _, p := range []*population{large, small} {
		p.decide(warmUp)
	}
	var wall, server rounds
	for range s.rounds * pairsOfRound {
		a, aServer := large.decide(decisionsOfRound)
		b, bServer := small.decide(decisionsOfRound)
		wall.add(a, b)
		server.add(aServer, bServer)
	}
	what, peer := fmt.Sprintf("size: a decision among %d users", s.users), fmt.Sprintf("with %d", smallStore)
	return []figure{
		wall.ratio(what, "µs", peer).atMost(1.25),
		server.ratio(what+", in the server", "µs", peer).atMost(1.25),
		alone("size: Redis memory of a user with an open turn", "bytes", []float64{large.bytesOfUser}),
	}
}

// population is a store in which users have had turns.
type population struct {
	*lab
	server      *redistest.Server
	store       store.Store
	users       int
	decided     int
	bytesOfUser float64
}

func userName(i int) string { return fmt.Sprintf("user-%012d", i) }

// copies gives users 1 to n the keys of user 0.
const copies = `
for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do
  local user = string.format('user-%012d', i)
  for _, key in ipairs(KEYS) do
    redis.call('COPY', key, (string.gsub(key, 'user%-000000000000', user)))
  end
end
return ARGV[2]`

func newPopulation(l *lab, users int) *population {
	p := &population{lab: l, server: redistest.Single(l), users: users}
	p.store = openStore(l, p.server.URL())
	empty := p.memory()
	admission := wholeTurn(userName(0), "turn")
	admission.Items[0].Take.Reserve = time.Hour
	require.True(l, l.admit(p.store, admission))
	keys, err := p.server.Client.Keys(l.ctx, "*"+userName(0)+"*").Result()
	require.NoError(l, err)
	require.NotEmpty(l, keys)
	for from := 1; from < users; from += 1000 {
		require.NoError(l, p.server.Client.Eval(l.ctx, copies, keys, from, min(from+999, users-1)).Err())
	}
	size, err := p.server.Client.DBSize(l.ctx).Result()
	require.NoError(l, err)
	require.GreaterOrEqual(l, size, int64(users*len(keys)))
	p.bytesOfUser = (p.memory() - empty) / float64(users)
	return p
}

func (p *population) memory() float64 {
	bytes, err := strconv.ParseFloat(p.server.Info(p, "used_memory"), 64)
	require.NoError(p, err)
	return bytes
}

// decide lets random users have turns, and gives the microseconds of a
// decision, and how many of them the server's script took.
func (p *population) decide(n int) (wall, inServer float64) {
	p.server.Do(p, "CONFIG", "RESETSTAT")
	start := time.Now()
	for range n {
		p.decided++
		require.True(p, p.admit(p.store, wholeTurn(userName(rand.IntN(p.users)), fmt.Sprint("again-", p.decided))))
	}
	wall = float64(time.Since(start).Microseconds()) / float64(n)
	return wall, p.scriptTime()
}

// scriptTime is usec_per_call of EVALSHA since the statistics were reset.
func (p *population) scriptTime() float64 {
	_, after, found := strings.Cut(p.server.Info(p, "cmdstat_evalsha"), "usec_per_call=")
	require.True(p, found)
	text, _, _ := strings.Cut(after, ",")
	microseconds, err := strconv.ParseFloat(text, 64)
	require.NoError(p, err)
	return microseconds
}
