package manifest

import (
	"errors"
	"slices"
	"time"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
)

// Plans is a checked plans.toml: the numbers of all limits.
type Plans struct {
	File      string
	Version   string // as the file gives it
	Default   string // the plan of a user without an override
	Plans     map[string]*Plan
	App       map[string]Limit // shared by all users of an app
	Global    map[string]Limit // shared by all apps
	Overrides map[string]Override
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
	Estimate     int64         // what one call takes until its cost is known; 0 if the guest says it
	TurnEstimate int64         // what must be there when a turn begins; 0 for nothing
	MaxWait      time.Duration // how long a call may be held up, up to abi.MaxWait; 0 refuses at once
}

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

// For finds the plan of a user at a time.
func (p *Plans) For(app, user string, now time.Time) *Plan {
	o, found := p.Overrides[user]
	if found && (o.App == "" || o.App == app) && (o.Until.IsZero() || now.Before(o.Until)) {
		return p.Plans[o.Plan]
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
	p := &Plans{File: name}
	p.read(rootTable(&f, s))
	if err := f.err(); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Plans) read(t *table) {
	p.Version = need(t, "version", `name this state of the plans, such as version = "2026-11-30"`, asText)
	p.Default = need(t, "default", "name the plan of users without an override", asName)
	p.Plans = readPlans(t.sub("plan"))
	p.App = readLimitsOf(t.sub("app").about("app"))
	p.Global = readLimitsOf(t.sub("global").about("global"))
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
			Limits: readLimitsOf(plan),
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
func readLimitsOf(t *table) map[string]Limit {
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
		limits[name] = readLimit(t.sub(name), name)
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
	bucketKeys = []string{"rate", "burst", "estimate", "turn_estimate", "max_wait"}
	leaseKeys  = []string{"max", "expires"}
)

func readLimit(t *table, name string) Limit {
	bucket, lease := slices.ContainsFunc(bucketKeys, t.has), slices.ContainsFunc(leaseKeys, t.has)
	l := Limit{Name: name}
	switch {
	case bucket && lease:
		t.errorf(nil, "both a bucket (%s) and a lease (%s): a limit is one of them", list(bucketKeys), list(leaseKeys))
		t.known = append(t.known, leaseKeys...)
		readBucket(t)
	case lease:
		l.Lease = readLease(t)
	case bucket:
		l.Bucket = readBucket(t)
	default:
		t.errorf(nil, "neither a bucket (rate, burst) nor a lease (max, expires): a limit is one of them")
		t.known = append(append(t.known, bucketKeys...), leaseKeys...)
	}
	t.close()
	return l
}

func readBucket(t *table) *Bucket {
	return &Bucket{
		Rate:         need(t, "rate", `write how fast it fills, such as rate = "20/min"`, asRate),
		Burst:        need(t, "burst", "write what the full bucket holds", asUnits),
		Estimate:     read(t, "estimate", 0, asUnits),
		TurnEstimate: read(t, "turn_estimate", 0, asUnits),
		MaxWait:      read(t, "max_wait", 0, asMaxWait),
	}
}

func readLease(t *table) *Lease {
	return &Lease{
		Max:     need(t, "max", "write how many may go on at once", asUnits),
		Expires: need(t, "expires", `write after which silence a holder loses it, such as expires = "30s"`, asExpiry),
	}
}

// readOverrides reads the users' plans. Errors do not name the user: they go
// to logs, and their position says enough.
func readOverrides(t *table, plans map[string]*Plan) map[string]Override {
	overrides := map[string]Override{}
	for _, user := range t.keys() {
		one := t.sub(user).about("override")
		o := Override{
			Plan:  need(one, "plan", "name the plan", asName),
			App:   read(one, "app", "", asText),
			Until: read(one, "until", time.Time{}, asInstant),
			Note:  read(one, "note", "", asText),
		}
		one.close()
		if o.Plan != "" && plans[o.Plan] == nil {
			one.errorf([]string{"plan"}, "no plan %q: want %s", o.Plan, planNames(plans))
		}
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
