// Package learn keeps at hand what calls use on average. What this process
// sees is gathered in memory and exchanged with the store behind the calls, so
// that no call waits for it and all processes come to know the same.
package learn

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/hookhost/hookhost/store"
)

// Every is how often Run exchanges.
const Every = 2 * time.Second

// maxKnown bounds the averages that are kept. Of what comes beyond nothing is
// learned.
const maxKnown = 1000

// The most that one sample may hold.
const (
	maxCalls = 1_000_000
	maxUnits = 1e13
)

// Of is what an average is about.
type Of struct{ App, Agent, Model string }

// Learner knows the averages that somebody asked for or added to.
type Learner struct {
	store store.Averages
	id    string // of this process
	round int64  // of exchanges; under mu

	exchanging sync.Mutex
	unsent     *batch // whose answer did not come; under exchanging

	mu    sync.Mutex
	known map[Of]*average
}

type average struct {
	mean         int64 // as the store last said; 0 is not known
	calls, units int64 // since the last exchange
}

// batch is what one exchange is about. With its id it is learned once.
type batch struct {
	id      string
	samples []store.Sample
}

// New makes a learner that knows nothing yet.
func New(s store.Averages) *Learner {
	return &Learner{store: s, id: rand.Text(), known: map[Of]*average{}}
}

// Mean is what a call uses, if anything was learned. It asks nobody: what is
// new to this process is known after the next exchange.
func (l *Learner) Mean(of Of) (units int64, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.of(of)
	if a == nil || a.mean == 0 {
		return 0, false
	}
	return a.mean, true
}

// Add learns what a call used.
func (l *Learner) Add(of Of, units int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.of(of); a != nil && a.calls < maxCalls {
		a.calls, a.units = a.calls+1, min(a.units+units, maxUnits)
	}
}

// of is called with the lock held. It is nil where there is no room.
func (l *Learner) of(of Of) *average {
	a := l.known[of]
	if a == nil && len(l.known) < maxKnown {
		a = &average{}
		l.known[of] = a
	}
	return a
}

// Run exchanges until ctx is done, and then once more, with so much time for
// each.
func (l *Learner) Run(ctx context.Context, timeout time.Duration, log *slog.Logger) {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	away := false
	for over := false; !over; {
		select {
		case <-ctx.Done():
			over = true
		case <-tick.C:
		}
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		err := l.Exchange(bounded)
		cancel()
		if err != nil && !away {
			log.Warn("averages not exchanged", "error", err)
		}
		away = err != nil
	}
}

// Exchange tells the store what was learned, and reads the averages. What the
// store did not answer to is told again, by the same id.
func (l *Learner) Exchange(ctx context.Context) error {
	l.exchanging.Lock()
	defer l.exchanging.Unlock()
	if l.unsent != nil {
		if err := l.send(ctx, *l.unsent); err != nil {
			return err
		}
	}
	next := l.gather()
	if len(next.samples) == 0 {
		return nil
	}
	return l.send(ctx, next)
}

func (l *Learner) send(ctx context.Context, b batch) error {
	means, err := l.store.Learn(ctx, b.id, b.samples)
	l.unsent = nil
	if err != nil {
		if errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
			l.unsent = &b
		}
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range b.samples[:min(len(means), len(b.samples))] {
		l.known[Of{s.App, s.Agent, s.Model}].mean = means[i]
	}
	return nil
}

// gather takes what was added since the last exchange. What was only asked
// for is read with it.
func (l *Learner) gather() batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.round++
	b := batch{id: l.id + "/" + strconv.FormatInt(l.round, 10)}
	for of, a := range l.known {
		b.samples = append(b.samples, store.Sample{App: of.App, Agent: of.Agent, Model: of.Model, Calls: a.calls, Units: a.units})
		a.calls, a.units = 0, 0
	}
	return b
}
