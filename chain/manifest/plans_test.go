package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/store"
)

func TestFullPlans(t *testing.T) {
	p, err := LoadPlans("testdata/good/plans.toml")
	require.NoError(t, err)
	p.source = nil
	assert.Equal(t, &Plans{
		File: "testdata/good/plans.toml", Version: "2026-11-30", Default: "free", Claim: "plan",
		Plans: map[string]*Plan{
			"free": {Name: "free", Mode: chain.Enforce, Limits: map[string]Limit{
				"turn": {Name: "turn", Bucket: &Bucket{Rate: Rate{1, 3 * time.Second}, Burst: 5}},
				"tokens": {Name: "tokens", Bucket: &Bucket{
					Rate: Rate{1, time.Millisecond}, Burst: 60000, Estimate: Estimate{Units: 6000}, TurnEstimate: 500, MaxWait: 2 * time.Second,
				}},
				"runs": {Name: "runs", Lease: &Lease{Max: 2, Expires: 30 * time.Second}},
			}},
			"pro": {Name: "pro", Mode: chain.Shadow, Limits: map[string]Limit{
				"turn": {Name: "turn", Bucket: &Bucket{Rate: Rate{1, 1500 * time.Millisecond}, Burst: 50}},
				"tokens": {Name: "tokens", Bucket: &Bucket{
					Rate: Rate{50, 3 * time.Millisecond}, Burst: 1e6, Estimate: Estimate{EstimateSize, 1000},
				}},
				"runs": {Name: "runs", Lease: &Lease{Max: 20, Expires: DefaultExpiry}},
			}},
			"team": {Name: "team", Mode: chain.Enforce, Limits: map[string]Limit{
				"tokens": {Name: "tokens", Bucket: &Bucket{
					Rate: Rate{50, 3 * time.Millisecond}, Burst: 1e6, Estimate: Estimate{EstimateLearned, 6000},
				}},
			}},
		},
		App:    map[string]Limit{"model_calls": {Name: "model_calls", Bucket: &Bucket{Rate: Rate{3, 40 * time.Millisecond}, Burst: 150, Slice: 20}}},
		Global: map[string]Limit{"exports": {Name: "exports", Lease: &Lease{Max: 1, Expires: 5 * time.Minute}}},
		Users:  map[string]string{"user-42": "team", "user-44": "team"},
		Overrides: map[string]Override{
			"user-42": {Plan: "pro", Until: time.Date(2026, 12, 31, 0, 0, 0, 0, time.UTC), Note: "incident 118"},
			"user-43": {Plan: "pro", App: "support"},
		},
	}, p)
}

func TestPlanOfAUser(t *testing.T) {
	p, err := LoadPlans("testdata/good/plans.toml")
	require.NoError(t, err)
	until := time.Date(2026, 12, 31, 0, 0, 0, 0, time.UTC)
	assert.Equal(t, "free", p.For("support", "user-1", until).Name)
	assert.Equal(t, "pro", p.For("support", "user-42", until.Add(-1)).Name)
	assert.Equal(t, "team", p.For("support", "user-42", until).Name, "over from its end on")
	assert.Equal(t, "team", p.For("support", "user-44", until).Name)
	assert.Equal(t, "pro", p.For("support", "user-43", until).Name)
	assert.Equal(t, "free", p.For("shop", "user-43", until).Name, "in its app only")
}

