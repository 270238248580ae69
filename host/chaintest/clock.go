package chaintest

import (
	"context"
	"math"
	"sync"
	"time"
)

// Start is where the test's clock begins.
var Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Clock is the time of a test: it stands still until somebody waits for it.
// Host, store and model share it, so that a wait of six seconds takes none.
//
// When several turns go on at once, time passes only while all of them wait,
// and then up to the first that is due: they overlap in the same way in every
// run of the test.
type Clock struct {
	mu      sync.Mutex
	changed sync.Cond
	now     time.Time
	players map[*player]bool
}

// player is one of the turns that go on at once.
type player struct{ naps []*nap }

type nap struct {
	until time.Time
	over  chan struct{}
}

type playerKey struct{}

// NewClock makes a clock that stands at Start.
func NewClock() *Clock {
	c := &Clock{now: Start, players: map[*player]bool{}}
	c.changed.L = &c.mu
	return c
}

// Now is the time of the test.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock on.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Sleep lets the time pass.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p, _ := ctx.Value(playerKey{}).(*player)
	c.mu.Lock()
	if !c.players[p] || len(c.players) == 1 {
		c.now = c.now.Add(d)
		c.mu.Unlock()
		return nil
	}
	n := &nap{until: c.now.Add(d), over: make(chan struct{})}
	p.naps = append(p.naps, n)
	c.pass()
	c.mu.Unlock()
	select {
	case <-n.over:
		return nil
	case <-ctx.Done():
		c.wake(p, n)
		return ctx.Err()
	}
}

// wake takes a nap out whose sleeper is gone.
func (c *Clock) wake(p *player, n *nap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range p.naps {
		if p.naps[i] == n {
			p.naps = append(p.naps[:i], p.naps[i+1:]...)
			return
		}
	}
}

// join makes turns of which none has begun yet.
func (c *Clock) join(n int) []*player {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*player, n)
	for i := range all {
		all[i] = new(player)
		c.players[all[i]] = true
	}
	return all
}

// leave says that a turn is over.
func (c *Clock) leave(p *player) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.players, p)
	c.pass()
}

// settled waits until a turn sleeps or is over.
func (c *Clock) settled(p *player) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.players[p] && len(p.naps) == 0 {
		c.changed.Wait()
	}
}

// pass moves the time on and wakes one sleeper, if every turn has one. The
// lock is held.
func (c *Clock) pass() {
	defer c.changed.Broadcast()
	var next *nap
	var whose *player
	first := time.Unix(math.MaxInt32, 0)
	for p := range c.players {
		if len(p.naps) == 0 {
			return
		}
		for _, n := range p.naps {
			if n.until.Before(first) {
				first, next, whose = n.until, n, p
			}
		}
	}
	if next == nil {
		return
	}
	if next.until.After(c.now) {
		c.now = next.until
	}
	for i := range whose.naps {
		if whose.naps[i] == next {
			whose.naps = append(whose.naps[:i], whose.naps[i+1:]...)
			break
		}
	}
	close(next.over)
}
