package wasm

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// idleFor is how long an instance may be idle before it is closed. One stays.
const idleFor = time.Minute

// pool lends instances, each to one call at a time. It makes them when they
// are needed, up to its size, and puts them back to their image behind the
// calls: that is the work of run, which is started with the pool and ends with
// close. A call that finds only used ones puts one back itself.
type pool struct {
	size    int
	create  func(context.Context) (instance, error)
	metrics *poolMetrics
	busy    atomic.Int64 // instances that are lent

	mu      sync.Mutex
	total   int // instances that there are or that are being made
	clean   []idle
	used    []instance
	waiting []chan struct{} // the first is woken first
	held    uint64          // bytes of the instances that are not lent
	closed  bool
	empty   func() // what follows when the last instance of a closed pool is gone

	work chan struct{} // says that there are used instances
	stop chan struct{}
	done chan struct{}
}

// idle is a clean instance. In a pool the one used last is the last.
type idle struct {
	instance
	since time.Time
}

// offer is what a call finds: an instance, or the place of one that is to be
// made.
type offer struct {
	in   instance
	used bool
}

func newPool(size int, create func(context.Context) (instance, error), metrics *poolMetrics) *pool {
	p := &pool{
		size: size, create: create, metrics: metrics,
		work: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	metrics.watch(p)
	go p.run()
	return p
}

var (
	errNoSlot = errors.New("every instance is in use")
	errClosed = errors.New("the stage is closed")
)

// get lends an instance. It waits for one until ctx is done, which it says
// with errNoSlot.
func (p *pool) get(ctx context.Context) (instance, error) {
	o, err := p.obtain(ctx)
	if err != nil {
		return nil, err
	}
	if o.used && !p.renew(o.in) {
		o.in = nil
	}
	if o.in == nil {
		if o.in, err = p.fill(ctx); err != nil {
			return nil, err
		}
	}
	p.busy.Add(1)
	return o.in, nil
}

// fill makes an instance for a place. Where it cannot, even for a panic, the
// place is given on.
func (p *pool) fill(ctx context.Context) (in instance, err error) {
	defer func() {
		if in == nil || err != nil {
			p.give(offer{})
		}
	}()
	return p.create(ctx)
}

// obtain finds an instance or the place of one. Who is woken has to take it
// like everybody else: an instance that were kept for a goroutine until that
// runs would lie idle for as long, and on a busy machine all of them would.
func (p *pool) obtain(ctx context.Context) (offer, error) {
	wait := make(chan struct{}, 1)
	for woken := false; ; woken = true {
		p.mu.Lock()
		o, err := p.take()
		if errors.Is(err, errNoSlot) {
			p.line(wait, woken)
		}
		p.mu.Unlock()
		if !errors.Is(err, errNoSlot) {
			return o, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			p.leave(wait)
			return offer{}, errNoSlot
		}
	}
}

// line has a call wait to be woken: as the last, or as the first if it was
// woken in vain.
func (p *pool) line(wait chan struct{}, woken bool) {
	at := len(p.waiting)
	if woken {
		at = 0
	}
	p.waiting = slices.Insert(p.waiting, at, wait)
}

// wake is for who holds the lock and has given something.
func (p *pool) wake() {
	if len(p.waiting) > 0 {
		p.waiting[0] <- struct{}{}
		p.waiting = slices.Delete(p.waiting, 0, 1)
	}
}

// leave gives up waiting. Who was woken all the same wakes the next.
func (p *pool) leave(wait chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.Index(p.waiting, wait); at >= 0 {
		p.waiting = slices.Delete(p.waiting, at, at+1)
		return
	}
	p.wake()
}

// take is for who holds the lock.
func (p *pool) take() (offer, error) {
	switch {
	case p.closed:
		return offer{}, errClosed
	case len(p.clean) > 0:
		return offer{in: p.out(popLast(&p.clean).instance)}, nil
	case len(p.used) > 0:
		return offer{in: p.out(popLast(&p.used)), used: true}, nil
	case p.total < p.size:
		p.total++
		return offer{}, nil
	}
	return offer{}, errNoSlot
}

func popLast[T any](list *[]T) T {
	last := len(*list) - 1
	v := (*list)[last]
	*list = slices.Delete(*list, last, last+1)
	return v
}

// out takes an instance out of what the pool has lying about.
func (p *pool) out(in instance) instance {
	p.held -= in.held()
	return in
}

// adopt takes in an instance that was not made by create.
func (p *pool) adopt(in instance) {
	p.mu.Lock()
	p.total++
	p.mu.Unlock()
	p.give(offer{in: in, used: in.used()})
}

// put takes an instance back after a call.
func (p *pool) put(in instance) {
	p.busy.Add(-1)
	p.give(offer{in: in, used: in.used()})
}

// give keeps an instance, or a place, for who takes it next.
func (p *pool) give(o offer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		if o.in != nil {
			o.in.close()
		}
		p.total--
		p.endIfEmpty()
		return
	case o.in == nil:
		p.total--
	case o.used:
		p.held += o.in.held()
		p.used = append(p.used, o.in)
		select {
		case p.work <- struct{}{}:
		default:
		}
	default:
		p.held += o.in.held()
		p.clean = append(p.clean, idle{o.in, time.Now()})
	}
	p.wake()
}

