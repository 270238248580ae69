package hostfn

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/hostfn/outbox"
	"github.com/hookhost/hookhost/store"
)

const (
	maxNames   = 16          // limits in one admission
	reserveFor = time.Hour   // an open charge is settled by its operation's end; this is for a host that died
	undoWithin = time.Minute // an admission across owners is undone while it is asked for, or when the store is back
)

// asked is one limit that a guest names, as this run's user has it.
type asked struct {
	index int    // in the guest's list
	text  string // as the guest wrote it, with the scope
	name  string
	owner store.Owner
	limit Limit
	cost  int64 // for take
}

// ask finds a limit by NAME or NAME:SCOPE. One that is not defined is reported
// as false: it does not limit.
func (c *Call) ask(index int, text string) (a asked, defined bool, code abi.Code) {
	grant, ok := abi.ParseGrant("limit:" + text)
	if !ok {
		return a, false, abi.BadArgument
	}
	if code := c.has(grant); code != abi.OK {
		return a, false, code
	}
	a = asked{index: index, text: text, name: grant.Name, owner: c.user()}
	switch grant.Scope {
	case "app":
		a.owner.Kind, a.owner.User = store.OwnerApp, ""
	case "global":
		a.owner.Kind, a.owner.App, a.owner.User = store.OwnerGlobal, "", ""
	}
	a.limit, defined = c.services.Plans.Limit(c.ctx, c.ev.App, c.ev.User, grant.Name, grant.Scope)
	if a.limit.Shadow {
		a.owner.Shadow = c.stage.Name
	}
	return a, defined, abi.OK
}

// LimitAdmit asks for all that a run needs to begin, all or nothing: a lease
// for the run, one unit of a bucket, or of a bucket that counts tokens that
// it holds the turn's estimate. names are separated by newlines.
func (c *Call) LimitAdmit(names string, out []byte) int32 {
	if code := c.here("hookhost_limit.admit"); code != abi.OK {
		return code
	}
	list := strings.Split(names, "\n")
	switch {
	case len(out) < abi.DecisionSize:
		return abi.BadArgument
	case len(list) > maxNames:
		return abi.OverLimit
	}
	var all []asked
	for i, name := range list {
		a, defined, code := c.ask(i, name)
		if code != abi.OK {
			return code
		}
		if defined && !(a.limit.tokens() && a.limit.TurnEstimate == 0) {
			all = append(all, a)
		}
	}
	return c.answerWith(out, all, admitItem)
}

// LimitTake charges a bucket, or takes a lease for the run. What was charged
// stays open to be settled or released until the operation ends.
func (c *Call) LimitTake(name string, cost int64, out []byte) int32 {
	if code := c.here("hookhost_limit.take"); code != abi.OK {
		return code
	}
	if len(out) < abi.DecisionSize || cost < abi.EstimateOfPlan || cost > store.MaxUnits {
		return abi.BadArgument
	}
	a, defined, code := c.ask(0, name)
	if code != abi.OK {
		return code
	}
	var all []asked
	if defined {
		a.cost = cost
		if cost == abi.EstimateOfPlan {
			a.cost = c.estimate(a.limit)
		}
		all = append(all, a)
	}
	return c.answerWith(out, all, takeItem)
}

// itemOf says what is asked of the store for a limit. member is the run.
type itemOf func(a asked, member string) store.Item

func admitItem(a asked, member string) store.Item {
	item := store.Item{Limit: a.name}
	switch {
	case a.limit.Cap != nil:
		item.Acquire = &store.Acquire{Cap: *a.limit.Cap, Member: member}
	case a.limit.tokens():
		item.Room = &store.Room{Bucket: *a.limit.Bucket, Cost: a.limit.TurnEstimate}
	default:
		item.Take = &store.Take{Bucket: *a.limit.Bucket, Cost: 1}
	}
	return item
}

func takeItem(a asked, member string) store.Item {
	item := store.Item{Limit: a.name}
	if a.limit.Cap != nil {
		item.Acquire = &store.Acquire{Cap: *a.limit.Cap, Member: member}
		return item
	}
	item.Take = &store.Take{Bucket: *a.limit.Bucket, Cost: a.cost, MaxWait: a.limit.MaxWait}
	if a.cost > 0 {
		item.Take.Reserve = reserveFor
	}
	return item
}

