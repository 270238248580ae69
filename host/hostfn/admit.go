package hostfn

import (
	"context"
	"errors"
	"fmt"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/hostfn/outbox"
	"github.com/hookhost/hookhost/store"
)

// admit asks each owner in turn: the user, the app, the global one, and then
// those of plans in shadow, which cannot say no. Where one says no, what the
// ones before gave is undone.
func (c *Call) admit(all []asked, item itemOf) (decision, abi.Code) {
	told := decision{kind: abi.Admitted}
	n, id := c.nextID()
	taken := &charge{stage: c.stage.Name, op: c.ev.Op.ID(), run: c.ev.Run.ID()}
	groups := byOwner(all)
	var said []func() // of the owners who said yes: it counts once all did
	for i, group := range groups {
		d, parts, code := c.admitGroup(fmt.Sprintf("%s.%d", id, i), group, item, i+1 < len(groups))
		granted := code == abi.OK && d.granted()
		inShadow := group[0].limit.Shadow
		if code == abi.OK && (inShadow || c.stage.Shadow) {
			c.note("shadow.limit."+decider(group, d).text, d.String())
		}
		switch {
		case granted:
			taken.parts = append(taken.parts, parts...)
			said = append(said, func() { c.measure(group, d, code) })
		case inShadow:
			c.measure(group, d, code)
		default:
			c.measure(group, d, code)
			c.services.undo(taken)
			c.storeAway = c.storeAway || code == abi.Unavailable
			return d, code
		}
		if granted && d.kind == abi.Delayed && !inShadow && d.wait > told.wait {
			told.kind, told.limit, told.wait = d.kind, d.limit, d.wait
		}
	}
	for _, count := range said {
		count()
	}
	taken.confirm()
	if taken.open() {
		told.id = n
		c.own(n, taken)
	}
	return told, abi.OK
}

// byOwner sorts into groups that one admission can ask for. What is served out
// of slices stands alone.
func byOwner(all []asked) [][]asked {
	var groups [][]asked
	for _, shadow := range []bool{false, true} {
		for _, kind := range []store.OwnerKind{store.OwnerUser, store.OwnerApp, store.OwnerGlobal} {
			var group []asked
			var alone [][]asked
			for _, a := range all {
				switch {
				case a.limit.Shadow != shadow || a.owner.Kind != kind:
				case a.sliced():
					alone = append(alone, []asked{a})
				default:
					group = append(group, a)
				}
			}
			if group != nil {
				groups = append(groups, group)
			}
			groups = append(groups, alone...)
		}
	}
	return groups
}

func decider(group []asked, d decision) asked {
	for _, a := range group {
		if d.kind != abi.Admitted && a.index == d.limit {
			return a
		}
	}
	return group[0]
}

// admitGroup asks one owner, in the local share if the store is away and the
// stage goes on with that.
func (c *Call) admitGroup(id string, group []asked, item itemOf, undoable bool) (decision, []part, abi.Code) {
	if group[0].sliced() {
		if parts, served := c.fromSlice(group[0], item, undoable); served {
			return decision{kind: abi.Admitted}, parts, abi.OK
		}
	}
	admitted, in := group, c.services.Store
	d, err := c.askStore(in, id, admitted, item, undoable)
	if store.IsAway(err) && !errors.Is(err, errStillAway) {
		c.doubt(id, group, item, undoable)
	}
	code := c.codeOf(err)
	if code == abi.Unavailable && c.stage.Local && c.services.Local != nil && c.ctx.Err() == nil {
		admitted, in = c.share(group), c.services.Local
		d, err = c.askStore(in, id, admitted, item, undoable)
		code = c.codeOf(err)
	}
	if code != abi.OK {
		return decision{}, nil, code
	}
	kind, known := decisionKinds[d.Kind]
	if !known {
		return decision{}, nil, abi.Unavailable
	}
	told := decision{kind: kind, wait: d.Wait}
	if d.Kind != store.Now && d.Item >= 0 && d.Item < len(group) {
		told.limit = group[d.Item].index
	}
	if !told.granted() {
		return told, nil, abi.OK
	}
	var parts []part
	for _, a := range admitted {
		if p, ok := c.partOf(id, in, a, item, undoable); ok {
			parts = append(parts, p)
		}
	}
	return told, parts, abi.OK
}