// Part 1: no number that makes no sense is served. The error names the plan,
// the limit and the key.
func TestCase018BadNumbers(t *testing.T) {
	plan := func(limit string) string { return "version = \"1\"\ndefault = \"free\"\n[plan.free]\n" + limit + "\n" }
	for key, bad := range map[string][]string{
		"turn = { burst = 5, rate = %s }": {
			`0`, `-5`, `nan`, `inf`, `20`, `""`, `"0/min"`, `"-5/min"`, `"nan/min"`, `"inf/min"`, `"1e3/s"`, `"1.5/s"`, `"20"`, `"20/"`,
			`"/s"`, `"20/fortnight"`, `"20/0s"`, `"20/-1s"`, `" 20/s"`, `"+20/s"`, `"99999999999999999999/s"`, `"1/99999999999999999999s"`,
			`"9007199254740993/ms"`, `"9007199254740881/s"`, `"1/99999999999h"`, `"0x10/s"`, `"2_0/s"`,
		},
		`turn = { rate = "20/min", burst = %s }`:                    {`0`, `-1`, `nan`, `inf`, `-inf`, `5.0`, `1000000000000001`, `"5"`},
		`turn = { rate = "20/min", burst = 5, estimate = %s }`:      {`0`, `-1`, `nan`, `1000000000000001`},
		`turn = { rate = "20/min", burst = 5, turn_estimate = %s }`: {`0`, `-1`, `nan`, `1000000000000001`},
		`turn = { rate = "20/min", burst = 5, slice = %s }`:         {`0`, `-1`, `nan`, `1000000000000001`},
		`turn = { rate = "20/min", burst = 5, max_wait = %s }`:      {`-1`, `nan`, `2000`, `"-1ms"`, `"1500us"`, `"61m"`, `"inf"`, `"2"`},
		`turn = { expires = "30s", max = %s }`:                      {`0`, `-1`, `nan`, `inf`, `1000000000000001`},
		`turn = { max = 2, expires = %s }`:                          {`0`, `"0s"`, `"-30s"`, `nan`, `"25h"`, `"50ms"`},
	} {
		name := keyBefore(key)
		for _, value := range bad {
			t.Run(name+" "+value, func(t *testing.T) {
				_, err := ParsePlans("plans.toml", []byte(plan(fmt.Sprintf(key, value))))
				var all *Errors
				require.ErrorAs(t, err, &all)
				require.Len(t, all.All, 1, "%s", err)
				assert.Equal(t, 4, all.All[0].Line)
				assert.Contains(t, err.Error(), "plan[free] turn."+name+": ")
			})
		}
	}
}

// keyBefore gives the key whose value is the verb.
func keyBefore(format string) string {
	for _, key := range []string{"turn_estimate", "estimate", "slice", "max_wait", "max", "expires", "burst", "rate"} {
		if strings.Contains(format, " "+key+" = %s") {
			return key
		}
	}
	return ""
}

// Plans and stores have one rule of what a rate can be.
func TestTheLargestRateOfPlansIsTheLargestOfStores(t *testing.T) {
	for units, fits := range map[int64]bool{1 << 53: true, 1<<53 + 1: false} {
		_, err := ParseRate(fmt.Sprintf("%d/ms", units))
		assert.Equal(t, fits, err == nil, "plans: %d", units)
		err = store.Bucket{Units: units, Per: time.Millisecond, Burst: 1}.Validate()
		assert.Equal(t, fits, err == nil, "stores: %d", units)
	}
}

func TestRates(t *testing.T) {
	for text, want := range map[string]Rate{
		"20/min":              {1, 3 * time.Second},
		"1/s":                 {1, time.Second},
		"7/ms":                {7, time.Millisecond},
		"20/30s":              {1, 1500 * time.Millisecond},
		"3/day":               {1, 8 * time.Hour},
		"1/7day":              {1, 7 * 24 * time.Hour},
		"9007199254740991/ms": {1<<53 - 1, time.Millisecond},
		"9007199254740992/ms": {1 << 53, time.Millisecond},
	} {
		got, err := ParseRate(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
		again, err := ParseRate(got.String())
		require.NoError(t, err)
		assert.Equal(t, got, again, "%s reads back", got)
	}
}

func FuzzRate(f *testing.F) {
	for _, s := range []string{"20/min", "1/7day", "0/s", "9007199254740991/ms", "1/9223372036854775807s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRate(s)
		if err != nil {
			return
		}
		require.Positive(t, r.Units)
		require.Positive(t, r.Per.Milliseconds())
		require.Zero(t, r.Per%time.Millisecond)
		require.Less(t, float64(r.Units)*float64(r.Per.Milliseconds()), float64(1<<53))
		again, err := ParseRate(r.String())
		require.NoError(t, err)
		require.Equal(t, r, again)
	})
}

func FuzzParsePlans(f *testing.F) {
	good, err := os.ReadFile("testdata/good/plans.toml")
	require.NoError(f, err)
	f.Add(good)
	bad, err := filepath.Glob("testdata/badplans/*.toml")
	require.NoError(f, err)
	for _, path := range bad {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParsePlans("plans.toml", data)
		if err != nil {
			var all *Errors
			require.ErrorAs(t, err, &all)
			require.NotEmpty(t, all.Render())
			return
		}
		require.NotNil(t, p.For("app", "user", time.Now()))
		for user := range p.Overrides {
			require.NotNil(t, p.For("app", user, time.Time{}))
		}
		for _, plan := range p.Plans {
			for _, l := range plan.Limits {
				require.True(t, (l.Bucket == nil) != (l.Lease == nil))
			}
		}
		Lint(&Manifest{Limits: Limits{FanOut: 1000}, Store: Store{URL: DefaultStoreURL, Replicas: 1}}, LintInput{Plans: p})
	})
}
