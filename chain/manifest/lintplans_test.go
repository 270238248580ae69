package manifest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lintLimit lints one limit in a table of the plans, with fan-out 8
// and 3 processes.
func lintLimit(t *testing.T, table, limit string) []Finding {
	t.Helper()
	p, err := ParsePlans("plans.toml", []byte("version = \"1\"\ndefault = \"base\"\n[plan.base]\n["+table+"]\nx = { "+limit+" }\n"))
	require.NoError(t, err)
	return Lint(&Manifest{Store: Store{URL: "redis://db", Replicas: 3}, Limits: Limits{FanOut: 8}}, LintInput{Plans: p})
}

func TestLintOfPlans(t *testing.T) {
	for limit, want := range map[string][]string{
		`rate = "20/min", burst = 5`:                                                            nil,
		`rate = "20/min", burst = 48000, estimate = 6000`:                                       nil,
		`rate = "20/min", burst = 47999, estimate = 6000`:                                       {RuleBelowFanOut},
		`rate = "20/min", burst = 47999, estimate = { by = "learned", initial = 6000 }`:         {RuleBelowFanOut},
		`rate = "20/min", burst = 7999, estimate = { by = "size", output = 1000 }`:              {RuleBelowFanOut},
		`rate = "20/min", burst = 8000, estimate = { by = "size", output = 1000 }`:              nil,
		`rate = "20/min", burst = 5999, estimate = 6000`:                                        {RuleNeverAdmits},
		`rate = "20/min", burst = 5999, estimate = 6000, max_wait = "3s"`:                       {RuleBelowFanOut},
		`rate = "20/min", burst = 5999, estimate = 6000, max_wait = "2999ms"`:                   {RuleNeverAdmits},
		`rate = "7/3ms", burst = 100, estimate = 111, max_wait = "4ms"`:                         {RuleNeverAdmits},
		`rate = "7/3ms", burst = 100, estimate = 111, max_wait = "5ms"`:                         {RuleBelowFanOut},
		`rate = "9007199254740991/ms", burst = 1, estimate = 1000000000000000, max_wait = "1h"`: {RuleBelowFanOut},
		`rate = "277777777/ms", burst = 1, estimate = 1000000000000000, max_wait = "1h"`:        {RuleNeverAdmits},
		`rate = "277777778/ms", burst = 1, estimate = 1000000000000000, max_wait = "1h"`:        {RuleBelowFanOut},
		`rate = "20/min", burst = 500, turn_estimate = 500`:                                     nil,
		`rate = "20/min", burst = 500, turn_estimate = 501`:                                     {RuleNeverAdmits},
		`max = 2`: nil,
	} {
		t.Run(limit, func(t *testing.T) {
			var rules []string
			for _, f := range lintLimit(t, "plan.free", limit) {
				rules = append(rules, f.Rule)
				assert.Equal(t, 5, f.At.Line)
			}
			assert.Equal(t, want, rules)
		})
	}
}

func TestLintOfSlices(t *testing.T) {
	assert.Empty(t, lintLimit(t, "global", `rate = "75/s", burst = 150, slice = 50`))
	assert.Empty(t, lintLimit(t, "app", `rate = "75/s", burst = 150, slice = 15, estimate = 15`))
	found := lintLimit(t, "app", `rate = "75/s", burst = 150, slice = 14, estimate = 15`)
	require.Len(t, found, 1)
	assert.Equal(t, RuleIdleSlice, found[0].Rule)

	found = lintLimit(t, "global", `rate = "75/s", burst = 150, slice = 51`)
	require.Len(t, found, 1)
	assert.Equal(t, "plans.toml:5:43: global x.slice: 3 processes take 51 each ahead, and burst holds 150: "+
		"the last of them find nothing (warning slices-over-burst)", found[0].String())
}

func TestLintOfPlansSaysWhichPlan(t *testing.T) {
	found := lintLimit(t, "plan.free", `rate = "20/min", burst = 10000, estimate = 6000`)
	require.Len(t, found, 1)
	assert.Equal(t, "plans.toml:5:32: plan[free] x.burst: 10000 is less than fan_out x estimate, 8 x 6000: "+
		"some calls of one turn wait for others, or are refused (warning burst-below-fan-out)", found[0].String())
}
