package chain

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
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

// Run is one run of the runner, from its first hook to its end.
type Run struct {
	scope
	ledger   *Ledger
	chain    *Chain
	base     abi.Event // what all events of the run have in common
	began    time.Time
	root     *Op
	detached bool
	resumed  bool

	seq     atomic.Int64
	calls   atomic.Int64
	touched atomic.Int64 // unix ns of the last hook
	cut     atomic.Bool  // a hook came on a context that was done
	hooks   atomic.Int64 // that go on now

	mu      sync.Mutex
	ops     map[*Op]struct{} // open, without the root
	refusal *Denial
	told    bool
	over    bool
}

// Begin opens a run and pins the current chain for it. base has the ids that
// the run was called with.
func (l *Ledger) Begin(base abi.Event) *Run { return l.begin(base, false) }

// Detach opens a record for hooks of a run that never began or that is over.
// It lives while it has open operations.
func (l *Ledger) Detach(base abi.Event) *Run { return l.begin(base, true) }

func (l *Ledger) begin(base abi.Event, detached bool) *Run {
	chain := l.pinCurrent()
	r := &Run{
		scope: scope{id: "run-" + rand.Text()}, ledger: l, chain: chain, base: base,
		began: l.clock.Now(), detached: detached, ops: make(map[*Op]struct{}),
	}
	r.resumed = base.Flags.Has(abi.Resumed)
	r.touch()
	r.root = &Op{scope: &r.scope, run: r, kind: abi.OpRun, base: base, began: r.began, marks: make([]mark, len(chain.entries))}
	l.mu.Lock()
	l.runs[r] = struct{}{}
	l.mu.Unlock()
	return r
}

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

func (r *Run) touch() { r.touched.Store(r.ledger.clock.Now().UnixNano()) }

// enter and leave bracket a hook. While one goes on the run is not idle,
// however long it waits, and a detached record does not end.
func (r *Run) enter() {
	r.hooks.Add(1)
	r.touch()
}

func (r *Run) leave(ctx context.Context) {
	r.touch()
	if r.hooks.Add(-1) == 0 {
		r.endDetached(ctx)
	}
}

// Chain is the version that the run is pinned to.
func (r *Run) Chain() *Chain { return r.chain }

// Root is the run itself as an operation.
func (r *Run) Root() *Op { return r.root }

// Denial is why a run is refused or was stopped, kept for all hooks to come.
type Denial struct {
	abi.Refusal
	Stage  string // empty when the host itself refused
	Failed bool   // a stage failed closed; that is no denial
}

// Deny refuses the run as a whole, or stops it. The first denial stays.
func (r *Run) Deny(d Denial) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refusal == nil {
		r.refusal = &d
	}
}

// Denied tells why the run is denied, if it is, and whether this is the first
// time that somebody asks in order to answer: the refusal is read once.
func (r *Run) Denied() (d Denial, denied, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refusal == nil {
		return Denial{}, false, false
	}
	first = !r.told
	r.told = true
	return *r.refusal, true, first
}

// stop keeps a refusal in mid-run, whose text the operation itself answers.
func (r *Run) stop(d Denial) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refusal == nil {
		r.refusal, r.told = &d, true
	}
}

// Stopped reports whether the run is denied, without telling it.
func (r *Run) Stopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refusal != nil
}

// Op is one operation of a run: an agent, a model call or a tool call, or the
// run itself. It owns state and resources as its Scope.
type Op struct {
	*scope
	run   *Run
	kind  abi.Operation
	seq   int64 // in the order of opening
	base  abi.Event
	began time.Time

	mu         sync.Mutex
	marks      []mark // by stage
	closed     bool
	reason     abi.Reason
	usage      abi.Usage
	firstChunk time.Duration
	answeredBy string // by a stage, before it ran
	source     abi.Source
	recovered  bool
	latch      *Denial      // a stage failed closed in the stream
	tails      map[int]tail // held back, by stage
}

// mark says how far a stage is with an operation.
type mark uint8

const (
	markEntered mark = 1 << iota
	markClosed
)

// Open begins an operation. base has what its events have in common beyond
// those of the run. It reports false when the run is over: then nothing would
// close the operation.
func (r *Run) Open(kind abi.Operation, base abi.Event) (*Op, bool) {
	op := r.newOp(kind, base)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return nil, false
	}
	r.ops[op] = struct{}{}
	return op, true
}

// Stray is an operation for a hook that comes without one, or after it: it
// is closed from the start, so that stages transform and settle nothing.
func (r *Run) Stray(kind abi.Operation, base abi.Event) *Op {
	op := r.newOp(kind, base)
	op.closed = true
	op.scope.finish(context.Background(), abi.Ending{Reason: abi.ReasonEnded})
	return op
}

func (r *Run) newOp(kind abi.Operation, base abi.Event) *Op {
	seq := r.seq.Add(1)
	return &Op{
		scope: &scope{id: r.id + "." + operationID(seq)}, run: r, kind: kind, seq: seq, base: base,
		began: r.ledger.clock.Now(), marks: make([]mark, len(r.chain.entries)),
	}
}

func operationID(n int64) string {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
	var b [13]byte
	i := len(b)
	for {
		i--
		b[i] = digits[n%36]
		if n /= 36; n == 0 {
			return string(b[i:])
		}
	}
}

