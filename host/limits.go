package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/store"
)

// Limits is the store and the plans of a manifest without its modules, for
// those who look at limits, and change them, beside the hosts that serve. Its
// methods may be called by many goroutines at once.
type Limits struct {
	manifest *manifest.Manifest
	plans    *plans
	store    store.Store
	timeout  time.Duration
}

// limitsTimeout is the least that one call to the store gets: nobody's turn
// waits for it.
const limitsTimeout = 5 * time.Second

// ErrStoreInside is a store that no other process can reach.
var ErrStoreInside = errors.New("a memory:// store lives inside the process that serves, and no other can reach it: use redis://")

// ErrNoPlans is a manifest that names no plans.
var ErrNoPlans = errors.New("the manifest names no plans: write plans under [limits]")

// OpenLimits opens the store of the manifest at path and its plans, if it names
// any. It loads no module, and Options.Dev changes nothing.
func OpenLimits(ctx context.Context, path string, o Options) (*Limits, error) {
	read := o.manifest()
	read.NoModules = true
	m, err := manifest.Load(path, read)
	if err != nil {
		return nil, err
	}
	if !m.Store.Shared() && o.Store == nil {
		return nil, m.StoreErrorf("url", "%w", ErrStoreInside)
	}
	file, err := loadPlans(m)
	if err != nil {
		return nil, err
	}
	m.Store.Timeout = max(m.Store.Timeout, limitsTimeout)
	s, _, err := openStore(ctx, m, o)
	if err != nil {
		return nil, err
	}
	return &Limits{manifest: m, plans: newPlans(file, o), store: s, timeout: m.Store.Timeout}, nil
}

// Manifest is the one that the limits stand in, without its modules and with
// the timeout that operators have.
func (l *Limits) Manifest() *manifest.Manifest { return l.manifest }

// Plans is what stands in plans.toml, or ErrNoPlans.
func (l *Limits) Plans() (*manifest.Plans, error) {
	if file := l.plans.file(); file != nil {
		return file, nil
	}
	return nil, fmt.Errorf("%s: %w", l.manifest.File, ErrNoPlans)
}

// Shown is what holds for a user now.
type Shown struct {
	App, User string
	Plan      UserPlan
	Version   string // of plans.toml
	Limits    []ShownLimit
}

// ShownLimit is one limit, and how far it is used.
type ShownLimit struct {
	manifest.Limit
	Scope   string // "user", "app" or "global"
	Shadow  string // the stage that counts for itself, because it or the plan is in shadow; empty for the real numbers
	Balance int64  // of a bucket, in units; below 0 is a debt
	Held    int64  // of a lease, how many are held
}

