package host

import (
	"context"
	"sync/atomic"

	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/store"
)

// plans gives guests the numbers behind the names of limits. They are
// replaced as a whole on reload.
type plans struct {
	current atomic.Pointer[manifest.Plans]
	clock   chain.Clock
}

// Plan names the plan of a user.
func (p *plans) Plan(_ context.Context, app, user string) string {
	if plan := p.of(app, user); plan != nil {
		return plan.Name
	}
	return ""
}

// Version is the one that the file gives.
func (p *plans) Version() string {
	if current := p.current.Load(); current != nil {
		return current.Version
	}
	return ""
}

func (p *plans) of(app, user string) *manifest.Plan {
	current := p.current.Load()
	if current == nil {
		return nil
	}
	return current.For(app, user, p.clock.Now())
}

// Limit finds a limit of the user's plan, or one that all users share.
func (p *plans) Limit(_ context.Context, app, user, name, scope string) (hostfn.Limit, bool) {
	current := p.current.Load()
	if current == nil {
		return hostfn.Limit{}, false
	}
	var limits map[string]manifest.Limit
	found := hostfn.Limit{Plan: scope}
	switch scope {
	case "app":
		limits = current.App
	case "global":
		limits = current.Global
	default:
		plan := p.of(app, user)
		if plan == nil {
			return hostfn.Limit{}, false
		}
		limits, found.Plan, found.Shadow = plan.Limits, plan.Name, plan.Mode == chain.Shadow
	}
	limit, ok := limits[name]
	if !ok {
		return hostfn.Limit{}, false
	}
	if b := limit.Bucket; b != nil {
		found.Bucket = &store.Bucket{Units: b.Units, Per: b.Per, Burst: b.Burst}
		found.TurnEstimate, found.MaxWait = b.TurnEstimate, b.MaxWait
		if b.Estimate > 0 {
			found.Estimate = hostfn.Estimate{By: hostfn.Fixed, Units: b.Estimate}
		}
	}
	if l := limit.Lease; l != nil {
		found.Cap = &store.Cap{Max: l.Max, Expires: l.Expires}
	}
	return found, true
}
