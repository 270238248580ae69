package chain

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookhost/hookhost/abi"
)

// Run is one run of the runner, from its first hook to its end.
type Run struct {
	scope
	ledger   *Ledger
	chain    *Chain
	base     abi.Event // what all events of the run have in common
	began    time.Time
	root     *Op
	detached bool

	seq     atomic.Int64
	calls   atomic.Int64
	touched atomic.Int64                    // unix ns of the last hook
	cut     atomic.Bool                     // a hook came on a context that was done
	hooks   atomic.Int64                    // that go on now
	caller  atomic.Pointer[context.Context] // of the first hook that a stage was asked at

	mu      sync.Mutex
	ops     map[*Op]struct{} // open, without the root
	refusal *Denial
	told    bool
	over    bool
}

// Chain is the version that the run is pinned to.
func (r *Run) Chain() *Chain { return r.chain }

// Root is the run itself as an operation.
func (r *Run) Root() *Op { return r.root }

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

// called remembers the context that the run was called with.
func (r *Run) called(ctx context.Context) {
	if r.caller.Load() == nil {
		first := ctx
		r.caller.CompareAndSwap(nil, &first)
	}
}

// hosted is a context of the host with the values of the run's own: stages are
// told the same at an end that the host makes as at any other.
type hosted struct {
	context.Context
	caller context.Context
}

func (h hosted) Value(key any) any {
	if v := h.Context.Value(key); v != nil {
		return v
	}
	return h.caller.Value(key)
}

func (r *Run) hosted(ctx context.Context) context.Context {
	if caller := r.caller.Load(); caller != nil {
		return hosted{ctx, *caller}
	}
	return ctx
}

// Denial is why a run is refused or was stopped, kept for all hooks to come.
type Denial struct {
	abi.Refusal
	Stage  string      // empty when the host itself refused
	Failed bool        // a stage failed closed; that is no denial
	Answer abi.Subject // what a stage answered before_run with, if that was no refusal; its text is the refusal's
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

	ctx = context.WithoutCancel(ctx)
	// Deferred, the last first: each step is taken though one before panics.
	defer r.ledger.drop(r)
	defer r.scope.finish(ctx, abi.Ending{Reason: reason})
	defer r.root.End(ctx, reason)
	if !r.detached {
		r.root.dispatchAfterRun(ctx, reason)
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

// Over reports whether the run was finished.
func (r *Run) Over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}
