// Package learn keeps at hand what calls use on average. What this process
// sees is gathered in memory and exchanged with the store behind the calls, so
// that no call waits for it and all processes come to know the same.
package learn

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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

// stuckTries is in how many exchanges that took samples of others a batch may
// fail before it is given up: it is not the store that is away.
const stuckTries = 30

// Learner knows the averages that somebody asked for or added to.
type Learner struct {
	store   store.Averages
	timeout time.Duration
	log     *slog.Logger
	id      string // of this process

	exchanging sync.Mutex
	sent       int64   // batches; under exchanging
	unsent     []batch // whose answer did not come; under exchanging

	mu    sync.Mutex
	known map[Of]*average
}

type average struct {
	mean         int64 // as the store last said; 0 is not known
	calls, units int64 // since the last exchange
}

// batch is of one app: the store learns all of it or nothing, and once with
// its id.
type batch struct {
	id      string
	samples []store.Sample
	tries   int // that failed while the store took others
}

// New makes a learner that knows nothing yet. Each call to the store has that
// timeout.
func New(s store.Averages, timeout time.Duration, log *slog.Logger) *Learner {
	return &Learner{store: s, timeout: timeout, log: log, id: rand.Text(), known: map[Of]*average{}}
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

// Run exchanges until ctx is done, and then once more.
func (l *Learner) Run(ctx context.Context) {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	failing := false
	for over := false; !over; {
		select {
		case <-ctx.Done():
			over = true
		case <-tick.C:
		}
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), Every)
		err := l.Exchange(bounded)
		cancel()
		if err != nil && !failing {
			l.log.Warn("averages not exchanged", "error", err)
		}
		failing = err != nil
	}
}

// Exchange tells the store what was learned, and reads the averages. What the
// store did not answer to is told again, by the same id, and before anything
// else of its app; one app, or one average with a key of another program in its
// way, holds up no other.
func (l *Learner) Exchange(ctx context.Context) error {
	l.exchanging.Lock()
	defer l.exchanging.Unlock()
	again, takenAgain, err := l.sendAll(ctx, l.unsent)
	failed, taken, err2 := l.sendAll(ctx, l.gather(again))
	l.unsent = nil
	for _, b := range append(again, failed...) {
		if takenAgain+taken > 0 && ctx.Err() == nil {
			b.tries++
		}
		if b.tries >= stuckTries {
			l.giveUp(b, fmt.Errorf("failed %d times while the store took others", b.tries))
			continue
		}
		l.unsent = append(l.unsent, b)
	}
	return errors.Join(err, err2)
}

// sendAll says which batches the store did not answer to, and how many it took.
func (l *Learner) sendAll(ctx context.Context, queue []batch) (failed []batch, taken int, _ error) {
	var errs []error
	for ; len(queue) > 0; queue = queue[1:] {
		b := queue[0]
		err := l.send(ctx, b)
		switch {
		case err == nil:
			taken++
			continue
		case errors.Is(err, store.ErrInTheWay) && len(b.samples) > 1: // so nothing of it was learned
			half := len(b.samples) / 2
			queue = append(queue, l.batch(b.samples[:half]), l.batch(b.samples[half:]))
			continue
		case errors.Is(err, store.ErrInTheWay), !store.IsAway(err):
			l.giveUp(b, err)
		default:
			failed = append(failed, b)
		}
		errs = append(errs, err)
	}
	return failed, taken, errors.Join(errs...)
}

func (l *Learner) send(ctx context.Context, b batch) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	means, err := l.store.Learn(ctx, b.id, b.samples)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range b.samples[:min(len(means), len(b.samples))] {
		l.known[Of{s.App, s.Agent, s.Model}].mean = means[i]
	}
	return nil
}

// giveUp logs what is not learned. That an average could only not be read is
// no loss.
func (l *Learner) giveUp(b batch, err error) {
	var calls int64
	for _, s := range b.samples {
		calls += s.Calls
	}
	if calls > 0 {
		s := b.samples[0]
		l.log.Warn("samples are given up", "app", s.App, "agent", s.Agent, "model", s.Model, "samples", len(b.samples), "calls", calls, "error", err)
	}
}

// gather takes what was added since the last exchange. What was only asked
// for is read with it. Apps of which something is unsent have to wait.
func (l *Learner) gather(unsent []batch) (batches []batch) {
	waits := map[string]bool{}
	for _, b := range unsent {
		waits[b.samples[0].App] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	apps := map[string][]store.Sample{}
	for of, a := range l.known {
		if waits[of.App] {
			continue
		}
		apps[of.App] = append(apps[of.App], store.Sample{App: of.App, Agent: of.Agent, Model: of.Model, Calls: a.calls, Units: a.units})
		a.calls, a.units = 0, 0
	}
	for _, samples := range apps {
		batches = append(batches, l.batch(samples))
	}
	return batches
}

func (l *Learner) batch(samples []store.Sample) batch {
	l.sent++
	return batch{id: l.id + "/" + strconv.FormatInt(l.sent, 10), samples: samples}
}