// enter notes that the stage is about to be called with a before-hook. It
// reports false when the operation is over.
func (op *Op) enter(i int) bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.closed {
		return false
	}
	op.marks[i] |= markEntered
	return true
}

// entered reports whether the stage saw the before-hook.
func (op *Op) entered(i int) bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.marks[i]&markEntered != 0
}

// settle takes the one close that a stage has in an operation. It reports
// true to the first who asks, if the stage entered.
func (op *Op) settle(i int) bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.marks[i]&markClosed != 0 {
		return false
	}
	op.marks[i] |= markClosed
	return op.marks[i]&markEntered != 0
}

// Closed reports whether the operation is over.
func (op *Op) Closed() bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.closed
}

// Refused reports whether the operation was refused, by a stage, by the host
// or by a failure that closed it.
func (op *Op) Refused() bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.closed && op.reason == abi.ReasonRefused
}

// Kind is what the operation is.
func (op *Op) Kind() abi.Operation { return op.kind }

// Run is the run that the operation is part of.
func (op *Op) Run() *Run { return op.run }

// End closes the operation: every stage that entered it and has not been
// closed gets its close, and what is owned in it is released.
func (op *Op) End(ctx context.Context, reason abi.Reason) {
	op.mu.Lock()
	if op.closed {
		op.mu.Unlock()
		return
	}
	op.closed, op.reason = true, reason
	end := abi.Ending{Reason: reason, Usage: op.usage}
	op.tails = nil
	op.mu.Unlock()

	ctx = context.WithoutCancel(ctx)
	op.closeStages(ctx, reason)
	if op.kind == abi.OpRun {
		return // the run's scope ends with the run
	}
	op.scope.finish(ctx, end)
	op.run.dropped(ctx, op)
}

func (op *Op) closeStages(ctx context.Context, reason abi.Reason) {
	for _, e := range op.run.chain.entries {
		if !op.settle(e.index) || !e.hooks.Has(abi.Close) {
			continue
		}
		ev := op.event(abi.Close, abi.Event{Reason: reason})
		ev.Flags |= abi.Entered
		op.run.call(ctx, e, op, ev)
	}
}

func (r *Run) dropped(ctx context.Context, op *Op) {
	r.mu.Lock()
	delete(r.ops, op)
	r.mu.Unlock()
	r.endDetached(ctx)
}

// endDetached ends a detached record once nothing is open in it and no hook
// of it goes on.
func (r *Run) endDetached(ctx context.Context) {
	r.mu.Lock()
	last := r.detached && len(r.ops) == 0 && r.hooks.Load() == 0
	r.mu.Unlock()
	if last {
		r.finish(ctx, abi.ReasonEnded)
	}
}

// Finish ends a run: it sweeps what is still open, tools before models before
// agents, gives the stages that entered the run their after_run or close, and
// frees the run. Cancelled says that the caller went away.
func (r *Run) Finish(ctx context.Context, cancelled bool) {
	cut, left := r.sweep(ctx, cancelled || r.cut.Load())
	reason := abi.ReasonDone
	switch {
	case cut:
		reason = abi.ReasonCancelled
	case r.Stopped():
		reason = abi.ReasonRefused
	case left:
		reason = abi.ReasonEnded
	}
	r.finish(ctx, reason)
}

// sweep closes what is open, the innermost first. A model or tool call that is open when its run
// ends was cut off by a caller who stopped reading; an agent may just have
// ended in a way that ADK does not tell. It reports whether the run was cut
// off, and whether anything was left.
func (r *Run) sweep(ctx context.Context, cancelled bool) (cut, left bool) {
	for _, kind := range []abi.Operation{abi.OpTool, abi.OpModel, abi.OpAgent} {
		for _, op := range r.open(kind) {
			if kind != abi.OpAgent {
				cancelled = true
			}
			reason := abi.ReasonEnded
			if cancelled {
				reason = abi.ReasonCancelled
			}
			op.End(ctx, reason)
			left = true
		}
	}
	return cancelled, left
}

func (r *Run) open(kind abi.Operation) []*Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ops []*Op
	for op := range r.ops {
		if op.kind == kind {
			ops = append(ops, op)
		}
	}
	slices.SortFunc(ops, func(a, b *Op) int { return cmp.Compare(b.seq, a.seq) })
	return ops
}

func (r *Run) finish(ctx context.Context, reason abi.Reason) {
	r.mu.Lock()
	if r.over {
		r.mu.Unlock()
		return
	}
	r.over = true
	r.mu.Unlock()

	// Deferred, the last first: each step is taken though one before panics.
	ctx = context.WithoutCancel(ctx)
	defer r.chain.unpin()
	defer r.ledger.forget(r)
	defer r.scope.finish(ctx, abi.Ending{Reason: reason})
	defer r.root.End(ctx, reason)
	if !r.detached {
		r.root.dispatchAfterRun(ctx, reason)
	}
}

func (l *Ledger) forget(r *Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.runs, r)
}

// Over reports whether the run was finished.
func (r *Run) Over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
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
			r.sweep(ctx, true)
			r.finish(ctx, abi.ReasonEnded)
			ended++
		}
	}
	return ended
}

// Close ends all runs that are left.
func (l *Ledger) Close(ctx context.Context) error {
	for _, r := range l.all() {
		r.Finish(ctx, true)
	}
	if runs, ops := l.Open(); runs+ops != 0 {
		return errors.New("ledger: runs began while it was closed")
	}
	return nil
}
