package chain

import (
	"context"
	"sync"
	"time"

	"github.com/hookhost/hookhost/abi"
)

// Op is one operation of a run: an agent, a model call or a tool call, or the
// run itself. It owns state and resources as its Scope.
type Op struct {
	*scope
	run   *Run
	kind  abi.Operation
	seq   int64 // in the order of opening
	about about
	began time.Time

	mu         sync.Mutex
	marks      []mark // by stage
	closed     bool
	notBegun   bool // ended by its before-hook
	reason     abi.Reason
	usage      abi.Usage
	firstChunk time.Duration
	answeredBy string // by a stage, before it ran
	source     abi.Source
	recovered  bool
	latch      *Denial      // a stage failed closed in the stream
	tails      map[int]tail // held back, by stage
}

// about is what all events of an operation have in common beyond those of its
// run.
type about struct {
	agent, branch, model, tool, call string
	state                            func(key string) (any, bool)
}

func aboutOf(ev *abi.Event) about {
	return about{agent: ev.Agent, branch: ev.Branch, model: ev.Model, tool: ev.Tool, call: ev.CallID, state: ev.State}
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
		scope: &scope{id: r.id + "." + operationID(seq)}, run: r, kind: kind, seq: seq, about: aboutOf(&base),
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

// Run is the run that the operation is part of.
func (op *Op) Run() *Run { return op.run }

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

// endBefore ends an operation whose before-hook kept it from running.
func (op *Op) endBefore(ctx context.Context, reason abi.Reason) {
	op.mu.Lock()
	op.notBegun = true
	op.mu.Unlock()
	op.End(ctx, reason)
}

// End closes the operation: every stage that entered it and has not been
// closed gets its close, and what is owned in it is released.
func (op *Op) End(ctx context.Context, reason abi.Reason) {
	op.mu.Lock()
	if op.closed {
		op.mu.Unlock()
		return
	}
	op.closed, op.reason = true, reason
	end := abi.Ending{Reason: reason, Usage: op.usage, NotBegun: op.notBegun}
	op.tails = nil
	op.mu.Unlock()

	op.timed(reason)
	ctx = context.WithoutCancel(ctx)
	op.closeStages(ctx, reason)
	if op.kind == abi.OpRun {
		return // the run's scope ends with the run
	}
	op.scope.finish(ctx, end)
	op.run.dropped(ctx, op)
}

// timed tells how long the operation took.
func (op *Op) timed(reason abi.Reason) {
	r := op.run
	if r.ledger.trace.Span == nil {
		return
	}
	op.mu.Lock()
	first := op.firstChunk
	op.mu.Unlock()
	told(r.ledger.trace.Span, Span{
		Version: r.chain.version, Run: r.id, Op: op.scope.id, Operation: op.kind,
		Agent: op.about.agent, Model: op.about.model, Tool: op.about.tool,
		Began: op.began, Took: r.ledger.clock.Now().Sub(op.began), FirstChunk: first, Reason: reason,
	})
}

func (op *Op) closeStages(ctx context.Context, reason abi.Reason) {
	for _, e := range op.run.chain.entries {
		if !op.settle(e.index) || !e.hooks.Has(abi.Close) {
			continue
		}
		ev := &abi.Event{Reason: reason}
		op.complete(abi.Close, ev)
		ev.Flags |= abi.Entered
		if op.notBegun {
			ev.Flags |= abi.NotBegun
		}
		op.run.call(ctx, e, op, ev)
	}
}
