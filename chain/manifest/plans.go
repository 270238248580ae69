package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
)

// Plans is a checked plans.toml: the numbers of all limits.
type Plans struct {
	File      string
	Version   string // as the file gives it
	Default   string // the plan of those whom nothing else puts on one
	Claim     string // the claim that names a user's plan; empty if none does
	Plans     map[string]*Plan
	App       map[string]Limit    // shared by all users of an app
	Global    map[string]Limit    // shared by all apps
	Users     map[string]string   // the plans of users, by their ids
	Overrides map[string]Override // by the users' ids; they win over all else in the file

	source *source
}

// Plan is what one kind of user may do.
type Plan struct {
	Name   string
	Mode   chain.Mode // Enforce or Shadow: decide, count and let pass
	Limits map[string]Limit
}

// Limit is a bucket or a lease: one of the two is set.
type Limit struct {
	Name   string
	Bucket *Bucket
	Lease  *Lease
}

// Bucket bounds how much is done over time.
type Bucket struct {
	Rate
	Burst        int64         // what the full bucket holds, from 1 to 1e15
	Estimate     Estimate      // what one call takes until its cost is known; zero if the guest says it
	TurnEstimate int64         // what must be there when a turn begins; 0 for nothing
	MaxWait      time.Duration // how long a call may be held up, up to abi.MaxWait; 0 refuses at once
	Slice        int64         // what a process takes ahead of a bucket that all share, up to Burst; 0 for nothing
}

// DefaultExpiry is the silence after which a holder loses a lease, where the
// plans do not say.
const DefaultExpiry = 30 * time.Second

// Lease bounds how much goes on at once.
type Lease struct {
	Max     int64         // from 1 to 1e15
	Expires time.Duration // after which a holder that went silent loses it; 100ms to 24h
}

// Override puts one user on another plan.
type Override struct {
	Plan  string
	App   string    // in this app only; empty for all
	Until time.Time // up to here; zero for ever
	Note  string
}

// Override finds the override of a user that holds in an app at a time.
func (p *Plans) Override(app, user string, now time.Time) (Override, bool) {
	o, found := p.Overrides[user]
	holds := found && (o.App == "" || o.App == app) && (o.Until.IsZero() || now.Before(o.Until))
	return o, holds
}

// For finds the plan that the file alone gives a user at a time.
func (p *Plans) For(app, user string, now time.Time) *Plan {
	if o, holds := p.Override(app, user, now); holds {
		return p.Plans[o.Plan]
	}
	if plan, found := p.Users[user]; found {
		return p.Plans[plan]
	}
	return p.Plans[p.Default]
}