// renew puts an instance back to its image. One that has no way back is
// closed; its place is the caller's still.
func (p *pool) renew(in instance) bool {
	if reason := putBack(in); reason != "" {
		in.close()
		p.metrics.discarded(reason)
		return false
	}
	p.metrics.reset()
	return true
}

// putBack takes a panic for an instance that cannot be put back: pools outlive
// their instances.
func putBack(in instance) (reason discardReason) {
	defer func() {
		if recover() != nil {
			reason = discardBroken
		}
	}()
	return in.reset()
}

// run puts used instances back and closes those that nobody needs.
func (p *pool) run() {
	defer close(p.done)
	look := time.NewTicker(idleFor / 4)
	defer look.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-p.work:
			p.renewAll()
		case <-look.C:
			p.shrink(time.Now().Add(-idleFor))
		}
	}
}

func (p *pool) renewAll() {
	for {
		p.mu.Lock()
		if len(p.used) == 0 {
			p.mu.Unlock()
			return
		}
		in := p.out(popLast(&p.used))
		p.mu.Unlock()
		if !p.renew(in) {
			in = nil
		}
		p.give(offer{in: in})
	}
}

// shrink closes what is idle since before, but for the one used last.
func (p *pool) shrink(before time.Time) {
	p.mu.Lock()
	n := 0
	for n < len(p.clean)-1 && !p.clean[n].since.After(before) {
		n++
	}
	old := slices.Clone(p.clean[:n])
	p.clean = slices.Delete(p.clean, 0, n)
	p.total -= n
	for _, in := range old {
		p.held -= in.held()
	}
	p.mu.Unlock()
	for _, in := range old {
		in.close()
		p.metrics.discarded(discardIdle)
	}
}

// close ends the pool. An instance that is still lent is closed when it comes
// back; with the last one empty is called.
func (p *pool) close(empty func()) {
	p.mu.Lock()
	p.closed = true
	for len(p.waiting) > 0 {
		p.wake()
	}
	p.mu.Unlock()
	close(p.stop)
	<-p.done
	p.metrics.forget(p)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, in := range p.clean {
		in.close()
	}
	for _, in := range p.used {
		in.close()
	}
	p.total -= len(p.clean) + len(p.used)
	p.clean, p.used, p.held = nil, nil, 0
	p.empty = empty
	p.endIfEmpty()
}

// endIfEmpty is for who holds the lock.
func (p *pool) endIfEmpty() {
	if p.total == 0 && p.empty != nil {
		p.empty()
		p.empty = nil
	}
}

// load is what a pool shows of itself.
type load struct{ size, busy, waiting, bytes int64 }

func (p *pool) load() load {
	p.mu.Lock()
	defer p.mu.Unlock()
	return load{int64(p.total), p.busy.Load(), int64(len(p.waiting)), int64(p.held)}
}