// answerWith asks for everything and writes the decision record.
func (c *Call) answerWith(out []byte, all []asked, item itemOf) int32 {
	d, code := c.admit(all, item)
	if code != abi.OK {
		return code
	}
	record := make([]byte, abi.DecisionSize)
	binary.LittleEndian.PutUint32(record[abi.DecisionKind:], uint32(d.kind))
	binary.LittleEndian.PutUint32(record[abi.DecisionLimit:], uint32(d.limit))
	binary.LittleEndian.PutUint64(record[abi.DecisionWait:], uint64(d.wait.Milliseconds()))
	binary.LittleEndian.PutUint64(record[abi.DecisionID:], uint64(d.id))
	return fill(out, record)
}

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
	if taken.open() {
		told.id = n
		c.own(n, taken)
	}
	return told, abi.OK
}

// byOwner sorts into groups that one admission can ask for.
func byOwner(all []asked) [][]asked {
	var groups [][]asked
	for _, shadow := range []bool{false, true} {
		for _, kind := range []store.OwnerKind{store.OwnerUser, store.OwnerApp, store.OwnerGlobal} {
			var group []asked
			for _, a := range all {
				if a.limit.Shadow == shadow && a.owner.Kind == kind {
					group = append(group, a)
				}
			}
			if group != nil {
				groups = append(groups, group)
			}
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
	admitted, in := group, c.services.Store
	d, err := c.askStore(in, id, admitted, item, undoable)
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

// settled lets an admission of a user see what the user's calls before it came
// to. Nobody waits for it longer than half of the store's time, so that the
// other half is left to ask.
func (c *Call) settled(ctx context.Context, in store.Store, owner store.Owner) {
	if owner.Kind != store.OwnerUser {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.services.storeTimeout()/2)
	defer cancel()
	_ = c.services.outbox.Flush(ctx, outbox.Line{In: in, Owner: owner}) // what is left is tried again
}

func (c *Call) share(group []asked) []asked {
	shared := make([]asked, len(group))
	for i, a := range group {
		a.limit = a.limit.share(c.services.replicas())
		shared[i] = a
	}
	return shared
}

func (c *Call) askStore(in store.Store, id string, group []asked, item itemOf, undoable bool) (d store.Decision, err error) {
	admission := store.Admission{ID: id, Owner: group[0].owner}
	for _, a := range group {
		admission.Items = append(admission.Items, c.item(a, item, undoable))
	}
	err = c.within(in, func(ctx context.Context) error {
		c.settled(ctx, in, admission.Owner)
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
		p := part{in: in, reservation: &r, tokens: a.limit.tokens(), undoOnly: item.Take.Reserve == undoWithin}
		if a.limit.Estimate.By == Learned {
			of := c.learnedOf()
			p.learns = &of
		}
		return p, true
	}
	return part{}, false
}

// LimitSettle replaces what a reservation charged by what was used. It is
// done once it was accepted: the store hears of it behind the call, in time for
// the next admission of the user.
func (c *Call) LimitSettle(id, actual int64) int32 {
	if code := c.mayEnd("hookhost_limit.settle"); code != abi.OK {
		return code
	}
	if actual < 0 || actual > store.MaxUnits {
		return abi.BadArgument
	}
	return c.end(id, func(taken *charge) abi.Code {
		if !taken.reserves() {
			return abi.WrongType
		}
		return abi.OK
	}, settle, actual)
}

// LimitRelease gives a reservation or a lease back.
func (c *Call) LimitRelease(id int64) int32 {
	if code := c.mayEnd("hookhost_limit.release"); code != abi.OK {
		return code
	}
	return c.end(id, func(*charge) abi.Code { return abi.OK }, release, 0)
}

func (c *Call) mayEnd(function string) abi.Code {
	if code := c.here(function); code != abi.OK {
		return code
	}
	for _, g := range c.stage.Grants {
		if g.Family == "limit" {
			return abi.OK
		}
	}
	return abi.NotGranted
}
