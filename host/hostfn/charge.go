package hostfn

import (
	"context"
	"strconv"
	"sync"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/hostfn/ahead"
	"github.com/hookhost/hookhost/host/hostfn/learn"
	"github.com/hookhost/hookhost/host/hostfn/outbox"
	"github.com/hookhost/hookhost/store"
)

// charge is what one admission took and nobody has settled yet. A guest knows
// it by a number, the store by its id, and the operation or the run owns it.
type charge struct {
	stage, op, run string
	parts          []part
}

// part is one thing that was taken: a lease, a reservation, or a take out of a
// slice, which is settled there.
type part struct {
	in          store.Store // where it began, and ends
	lease       *store.Lease
	reservation *store.Reservation
	draw        *ahead.Draw
	tokens      bool     // the limit counts tokens, so usage settles it
	learns      *learned // where the limit goes by an average
	undoOnly    bool     // charged for good once all the owners have said yes
}

// learned is the average that a part adds to, and the most that it adds: what
// is beyond the burst no estimate is ever raised to, and one absurd number would
// keep the average there for hundreds of calls.
type learned struct {
	of   learn.Of
	most int64
}

func (t *charge) open() bool {
	for _, p := range t.parts {
		if !p.undoOnly {
			return true
		}
	}
	return false
}

// confirm ends what could be undone until all the owners had said yes. In the
// store it expires.
func (t *charge) confirm() {
	for _, p := range t.parts {
		if p.undoOnly && p.draw != nil {
			p.draw.Keep()
		}
	}
}

func (t *charge) reserves() bool {
	for _, p := range t.parts {
		if p.lease == nil && !p.undoOnly {
			return true
		}
	}
	return false
}

func (t *charge) leases() bool {
	for _, p := range t.parts {
		if p.lease != nil {
			return true
		}
	}
	return false
}

// openCharges finds charges by the number that guests know.
type openCharges struct {
	mu  sync.Mutex
	all map[int64]*charge
}

func (o *openCharges) put(n int64, t *charge) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[int64]*charge{}
	}
	o.all[n] = t
}

// take removes a charge, so that one alone ends it.
func (o *openCharges) take(n int64, may func(*charge) bool) (*charge, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, found := o.all[n]
	if !found || !may(t) {
		return nil, false
	}
	delete(o.all, n)
	return t, true
}

// own hands a charge over to the run if there is a lease in it, and otherwise
// to the operation.
func (c *Call) own(n int64, t *charge) {
	services := c.services // the call itself is not kept as long as what it took
	services.open.put(n, t)
	scope, key := c.owner(n, t)
	scope.Own(key, func(_ context.Context, ending abi.Ending) {
		if t, found := services.open.take(n, func(*charge) bool { return true }); found {
			services.finish(t, ending)
		}
	})
}

func (c *Call) owner(n int64, t *charge) (abi.Scope, string) {
	if t.leases() {
		return c.ev.Run, "lease:" + strconv.FormatInt(n, 10)
	}
	return c.ev.Op, "reservation:" + strconv.FormatInt(n, 10)
}

// end settles a charge of this stage in this operation or run.
func (c *Call) end(n int64, may func(*charge) abi.Code, as kind, actual int64) abi.Code {
	code := abi.NotFound
	t, found := c.services.open.take(n, func(t *charge) bool {
		if t.stage == c.stage.Name && (t.op == c.ev.Op.ID() || t.run == c.ev.Run.ID()) {
			code = may(t)
		}
		return code == abi.OK
	})
	if !found {
		return code
	}
	for _, p := range t.parts {
		if !p.undoOnly {
			c.services.end(p, as, actual)
		}
	}
	scope, key := c.owner(n, t)
	scope.Disown(key)
	return abi.OK
}

// kind names a write that is put off, for the counts of what was lost.
type kind string

const (
	settle  kind = "settle"
	release kind = "release"
	undo    kind = "undo"
	free    kind = "free"
	record  kind = "record"
	slice   kind = "slice"
)

// end puts off what is due to a part: a lease is freed once nobody of the run
// has it, a reservation is settled, and what it came to is learned.
func (s *Services) end(p part, as kind, actual int64) {
	switch {
	case p.lease != nil:
		if s.Leases.drop(p.in, *p.lease) {
			s.put(free, p.in, p.lease.Owner, s.free(p.in, *p.lease))
		}
		return
	case p.draw != nil:
		p.draw.Settle(actual)
	default:
		s.put(as, p.in, p.reservation.Owner, func(ctx context.Context) error {
			_, err := p.in.Settle(ctx, *p.reservation, actual)
			return err
		})
	}
	if as == settle && p.learns != nil {
		s.learner.Add(p.learns.of, min(actual, p.learns.most))
	}
}

// free gives a lease back that the run should have had. Only the first attempt
// tells whether it had: after it the lease may be gone because of it, if only
// its answer was lost.
func (s *Services) free(in store.Store, l store.Lease) func(context.Context) error {
	again := false
	return func(ctx context.Context) error {
		held, err := s.giveBack(ctx, in, l)
		if err == nil && !held && !again {
			s.leaseLost(l, "free")
		}
		again = true
		return err
	}
}

// giveBack frees a lease, unless the run has taken it again meanwhile.
func (s *Services) giveBack(ctx context.Context, in store.Store, l store.Lease) (held bool, err error) {
	if s.Leases.has(in, l) {
		return true, nil
	}
	return in.Free(ctx, l)
}

// lanes is in how many lines the writes of an app, or of all, stand: they are
// many, and nobody waits to see them in order.
const lanes = 8

// sliceLane is another line beside them, for slices, which need an order.
const sliceLane = lanes

// put lets the store hear of something behind the call. What belongs to a user
// is written in order, and before the user's next admission.
func (s *Services) put(as kind, in store.Store, owner store.Owner, write func(context.Context) error) {
	if in == s.Local {
		s.putLocal(as, write)
		return
	}
	line := outbox.Line{Owner: owner}
	if owner.Kind != store.OwnerUser {
		line.Lane = int(s.sequence.Add(1) % lanes)
	}
	s.outbox.Put(outbox.Entry{Kind: string(as), Line: line, Write: write})
}

// putLocal writes at once: the local share is in this process, and that it
// takes a write says nothing of the store that others wait for.
func (s *Services) putLocal(as kind, write func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.storeTimeout())
	defer cancel()
	if err := write(ctx); err != nil {
		s.instruments.drop(string(as))
		s.logger().Warn("write to the local share given up", "kind", as, "error", err)
	}
}

// undo takes back what an admission got before it was refused.
func (s *Services) undo(t *charge) {
	for _, p := range t.parts {
		s.end(p, undo, 0)
	}
}

// finish is what becomes of a charge that no guest settled by the end of its
// operation.
func (s *Services) finish(t *charge, ending abi.Ending) {
	for _, p := range t.parts {
		if p.undoOnly {
			continue
		}
		as, actual, known := p.due(ending)
		switch {
		case known, p.lease != nil:
			s.end(p, as, actual)
		case p.draw != nil:
			p.draw.Keep()
		}
	}
}

// due says what a reservation comes to by how its operation ended. Where it is
// not known the estimate stays charged.
func (p part) due(ending abi.Ending) (as kind, actual int64, known bool) {
	unused := ending.Reason == abi.ReasonAnswered || ending.Reason == abi.ReasonRefused
	switch {
	case ending.NotBegun, unused:
		return release, 0, true
	case p.tokens && ending.Usage.Known():
		return settle, ending.Usage.Spent(), true
	case ending.Reason == abi.ReasonError:
		return release, 0, true
	}
	return "", 0, false
}
