// Package ahead serves takes of a hot bucket out of slices that this process
// took of it ahead, so that most takes ask no store.
//
// A slice is one open reservation in the store. Each take is served out of one
// slice, and what it is settled with stays with that slice: what a call did not
// use can be drawn again, what it used beyond its charge is drawn from the
// rest, below zero if need be. A slice that cannot serve the next take, or that
// is older than Life, serves none any more. It is settled with what its calls
// used, which gives the rest back to all, and the takes that are still open
// move to a reservation of just their sum. That one is settled in the same way
// whenever it is a Life old and some of them have ended, and when all have. So
// a call that lasts keeps its own charge from the others and nothing else.
//
// What this does to the bound: all that is served was charged before, so in any
// span of time all processes together grant at most what the bucket allows in
// it and what they had in hand when it began, that is one slice each. The
// other way round a process that keeps a slice it does not need, or that died
// with one, keeps it from the others: the first for Life, the second for good.
// Nothing of what calls used is lost or charged twice, but the bucket learns it
// later than the call ends, by one Life and a tick of Run at most.
// While takes move they are charged twice for a moment, never not at all.
package ahead

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hookhost/hookhost/store"
)

// Life is how long a slice serves takes.
const Life = 5 * time.Second

// thinFor is how long no slice is asked for after the bucket did not hold one:
// meanwhile each take asks for itself.
const thinFor = 100 * time.Millisecond

// Bucket names what slices are taken of.
type Bucket struct {
	Owner store.Owner
	Limit string
}

// Pool has the slices of one process.
type Pool struct {
	write Writer

	mu      sync.Mutex
	buckets map[Bucket]*bucket
	retired map[*slice]bool // with open takes
}

// Writer tells the store, behind the calls and in the order in which it was
// told.
type Writer interface {
	// Settle ends a reservation with what was used of it.
	Settle(r store.Reservation, used int64)
	// Move ends a reservation too, and opens another in its bucket, for what is
	// still drawn.
	Move(r store.Reservation, used, drawn int64) store.Reservation
}

type bucket struct {
	slice *slice // nil if there is none in hand
	fetch *fetch // nil if none is on the way
	thin  time.Time
}

// fetch is a slice on the way.
type fetch struct {
	over chan struct{}
	err  error // with over
}

type slice struct {
	pool         *Pool
	reservation  store.Reservation
	units        int64 // of the reservation
	spent, drawn int64 // of the takes that are settled, and that are not
	open         int   // takes that are not settled
	until        time.Time
	retired      bool // until is then the time to move
	settled      bool
}

func (s *slice) left() int64 { return s.units - s.spent - s.drawn }

// Draw is a take that was served out of a slice.
type Draw struct {
	slice *slice
	cost  int64
	once  sync.Once
}

// New makes a pool without slices.
func New(w Writer) *Pool {
	return &Pool{write: w, buckets: map[Bucket]*bucket{}, retired: map[*slice]bool{}}
}

// What a fetch of a slice comes to where it brings none.
var (
	ErrThin = errors.New("the bucket holds no slice")
	// ErrMine is a failure of the caller that fetched, who had no time or went
	// away: those who waited for it fetch themselves.
	ErrMine = errors.New("the caller could not fetch")
)

