package chain

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookhost/hookhost/abi"
)

// Ledger knows every run that goes on and what is open in it.
type Ledger struct {
	clock   Clock
	trace   Tracer
	current atomic.Pointer[Chain]
	closed  atomic.Bool
	workers workers

	mu   sync.Mutex
	runs map[*Run]struct{}
}

// NewLedger makes a ledger whose runs begin on this chain.
func NewLedger(c *Chain, clock Clock, trace Tracer) *Ledger {
	l := &Ledger{clock: clock, trace: trace, runs: make(map[*Run]struct{})}
	l.current.Store(c)
	return l
}

// Current is the chain that the next run begins on.
func (l *Ledger) Current() *Chain { return l.current.Load() }

// Swap puts another chain in place for the runs to come and gives back the
// old one, to be retired.
func (l *Ledger) Swap(c *Chain) *Chain { return l.current.Swap(c) }

// Begin opens a run and pins the current chain for it. base has the ids that
// the run was called with. Once the ledger was closed every run is refused,
// and no stage is called: they are gone.
func (l *Ledger) Begin(base abi.Event) *Run { return l.begin(base, false) }

var hostClosed = Denial{Failed: true, Refusal: abi.Refusal{
	Code: "host_closed", Text: "The service is shutting down. Please try again shortly.",
}}

// nothing is the chain of the runs that come after the close.
var nothing = &Chain{version: "closed", maxCalls: DefaultMaxModelCalls, drained: make(chan struct{})}

// Detach opens a record for hooks of a run that never began or that is over.
// It lives while it has open operations.
func (l *Ledger) Detach(base abi.Event) *Run { return l.begin(base, true) }

func (l *Ledger) begin(base abi.Event, detached bool) *Run {
	chain := l.pinCurrent()
	r := &Run{
		scope: scope{id: "run-" + rand.Text()}, ledger: l, chain: chain, base: base,
		began: l.clock.Now(), detached: detached, ops: make(map[*Op]struct{}),
	}
	r.touch()
	r.root = &Op{scope: &r.scope, run: r, kind: abi.OpRun, about: aboutOf(&base), began: r.began, marks: make([]mark, len(chain.entries))}
	l.mu.Lock()
	l.runs[r] = struct{}{}
	l.mu.Unlock()
	if l.closed.Load() {
		r.Deny(hostClosed)
	}
	return r
}

// Closed reports whether no stage can be called any more.
func (l *Ledger) Closed() bool { return l.closed.Load() }

// pinCurrent pins a chain that was current at some moment during the call. A
// chain that was swapped out in between is let go again, so that a retired
// one never gets a new run.
func (l *Ledger) pinCurrent() *Chain {
	for {
		c := l.current.Load()
		c.pin()
		if l.current.Load() == c {
			return c
		}
		c.unpin()
	}
}

// drop lets go of a run that is over, and of its chain.
func (l *Ledger) drop(r *Run) {
	l.mu.Lock()
	delete(l.runs, r)
	l.mu.Unlock()
	r.chain.unpin()
}

// Open counts the runs that are not over, and their open operations.
func (l *Ledger) Open() (runs, ops int) {
	for _, r := range l.all() {
		runs++
		r.mu.Lock()
		ops += len(r.ops)
		r.mu.Unlock()
	}
	return runs, ops
}

func (l *Ledger) all() []*Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	runs := make([]*Run, 0, len(l.runs))
	for r := range l.runs {
		runs = append(runs, r)
	}
	return runs
}

// FinishIdle ends the runs that saw no hook for this long: those whose
// after_run never came.
func (l *Ledger) FinishIdle(ctx context.Context, limit time.Duration) (ended int) {
	before := l.clock.Now().Add(-limit).UnixNano()
	for _, r := range l.all() {
		if r.hooks.Load() == 0 && r.touched.Load() <= before {
			ctx := r.hosted(ctx)
			r.sweep(ctx, true)
			r.finish(ctx, abi.ReasonEnded)
			ended++
		}
	}
	return ended
}

// Close ends all runs that are left and gives back the chain that they ran
// on, to be retired.
func (l *Ledger) Close(ctx context.Context) *Chain {
	l.closed.Store(true)
	last := l.current.Swap(nothing)
	for _, r := range l.all() {
		r.Finish(r.hosted(ctx), true)
	}
	l.workers.close()
	return last
}