// LoadPlans reads plans.toml. What is wrong with it comes back as *Errors, all
// at once.
func LoadPlans(path string) (*Plans, error) {
	data, err := ReadFile(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return ParsePlans(path, data)
}

// Is reports whether the plans were read from this text.
func (p *Plans) Is(text []byte) bool { return bytes.Equal(p.source.data, text) }

// ParsePlans is LoadPlans for a text at hand.
func ParsePlans(name string, data []byte) (*Plans, error) {
	var f faults
	s, fault := parse(name, data)
	if fault != nil {
		// The manifest may name any file of the machine by mistake: what is no
		// TOML is not shown.
		fault.hidden = true
		return nil, &Errors{All: []*Error{fault}}
	}
	p := &Plans{File: name, source: s}
	p.read(rootTable(&f, s))
	if err := f.err(); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Plans) read(t *table) {
	p.Version = need(t, "version", `name this state of the plans, such as version = "2026-11-30"`, asText)
	p.Default = need(t, "default", "name the plan of users whom nothing else puts on one", asName)
	p.Claim = read(t, "claim", "", asText)
	p.Plans = readPlans(t.sub("plan"))
	p.App = readLimitsOf(t.sub("app").about("app"), true)
	p.Global = readLimitsOf(t.sub("global").about("global"), true)
	p.Users = readUsers(t.sub("users").about("users"), p.Plans)
	p.Overrides = readOverrides(t.sub("override"), p.Plans)
	t.close()
	if p.Default != "" && p.Plans[p.Default] == nil {
		t.errorf([]string{"default"}, "no plan %q: want %s", p.Default, planNames(p.Plans))
	}
}

func readPlans(t *table) map[string]*Plan {
	plans := map[string]*Plan{}
	for _, name := range t.keys() {
		plan := t.sub(name)
		if _, err := asName(name); err != nil {
			plan.errorf(nil, "%w", err)
			continue
		}
		plan.about("plan[" + name + "]")
		plans[name] = &Plan{
			Name:   name,
			Mode:   read(plan, "mode", chain.Enforce, asPlanMode),
			Limits: readLimitsOf(plan, false),
		}
	}
	return plans
}

// planNames lists the plans that there are.
func planNames(plans map[string]*Plan) string {
	var names []string
	for name := range plans {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return "a [plan.NAME], of which there is none"
	}
	return list(names)
}

func asPlanMode(v any) (chain.Mode, error) {
	m, err := as[chain.Mode](v)
	if err != nil || m == chain.Off {
		return 0, errors.New(`want "enforce" or "shadow"`)
	}
	return m, nil
}

// readLimitsOf reads every key of a table that was not read before as a limit.
// Only limits that users share are given out in slices.
func readLimitsOf(t *table, shared bool) map[string]Limit {
	limits := map[string]Limit{}
	for _, name := range t.keys() {
		if slices.Contains(t.known, name) {
			continue
		}
		if _, err := asName(name); err != nil {
			t.blame(t.layerOf(name).source, name, "%w", err)
			continue
		}
		if !t.isTable(name) {
			t.errorf([]string{name}, `want a limit, such as { rate = "20/min", burst = 5 } or { max = 2, expires = "30s" }`)
			continue
		}
		limits[name] = readLimit(t.sub(name), name, shared)
	}
	return limits
}

func (t *table) isTable(key string) bool {
	_, is := t.layerOf(key).values[key].(map[string]any)
	return is
}

var (
	asUnits    = asInt(1, 1e15)
	asMaxWait  = asDuration(0, abi.MaxWait)
	asExpiry   = asDuration(100*time.Millisecond, 24*time.Hour)
	bucketKeys = []string{"rate", "burst", "estimate", "turn_estimate", "max_wait", "slice"}
	leaseKeys  = []string{"max", "expires"}
)

func readLimit(t *table, name string, shared bool) Limit {
	bucket, lease := slices.ContainsFunc(bucketKeys, t.has), slices.ContainsFunc(leaseKeys, t.has)
	l := Limit{Name: name}
	switch {
	case bucket && lease:
		t.errorf(nil, "both a bucket (%s) and a lease (%s): a limit is one of them", list(bucketKeys), list(leaseKeys))
		t.known = append(append(t.known, bucketKeys...), leaseKeys...)
	case lease:
		l.Lease = readLease(t)
	case bucket:
		l.Bucket = readBucket(t, shared)
	default:
		t.errorf(nil, "neither a bucket (rate, burst) nor a lease (max, expires): a limit is one of them")
		t.known = append(append(t.known, bucketKeys...), leaseKeys...)
	}
	t.close()
	return l
}

func readBucket(t *table, shared bool) *Bucket {
	b := &Bucket{
		Rate:         need(t, "rate", `write how fast it fills, such as rate = "20/min"`, asRate),
		Burst:        need(t, "burst", "write what the full bucket holds", asUnits),
		Estimate:     readEstimate(t),
		TurnEstimate: read(t, "turn_estimate", 0, asUnits),
		MaxWait:      read(t, "max_wait", 0, asMaxWait),
		Slice:        read(t, "slice", 0, asUnits),
	}
	switch {
	case b.Slice > 0 && !shared:
		t.errorf([]string{"slice"}, "for [app] and [global], whose buckets many processes draw from: a plan's are each user's own")
	case b.Burst > 0 && b.Slice > b.Burst:
		t.errorf([]string{"slice"}, "%d is above burst, so that one process would take more than there is: want 1 to %d", b.Slice, b.Burst)
	}
	return b
}

func readLease(t *table) *Lease {
	return &Lease{
		Max:     need(t, "max", "write how many may go on at once", asUnits),
		Expires: read(t, "expires", DefaultExpiry, asExpiry),
	}
}

// readUsers reads who is on which plan. Errors do not name the user: they go to
// logs, and their position says enough.
func readUsers(t *table, plans map[string]*Plan) map[string]string {
	users := map[string]string{}
	for _, user := range t.keys() {
		t.known = append(t.known, user)
		l := t.layerOf(user)
		plan, err := asPlanOf(plans)(l.values[user])
		if user == "" {
			err = errNobody
		}
		if err != nil {
			t.add(l.valueFault(join(t.path, user)), nil, "%w", err)
			continue
		}
		users[user] = plan
	}
	return users
}

var errNobody = errors.New("an empty user id is nobody's: name a user or take it out")

func asPlanOf(plans map[string]*Plan) func(any) (string, error) {
	return func(v any) (string, error) {
		name, err := asName(v)
		if err == nil && plans[name] == nil {
			err = fmt.Errorf("no plan %q: want %s", name, planNames(plans))
		}
		return name, err
	}
}

// readOverrides is as silent about who a user is as readUsers.
func readOverrides(t *table, plans map[string]*Plan) map[string]Override {
	overrides := map[string]Override{}
	for _, user := range t.keys() {
		one := t.sub(user).about("override")
		if user == "" {
			one.errorf(nil, "%w", errNobody)
		}
		o := Override{
			Plan:  need(one, "plan", "name the plan", asPlanOf(plans)),
			App:   read(one, "app", "", asText),
			Until: read(one, "until", time.Time{}, asInstant),
			Note:  read(one, "note", "", asText),
		}
		one.close()
		overrides[user] = o
	}
	return overrides
}

// asInstant wants a date and time with its offset: without one, the moment
// would depend on where the host runs.
func asInstant(v any) (time.Time, error) {
	t, is := v.(time.Time)
	switch {
	case !is:
		return t, mismatch("a date and time, such as 2026-12-31T00:00:00Z without quotes", v)
	case moment(t) != t.Format(time.RFC3339Nano):
		return time.Time{}, errors.New("no offset: want a date and time such as 2026-12-31T00:00:00Z")
	}
	return t, nil
}