// Take serves a take out of the slice in hand. If that does not hold it, one
// caller takes the next slice, for which the others wait: get returns it, or
// ErrThin, or with ErrMine what says nothing to them. Where there is none every caller has to ask for itself, and Take
// returns nil with the error of get.
func (p *Pool) Take(ctx context.Context, of Bucket, cost int64, get func() (r store.Reservation, units int64, err error)) (*Draw, error) {
	for {
		d, coming, mine := p.draw(of, cost)
		switch {
		case d != nil:
			return d, nil
		case coming == nil:
			return nil, ErrThin
		case mine:
			r, units, err := get()
			p.arrived(of, coming, r, units, err)
			if err != nil {
				return nil, err
			}
		default:
			select {
			case <-coming.over:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			if coming.err != nil && !errors.Is(coming.err, ErrMine) {
				return nil, coming.err
			}
		}
	}
}

// draw serves a take, or says what has to come first. A slice is mine to fetch
// if nobody else does; nil if it is not worth it.
func (p *Pool) draw(of Bucket, cost int64) (d *Draw, coming *fetch, mine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.buckets[of]
	if b == nil {
		b = &bucket{}
		p.buckets[of] = b
	}
	if s := b.slice; s != nil && s.left() >= cost && time.Now().Before(s.until) {
		s.drawn += cost
		s.open++
		return &Draw{slice: s, cost: cost}, nil, false
	}
	switch {
	case b.fetch != nil:
		return nil, b.fetch, false
	case time.Now().Before(b.thin):
		return nil, nil, false
	}
	b.fetch = &fetch{over: make(chan struct{})}
	return nil, b.fetch, true
}

func (p *Pool) arrived(of Bucket, f *fetch, r store.Reservation, units int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.buckets[of]
	b.fetch, f.err = nil, err
	close(f.over)
	switch {
	case errors.Is(err, ErrThin):
		b.thin = time.Now().Add(thinFor)
	case err == nil:
		if b.slice != nil {
			b.slice.retire()
		}
		b.slice = &slice{pool: p, reservation: r, units: units, until: time.Now().Add(Life)}
	}
}

// Holds reports whether the slice in hand holds so much.
func (p *Pool) Holds(of Bucket, units int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.buckets[of]
	return b != nil && b.slice != nil && b.slice.left() >= units && time.Now().Before(b.slice.until)
}

// Settle replaces what a take charged by what was used, once.
func (d *Draw) Settle(actual int64) {
	d.once.Do(func() {
		s := d.slice
		s.pool.mu.Lock()
		defer s.pool.mu.Unlock()
		s.drawn -= d.cost
		s.spent += actual
		s.open--
		s.finish()
	})
}

// Keep leaves what a take charged as it is.
func (d *Draw) Keep() { d.Settle(d.cost) }

// Run retires what has become too old, and moves what is open of it, until ctx
// is done.
func (p *Pool) Run(ctx context.Context) {
	tick := time.NewTicker(Life / 5)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			p.age(now)
		}
	}
}

func (p *Pool) age(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.retired {
		if !now.Before(s.until) {
			s.move()
		}
	}
	for of, b := range p.buckets {
		if b.slice != nil && !now.Before(b.slice.until) {
			b.slice.retire()
			b.slice = nil
		}
		if b.slice == nil && b.fetch == nil && now.After(b.thin) {
			delete(p.buckets, of)
		}
	}
}

// Close settles all slices. What is drawn stays charged.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for of, b := range p.buckets {
		if b.slice != nil {
			b.slice.close()
		}
		delete(p.buckets, of)
	}
	for s := range p.retired {
		s.close()
	}
}

// The following are called with the lock held.

func (s *slice) retire() {
	s.retired = true
	s.pool.retired[s] = true
	s.move()
	s.finish()
}

// move leaves the slice no more than what is drawn of it.
func (s *slice) move() {
	s.until = time.Now().Add(Life)
	if s.open == 0 || s.units == s.drawn {
		return
	}
	s.reservation = s.pool.write.Move(s.reservation, s.spent, s.drawn)
	s.units, s.spent = s.drawn, 0
}

func (s *slice) finish() {
	if s.retired && !s.settled && s.open <= 0 {
		s.settled = true
		delete(s.pool.retired, s)
		s.pool.write.Settle(s.reservation, s.spent)
	}
}

// close ends the slice whatever is open.
func (s *slice) close() {
	s.retired, s.open = true, 0
	s.spent, s.drawn = s.spent+s.drawn, 0
	s.finish()
}
