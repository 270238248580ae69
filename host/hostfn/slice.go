package hostfn

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"

	"github.com/hookhost/hookhost/host/hostfn/ahead"
	"github.com/hookhost/hookhost/host/hostfn/outbox"
	"github.com/hookhost/hookhost/store"
)

// sliced reports whether a limit is served out of slices: a bucket that many
// users share.
func (a asked) sliced() bool {
	return a.limit.Slice > 0 && a.limit.Bucket != nil && a.owner.Kind != store.OwnerUser
}

func (a asked) bucket() ahead.Bucket { return ahead.Bucket{Owner: a.owner, Limit: a.name} }

// fromSlice serves a limit out of what this process took ahead. Where it
// cannot, the store has to be asked for this one call.
func (c *Call) fromSlice(a asked, of itemOf, undoable bool) (parts []part, served bool) {
	item := c.item(a, of, undoable)
	switch {
	case item.Room != nil:
		return nil, c.services.ahead.Holds(a.bucket(), item.Room.Cost)
	case item.Take.Cost == 0 || item.Take.Cost > a.limit.Slice:
		return nil, false
	}
	draw, err := c.services.ahead.Take(c.ctx, a.bucket(), item.Take.Cost, func() (store.Reservation, int64, error) {
		return c.takeAhead(a)
	})
	if draw == nil {
		c.sawAway(err)
		return nil, false
	}
	if item.Take.Reserve == 0 {
		draw.Keep()
		return nil, true
	}
	p := c.takenOf(a, item)
	p.draw = draw
	return []part{p}, true
}

// takeAhead takes the next slice. It is only taken of what is there.
func (c *Call) takeAhead(a asked) (store.Reservation, int64, error) {
	in := c.services.Store
	_, id := c.nextID() // one call may take several
	r := store.Reservation{ID: id, Owner: a.owner, Limit: a.name, Bucket: *a.limit.Bucket}
	var d store.Decision
	hurried := c.hurried()
	err := c.within(in, func(ctx context.Context) (err error) {
		d, err = in.Admit(ctx, store.Admission{ID: id, Owner: a.owner, Items: []store.Item{{
			Limit: a.name, Take: &store.Take{Bucket: *a.limit.Bucket, Cost: a.limit.Slice, Reserve: reserveFor},
		}}})
		return err
	})
	switch {
	case err == nil && d.Kind != store.Now:
		err = ahead.ErrThin
	case store.IsAway(err) && !errors.Is(err, errStillAway) && !c.services.outbox.Away():
		c.services.doubtTake(r)
	}
	if err != nil && (hurried || c.ctx.Err() != nil || errors.Is(err, errStillAway)) {
		err = fmt.Errorf("%w: %w", ahead.ErrMine, err)
	}
	return r, a.limit.Slice, err
}

// sliceWriter writes what becomes of slices, behind the calls. Those of one
// owner stand in one line, since a reservation has to be open before it is
// settled.
type sliceWriter struct{ *Services }

func (s sliceWriter) put(owner store.Owner, write func(context.Context) error) {
	s.outbox.Put(outbox.Entry{Kind: string(slice), Line: outbox.Line{Owner: owner, Lane: sliceLane}, Write: write})
}

// Settle implements ahead.Writer.
func (s sliceWriter) Settle(r store.Reservation, used int64) {
	s.put(r.Owner, func(ctx context.Context) error {
		_, err := s.Store.Settle(ctx, r, min(used, store.MaxUnits))
		return err
	})
}

// errNotMoved is of a slice that stays charged as a whole, until it expires.
var errNotMoved = errors.New("what is drawn of a slice has no reservation of its own")

// Move implements ahead.Writer. What is drawn is charged whatever the bucket
// holds, before the slice that paid for it gives anything back: in between
// others find too little there, never too much.
func (s sliceWriter) Move(r store.Reservation, used, drawn int64) store.Reservation {
	to := r
	to.ID = "moved/" + rand.Text()
	moved := false // by the first of two writes in one line
	s.put(r.Owner, func(ctx context.Context) error {
		d, err := s.Store.Admit(ctx, store.Admission{ID: to.ID, Owner: to.Owner, Items: []store.Item{{
			Limit: to.Limit, Take: &store.Take{Bucket: to.Bucket, Cost: drawn, MaxWait: math.MaxInt64, Reserve: reserveFor},
		}}})
		moved = err == nil && (d.Kind == store.Now || d.Kind == store.Later)
		return err
	})
	s.put(r.Owner, func(ctx context.Context) error {
		if !moved {
			return errNotMoved
		}
		_, err := s.Store.Settle(ctx, r, min(used, store.MaxUnits))
		return err
	})
	return to
}
