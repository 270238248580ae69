package manifest

import (
	"maps"
	"slices"
)

// plans looks at the numbers of the limits, by the names of the plans.
func (l *linter) plans(p *Plans) {
	for _, name := range slices.Sorted(maps.Keys(p.Plans)) {
		l.buckets(p, []string{"plan", name}, "plan["+name+"]", p.Plans[name].Limits)
	}
	l.buckets(p, []string{"app"}, "app", p.App)
	l.buckets(p, []string{"global"}, "global", p.Global)
}

func (l *linter) buckets(p *Plans, table []string, subject string, limits map[string]Limit) {
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if b := limits[name].Bucket; b != nil {
			add := func(rule string, level Level, key, format string, args ...any) {
				e := p.source.valueFault(join(table, name, key))
				e.subject, e.Key = subject, dotted(name, key)
				l.found = append(l.found, Finding{rule, level, e.describe(format, args...)})
			}
			l.bucket(b, add)
		}
	}
}

// bucket looks for calls that cannot be let in. What an estimate by size comes
// to is not known here, but it is not below what it adds for the answer.
func (l *linter) bucket(b *Bucket, add func(rule string, level Level, key, format string, args ...any)) {
	estimate, fanOut := b.Estimate.Units, l.m.Limits.FanOut
	switch {
	case b.never(estimate):
		add(RuleNeverAdmits, Fault, "estimate", "a call that takes %d never fits: burst holds %d, and within max_wait (%s) not enough comes back", estimate, b.Burst, short(b.MaxWait))
	case b.Burst < fanOut*estimate:
		add(RuleBelowFanOut, Warning, "burst", "%d is less than fan_out x estimate, %d x %d: some calls of one turn wait for others, or are refused", b.Burst, fanOut, estimate)
	}
	if b.TurnEstimate > b.Burst {
		add(RuleNeverAdmits, Fault, "turn_estimate", "%d is more than burst, %d, holds: no turn ever begins", b.TurnEstimate, b.Burst)
	}
	if b.Slice > 0 && b.Slice < estimate {
		add(RuleIdleSlice, Warning, "slice", "a call takes %d by the estimate, which no slice of %d serves: each call asks the store all the same", estimate, b.Slice)
	}
	if processes := int64(l.m.Store.Replicas); b.Slice > b.Burst/processes {
		add(RuleSlicesOverBurst, Warning, "slice", "%d processes take %d each ahead, and burst holds %d: the last of them find nothing", processes, b.Slice, b.Burst)
	}
}

// never reports whether a full bucket is further from a cost than the longest
// wait.
func (b *Bucket) never(cost int64) bool {
	missing, period := cost-b.Burst, b.Per.Milliseconds()
	whole, rest := b.MaxWait.Milliseconds()/period, b.MaxWait.Milliseconds()%period
	if missing <= 0 || whole > 0 && b.Units > missing/whole { // the product below cannot overflow
		return false
	}
	return missing > whole*b.Units+rest*b.Units/period
}