// doubt undoes an admission to which no answer came: the store may have done
// it. Once it is known to be away no admission gets there.
func (c *Call) doubt(id string, group []asked, of itemOf, undoable bool) {
	in := c.services.Store
	if c.services.outbox.Away() {
		return
	}
	for _, a := range group {
		switch item := c.item(a, of, undoable); {
		case item.Acquire != nil:
			l := store.Lease{Owner: a.owner, Limit: a.name, Member: item.Acquire.Member, Cap: item.Acquire.Cap}
			c.services.put(undo, in, a.owner, func(ctx context.Context) error {
				_, err := c.services.giveBack(ctx, in, l)
				return err
			})
		case item.Take != nil && item.Take.Reserve > 0:
			c.services.doubtTake(store.Reservation{ID: id, Owner: a.owner, Limit: a.name, Bucket: item.Take.Bucket})
		}
	}
}

// doubtTake undoes a take that was done or was not.
func (s *Services) doubtTake(r store.Reservation) {
	in := s.Store
	s.put(undo, in, r.Owner, func(ctx context.Context) error {
		_, err := in.Settle(ctx, r, 0)
		if errors.Is(err, store.ErrUnknownID) {
			return nil
		}
		return err
	})
}

// flushFor is how many of the store's timeouts an admission waits for what has
// to be written before it, while the store takes it.
const flushFor = 4

// settled lets an admission of a user see what the user's calls before it came
// to. A store that does not take that is away, and not asked for a second
// timeout; one that is slow gets the time for it.
func (c *Call) settled(in store.Store, owner store.Owner) error {
	switch {
	case owner.Kind != store.OwnerUser || in != c.services.Store:
		return nil
	case c.foundAway():
		return errStillAway
	}
	ctx, cancel := context.WithTimeout(c.ctx, flushFor*c.services.storeTimeout())
	defer cancel()
	err := c.services.outbox.Flush(ctx, outbox.Line{Owner: owner})
	if !store.IsAway(err) || errors.Is(err, store.ErrOnlyThis) || ctx.Err() != nil {
		return nil // what is left is tried again
	}
	c.sawAway(err)
	return errStillAway
}

func (c *Call) share(group []asked) []asked {
	shared := make([]asked, len(group))
	for i, a := range group {
		a.limit = a.limit.share(c.services.replicas(), a.cost)
		shared[i] = a
	}
	return shared
}

func (c *Call) askStore(in store.Store, id string, group []asked, item itemOf, undoable bool) (d store.Decision, err error) {
	admission := store.Admission{ID: id, Owner: group[0].owner}
	for _, a := range group {
		admission.Items = append(admission.Items, c.item(a, item, undoable))
	}
	if err := c.settled(in, admission.Owner); err != nil {
		return d, err
	}
	err = c.within(in, func(ctx context.Context) error {
		d, err = in.Admit(ctx, admission)
		return err
	})
	return d, err
}

func (c *Call) item(a asked, of itemOf, undoable bool) store.Item {
	item := of(a, c.ev.Run.ID())
	if undoable && item.Take != nil && item.Take.Reserve == 0 && item.Take.Cost > 0 {
		item.Take.Reserve = undoWithin
	}
	return item
}

// partOf makes the part of a charge that one granted item is.
func (c *Call) partOf(id string, in store.Store, a asked, of itemOf, undoable bool) (part, bool) {
	item := c.item(a, of, undoable)
	switch {
	case item.Acquire != nil:
		l := store.Lease{Owner: a.owner, Limit: a.name, Member: item.Acquire.Member, Cap: item.Acquire.Cap}
		c.services.Leases.hold(in, l)
		return part{in: in, lease: &l}, true
	case item.Take != nil && item.Take.Reserve > 0:
		r := store.Reservation{ID: id, Owner: a.owner, Limit: a.name, Bucket: item.Take.Bucket}
		p := c.takenOf(a, item)
		p.in, p.reservation = in, &r
		return p, true
	}
	return part{}, false
}

// takenOf is the part that a take makes, whoever served it.
func (c *Call) takenOf(a asked, item store.Item) part {
	p := part{tokens: a.limit.tokens(), undoOnly: item.Take.Reserve == undoWithin}
	if a.limit.Estimate.By == Learned {
		p.learns = &learned{of: c.learnedOf(), most: a.burst}
	}
	return p
}
