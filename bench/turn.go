package main

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"

	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/demo"
	"github.com/hookhost/hookhost/store/redis/redistest"
)

const plenty = `
version = "1"
default = "free"
[plan.free]
turn = { rate = "1000/s", burst = 1000 }
tokens = { rate = "100000/s", burst = 100000, estimate = 6000, max_wait = "2s" }
runs = { max = 2, expires = "30s" }
`

const (
	turnsOfRound = 20
	replyDelay   = 20 * time.Millisecond
)

// measureTurn counts what one turn with one model call asks of Redis, and how
// much of that its user waits for.
func measureTurn(l *lab, s settings) []figure {
	wire := redistest.Proxy(l, redistest.Single(l).Addr)
	h := openHost(l, s, "redis://"+wire.Addr, plenty, nil)
	t := &turns{lab: l, host: h, runner: newRunner(l, h.Plugin())}

	warmUp := func() {
		for range turnsOfRound {
			t.take()
		}
	}
	warmUp()
	wire.Delay(replyDelay)
	warmUp()

	var trips []float64
	var final, end rounds
	for range s.rounds {
		var counted, fast, slow, fastEnd, slowEnd []float64
		for range turnsOfRound {
			wire.Delay(0)
			before := wire.RoundTrips()
			answered, ended := t.take()
			counted = append(counted, float64(wire.RoundTrips()-before))
			fast, fastEnd = append(fast, answered), append(fastEnd, ended)

			wire.Delay(replyDelay)
			answered, ended = t.take()
			slow, slowEnd = append(slow, answered), append(slowEnd, ended)
		}
		trips = append(trips, median(counted))
		final.add(median(slow), median(fast))
		end.add(median(slowEnd), median(fastEnd))
	}
	const slowly, fast, delays = "ms, replies delayed 20 ms", "not delayed", "(ours - peer) / 20 ms"
	of := func(slow, fast float64) float64 { return (slow - fast) / milliseconds(replyDelay) }
	return []figure{
		alone("turn: round trips, admit to free", "count", trips).atMost(4),
		final.judge("turn: until the final event", slowly, fast, delays, of).atMost(2.2),
		end.judge("turn: until the run is over", slowly, fast, delays, of).atMost(2.2),
	}
}

// turns are of a new user each.
type turns struct {
	*lab
	host   *host.Host
	runner *runner.Runner
	users  int
}

// take makes one turn and lets the host write what it put off. It gives the
// milliseconds until the final event and until the run was over.
func (t *turns) take() (answered, ended float64) {
	t.users++
	start := time.Now()
	out := demo.Run(t.ctx, t.runner, demo.Turn{User: fmt.Sprint("user-", t.users), Text: "Hi", Each: func(ev *session.Event) bool {
		if ev.IsFinalResponse() {
			answered = milliseconds(time.Since(start))
		}
		return true
	}})
	ended = milliseconds(time.Since(start))
	require.NoError(t, out.Err())
	require.Equal(t, []string{"Hello."}, out.Texts())
	require.NoError(t, t.host.Drain(t.ctx))
	return answered, ended
}

func (r *rounds) add(ours, peer float64) {
	r.ours, r.peer = append(r.ours, ours), append(r.peer, peer)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
