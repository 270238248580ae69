package host

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/store"
)

// plans gives guests the numbers behind the names of limits, and knows who is
// on which plan.
type plans struct {
	current   atomic.Pointer[numbers] // nil where the manifest names no file
	overrides overrides
	clock     chain.Clock
	log       *slog.Logger
}

// numbers are one state of plans.toml, replaced as a whole.
type numbers struct {
	*manifest.Plans
	strange strange
}

func newPlans(m *manifest.Plans, o Options) *plans {
	p := &plans{clock: o.clock(), log: o.log()}
	p.set(m)
	return p
}

// set puts other numbers in place; nil takes them away.
func (p *plans) set(m *manifest.Plans) {
	if m == nil {
		p.current.Store(nil)
		return
	}
	p.current.Store(&numbers{Plans: m})
}

// file is what stands in plans.toml now; nil where there is none.
func (p *plans) file() *manifest.Plans {
	if n := p.current.Load(); n != nil {
		return n.Plans
	}
	return nil
}

// PlanSource is what puts a user on a plan.
type PlanSource string

// The sources. The first that knows the user, and names a plan that there is,
// wins.
const (
	FromStore   PlanSource = "store"   // an override that was set while hosts run
	FromFile    PlanSource = "file"    // [override] in plans.toml
	FromClaim   PlanSource = "claim"   // what the caller of the runner claimed
	FromUsers   PlanSource = "users"   // [users] in plans.toml
	FromDefault PlanSource = "default" // the default in plans.toml
)

// UserPlan is the plan that a user is on.
type UserPlan struct {
	Name   string // empty where there are no plans
	Source PlanSource
	// Of an override; the author and a claim's plan are known from the store
	// alone.
	Author, Note string
	Until        time.Time // zero is for ever
}

// resolve finds the plan of a user.
func (p *plans) resolve(ctx context.Context, app, user string) (*manifest.Plan, UserPlan) {
	n := p.current.Load()
	if n == nil {
		return nil, UserPlan{}
	}
	now := p.clock.Now()
	if o, holds := p.overrides.find(app, user, now); holds {
		if plan := p.known(n, FromStore, o.Plan); plan != nil {
			return plan, UserPlan{Name: plan.Name, Source: FromStore, Author: o.Author, Note: o.Note, Until: o.Until}
		}
	}
	if o, holds := n.Override(app, user, now); holds {
		return n.Plans.Plans[o.Plan], UserPlan{Name: o.Plan, Source: FromFile, Note: o.Note, Until: o.Until}
	}
	if name := claim(ctx, n.Claim); n.Claim != "" && name != "" {
		if plan := p.known(n, FromClaim, name); plan != nil {
			return plan, UserPlan{Name: name, Source: FromClaim}
		}
	}
	if name, listed := n.Users[user]; listed {
		return n.Plans.Plans[name], UserPlan{Name: name, Source: FromUsers}
	}
	return n.Plans.Plans[n.Default], UserPlan{Name: n.Default, Source: FromDefault}
}

// known finds a plan that somebody else named than the file, whose names are
// checked. One that does not exist is said once.
func (p *plans) known(n *numbers, source PlanSource, name string) *manifest.Plan {
	plan := n.Plans.Plans[name]
	if plan == nil && n.strange.first(source, name) {
		p.log.Warn("no such plan: the user is on the one that would hold otherwise", "plan", name, "from", source, "plans", n.Version)
	}
	return plan
}

// maxStrange bounds the names that are said: a claim can hold anything.
const maxStrange = 100

// strange are the names of plans that do not exist and were said.
type strange struct {
	mu   sync.Mutex
	said map[string]bool
}

func (s *strange) first(source PlanSource, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := string(source) + " " + name
	if s.said[key] || len(s.said) >= maxStrange {
		return false
	}
	if s.said == nil {
		s.said = map[string]bool{}
	}
	s.said[key] = true
	return true
}

// Version names the state of plans.toml; empty where there is none.
func (p *plans) Version() string {
	if n := p.current.Load(); n != nil {
		return n.Version
	}
	return ""
}

// Plan names the plan of a user.
func (p *plans) Plan(ctx context.Context, app, user string) string {
	_, on := p.resolve(ctx, app, user)
	return on.Name
}

// Limit finds a limit of the user's plan, or one that all users share.
func (p *plans) Limit(ctx context.Context, app, user, name, scope string) (hostfn.Limit, bool) {
	n := p.current.Load()
	if n == nil {
		return hostfn.Limit{}, false
	}
	switch scope {
	case "app":
		return limitOf(n.App, name, hostfn.Limit{Plan: scope})
	case "global":
		return limitOf(n.Global, name, hostfn.Limit{Plan: scope})
	}
	plan, on := p.resolve(ctx, app, user)
	if plan == nil {
		return hostfn.Limit{}, false
	}
	return limitOf(plan.Limits, name, hostfn.Limit{Plan: on.Name, Shadow: plan.Mode == chain.Shadow})
}

// limitOf fills in the numbers of a limit.
func limitOf(limits map[string]manifest.Limit, name string, l hostfn.Limit) (hostfn.Limit, bool) {
	limit, defined := limits[name]
	if !defined {
		return hostfn.Limit{}, false
	}
	if b := limit.Bucket; b != nil {
		l.Bucket = bucketOf(b)
		l.Estimate, l.TurnEstimate, l.MaxWait, l.Slice = estimateOf(b.Estimate), b.TurnEstimate, b.MaxWait, b.Slice
	}
	if c := limit.Lease; c != nil {
		l.Cap = &store.Cap{Max: c.Max, Expires: c.Expires}
	}
	return l, true
}

var estimates = map[manifest.EstimateBy]hostfn.EstimateBy{
	manifest.EstimateFixed: hostfn.Fixed, manifest.EstimateSize: hostfn.Size, manifest.EstimateLearned: hostfn.Learned,
}

func estimateOf(e manifest.Estimate) hostfn.Estimate {
	if e == (manifest.Estimate{}) {
		return hostfn.Estimate{}
	}
	return hostfn.Estimate{By: estimates[e.By], Units: e.Units}
}

func bucketOf(b *manifest.Bucket) *store.Bucket {
	return &store.Bucket{Units: b.Units, Per: b.Per, Burst: b.Burst}
}
