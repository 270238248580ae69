package hostfn

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/hookhost/hookhost/abi"
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
	burst int64 // of the whole limit, also where limit is a share of it
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
	if a.limit.Bucket != nil {
		a.burst = a.limit.Bucket.Burst
	}
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
