package hostfn

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/store"
)

// charge is what one admission took and nobody has settled yet. A guest knows
// it by a number, the store by its id, and the operation or the run owns it.
type charge struct {
	stage, op, run string
	parts          []part
	actual         *int64 // what the guest settled it with
}

// part is one thing that was taken: a lease or a reservation.
type part struct {
	in          store.Store // where it began, and ends
	lease       *store.Lease
	reservation *store.Reservation
	tokens      bool // the limit counts tokens, so usage settles it
	undoOnly    bool // charged for good once all the owners have said yes
}

func (t *charge) open() bool {
	for _, p := range t.parts {
		if !p.undoOnly {
			return true
		}
	}
	return false
}

func (t *charge) reserves() bool {
	for _, p := range t.parts {
		if p.reservation != nil && !p.undoOnly {
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
	c.services.open.put(n, t)
	scope, key := c.owner(n, t)
	scope.Own(key, func(ctx context.Context, ending abi.Ending) {
		if t, found := c.services.open.take(n, func(*charge) bool { return true }); found {
			c.services.finish(ctx, t, ending)
		}
	})
}

func (c *Call) owner(n int64, t *charge) (abi.Scope, string) {
	if t.leases() {
		return c.ev.Run, "lease:" + strconv.FormatInt(n, 10)
	}
	return c.ev.Op, "reservation:" + strconv.FormatInt(n, 10)
}

// end settles a charge of this stage in this operation or run. While the store
// is away the charge stays with its owner, who tries again at the end.
func (c *Call) end(n int64, how func(*charge) (abi.Code, bool)) abi.Code {
	t, found := c.services.open.take(n, func(t *charge) bool {
		return t.stage == c.stage.Name && (t.op == c.ev.Op.ID() || t.run == c.ev.Run.ID())
	})
	if !found {
		return abi.NotFound
	}
	code, ready := how(t)
	if ready {
		code = c.inStore(func(ctx context.Context) error { return c.services.settle(ctx, t, *t.actual) })
	}
	if !ready || code == abi.Unavailable {
		c.services.open.put(n, t)
		return code
	}
	scope, key := c.owner(n, t)
	scope.Disown(key)
	return code
}

// settle ends every part of a charge.
func (s *Services) settle(ctx context.Context, t *charge, actual int64) error {
	var errs []error
	for _, p := range t.parts {
		switch {
		case p.lease != nil:
			if s.Leases.drop(p.in, *p.lease) {
				_, err := p.in.Free(ctx, *p.lease)
				errs = append(errs, err)
			}
		case !p.undoOnly:
			_, err := p.in.Settle(ctx, *p.reservation, actual)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// undo takes back what an admission got before it was refused.
func (s *Services) undo(ctx context.Context, t *charge) {
	for i := range t.parts {
		t.parts[i].undoOnly = false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.storeTimeout())
	defer cancel()
	if err := s.settle(ctx, t, 0); err != nil {
		s.logger().Warn("admission not undone", "stage", t.stage, "error", err)
	}
}

// finish is what becomes of a charge that no guest settled by the end of its
// operation.
func (s *Services) finish(ctx context.Context, t *charge, ending abi.Ending) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.storeTimeout())
	defer cancel()
	var errs []error
	for _, p := range t.parts {
		one := &charge{parts: []part{p}}
		actual, known := p.spent(ending)
		if t.actual != nil {
			actual, known = *t.actual, true
		}
		if p.lease != nil || known {
			errs = append(errs, s.settle(ctx, one, actual))
		}
	}
	if err := errors.Join(errs...); err != nil && !errors.Is(err, store.ErrUnknownID) {
		s.logger().Warn("charge not settled", "stage", t.stage, "error", err)
	}
}

// spent says what a reservation comes to by how its operation ended. Where it
// is not known the estimate stays charged.
func (p part) spent(ending abi.Ending) (actual int64, known bool) {
	if ending.NotBegun {
		return 0, true
	}
	if p.tokens && ending.Usage.Known() && ending.Reason != abi.ReasonAnswered && ending.Reason != abi.ReasonRefused {
		return ending.Usage.Spent(), true
	}
	switch ending.Reason {
	case abi.ReasonAnswered, abi.ReasonRefused, abi.ReasonError:
		return 0, true
	}
	return 0, false
}