// Show tells which plan a user is on and what its limits hold, then those that
// the app and that all share, each by name. A limit that is counted by several
// stages in shadow is there once for each of them.
func (l *Limits) Show(ctx context.Context, app, user string) (Shown, error) {
	plans, err := l.Plans()
	if err != nil {
		return Shown{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	if err := l.plans.overrides.poll(ctx, l.store); err != nil {
		return Shown{}, err
	}
	plan, on := l.plans.resolve(ctx, app, user)
	shown := Shown{App: app, User: user, Plan: on, Version: l.plans.Version()}
	for _, scope := range []struct {
		name   string
		owner  store.Owner
		limits map[string]manifest.Limit
	}{
		{"user", store.Owner{Kind: store.OwnerUser, App: app, User: user}, plan.Limits},
		{"app", store.Owner{Kind: store.OwnerApp, App: app}, plans.App},
		{"global", store.Owner{Kind: store.OwnerGlobal}, plans.Global},
	} {
		inShadow := scope.name == "user" && plan.Mode == chain.Shadow
		for _, name := range slices.Sorted(maps.Keys(scope.limits)) {
			for _, space := range l.spaces(name, scope.name, inShadow) {
				one := ShownLimit{Limit: scope.limits[name], Scope: scope.name, Shadow: space}
				scope.owner.Shadow = space
				if err := l.use(ctx, scope.owner, &one); err != nil {
					return Shown{}, fmt.Errorf("limit[%s]: %w", name, err)
				}
				shown.Limits = append(shown.Limits, one)
			}
		}
	}
	return shown, nil
}

// spaces are the key spaces that a limit is counted in: the real one, and one
// for each stage in shadow, or with a plan in shadow for each stage.
func (l *Limits) spaces(limit, scope string, inShadow bool) []string {
	granted := abi.Grant{Family: "limit", Name: limit}
	if scope != "user" {
		granted.Scope = scope
	}
	var spaces []string
	for _, s := range l.manifest.Stages {
		if s.Spec.Mode == chain.Off || !slices.Contains(s.Grants, granted) {
			continue
		}
		space := ""
		if inShadow || s.Spec.Mode == chain.Shadow {
			space = s.Spec.Name
		}
		if !slices.Contains(spaces, space) {
			spaces = append(spaces, space)
		}
	}
	if len(spaces) == 0 {
		return []string{""}
	}
	return spaces
}

// use fills in how far a limit is used.
func (l *Limits) use(ctx context.Context, owner store.Owner, one *ShownLimit) (err error) {
	if one.Bucket != nil {
		one.Balance, err = l.store.Balance(ctx, owner, one.Name, *bucketOf(one.Bucket))
		return err
	}
	one.Held, err = l.store.Held(ctx, owner, one.Name)
	return err
}

// ErrNoPlan is an override to a plan that there is not.
var ErrNoPlan = errors.New("no such plan")

// SetOverride puts a user on another plan, in all hosts on the store within
// two seconds. An empty plan takes an override back.
func (l *Limits) SetOverride(ctx context.Context, o store.Override) error {
	plans, err := l.Plans()
	if err != nil {
		return err
	}
	if all := plans.Plans; o.Plan != "" && all[o.Plan] == nil {
		return fmt.Errorf("%q: %w: want %s", o.Plan, ErrNoPlan, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	return l.store.SetOverride(ctx, o)
}

// Overrides gives those in the store that a user has: at most one for each app
// and one for every app, also when they ended.
func (l *Limits) Overrides(ctx context.Context, user string) ([]store.Override, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	all, err := l.store.Overrides(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("overrides: %w", err)
	}
	return slices.DeleteFunc(all.Changed, func(o store.Override) bool { return o.User != user || o.Plan == "" }), nil
}

// Refill makes all buckets of a user full, also those of other plans than the
// user is on and those that stages keep in shadow, and names them. Open
// reservations and leases stay.
func (l *Limits) Refill(ctx context.Context, app, user string) ([]string, error) {
	plans, err := l.Plans()
	if err != nil {
		return nil, err
	}
	buckets := map[string]bool{}
	for _, plan := range plans.Plans {
		for name, limit := range plan.Limits {
			if limit.Bucket != nil {
				buckets[name] = true
			}
		}
	}
	names := slices.Sorted(maps.Keys(buckets))
	if len(names) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	owner := store.Owner{Kind: store.OwnerUser, App: app, User: user}
	errs := []error{l.store.Refill(ctx, owner, names...)}
	for _, s := range l.manifest.Stages {
		owner.Shadow = s.Spec.Name
		errs = append(errs, l.store.Refill(ctx, owner, names...))
	}
	return names, errors.Join(errs...)
}

// Top gives the users of an owner with a record since then, those first whose
// newest minute has the most tokens.
func (l *Limits) Top(ctx context.Context, owner store.Owner, since time.Time) ([]store.Activity, error) {
	all, err := l.Activity(ctx, owner, since)
	slices.SortFunc(all, func(a, b store.Activity) int {
		return cmp.Or(cmp.Compare(b.Last.Tokens, a.Last.Tokens), cmp.Compare(b.Last.Turns, a.Last.Turns), a.Compare(b))
	})
	return all, err
}

// Activity gives what the users of an owner did, of those with a record since
// then. With store.ErrIncomplete some of them are missing. As with Records it
// takes the time that it takes: no step of it takes longer than other calls, and
// store.WithProgress tells how far it is.
func (l *Limits) Activity(ctx context.Context, owner store.Owner, since time.Time) ([]store.Activity, error) {
	return l.store.Activity(ctx, owner, since)
}

// Records gives the usage records of an owner, the oldest first. With
// store.ErrIncomplete some of them are missing.
func (l *Limits) Records(ctx context.Context, owner store.Owner) ([]store.Record, error) {
	return l.store.Records(ctx, owner)
}

// Close lets go of the store.
func (l *Limits) Close(ctx context.Context) error { return l.store.Close(ctx) }
