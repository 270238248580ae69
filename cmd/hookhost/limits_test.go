package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/redis"
)

func parsePlans(t *testing.T, text string) *manifest.Plans {
	t.Helper()
	p, err := manifest.ParsePlans("plans.toml", []byte(text))
	require.NoError(t, err)
	return p
}

const freeAndPro = `
version = "v1"
default = "free"
claim = "plan"
[plan.free]
turn = { rate = "20/min", burst = 5 }
tokens = { rate = "60000/min", burst = 60000, estimate = 6000, turn_estimate = 500, max_wait = "2s" }
runs = { max = 2 }
[plan.pro]
mode = "shadow"
tokens = { rate = "7/3ms", burst = 60000, estimate = { by = "size", output = 100 } }
`

// minutes is a histogram: so many minutes of what they came to.
func minutes(of ...int64) store.Histogram {
	h := store.Histogram{}
	for i := 0; i < len(of); i += 2 {
		h[of[i]] = of[i+1]
	}
	return h
}

func TestSuggestion(t *testing.T) {
	plans := parsePlans(t, freeAndPro)
	seen := []store.Activity{
		{User: "ada", Plan: "free", Turns: minutes(1, 150, 8, 45), Tokens: minutes(1000, 150, 21000, 45)},
		{User: "eve", Plan: "free", Turns: minutes(30, 5), Tokens: minutes(90000, 5)},
		{User: "bob", Plan: "pro", Turns: minutes(99, 1000), Tokens: minutes(99, 1000)},
	}
	by := &factor{}
	require.NoError(t, by.Set("2.5"))
	base, err := basis(plans, "free")
	require.NoError(t, err)

	s, err := suggest(seenOn(seen, "free"), base, shippedNames, by, 8)
	require.NoError(t, err)

	assert.Equal(t, 2, s.Users)
	assert.Equal(t, common{Minutes: 200, P95: 8, PerMinute: 20}, s.Turns)
	assert.Equal(t, common{Minutes: 200, P95: 21000, PerMinute: 52500}, s.Tokens)
	assert.False(t, s.TooLittle)
	assert.Equal(t, `[plan.free]
runs = { max = 2, expires = "30s" }
tokens = { rate = "52500/min", burst = 52500, estimate = 6000, turn_estimate = 500, max_wait = "2s" }
turn = { rate = "20/min", burst = 20 }
`, s.Block)
	var out bytes.Buffer
	s.Since, s.Factor = "7d", by.String()
	s.write(&out)
	assert.Equal(t, `# the last 7d, 2 users
# 95% of 200 user-minutes with a turn had at most 8 turns; times 2.5
# 95% of 200 user-minutes with a token had at most 21000 tokens; times 2.5
`+s.Block, out.String())
}

var shippedNames = limitNames{turn: "turn", tokens: "tokens"}

// The limits are called what the limiter's configuration calls them, where that
// is a limit of each user's own.
func TestASuggestionNamesTheLimitsAsTheLimiterDoes(t *testing.T) {
	stage := func(mode string) string {
		return `
order = ["quota", "ratelimit"]
version = 1
[stage.quota]
module = "x.wasm"
role = "responder"
grants = ["limit:model:global"]
config = { turn = "", runs = "", tokens = "model:global" }
[stage.ratelimit]
module = "x.wasm"
role = "responder"
mode = "` + mode + `"
grants = ["limit:messages", "limit:budget"]
config = { turn = "messages", tokens = "budget" }
`
	}
	names := func(text string) limitNames {
		m, err := manifest.Parse("hooks.toml", []byte(text), manifest.Options{NoModules: true})
		require.NoError(t, err)
		return namesIn(m)
	}
	assert.Equal(t, limitNames{"messages", "budget"}, names(stage("enforce")))
	assert.Equal(t, shippedNames, names(stage("off")))
	assert.Equal(t, shippedNames, names("order = []\nversion = 1\n"))

	plans := parsePlans(t, freeAndPro)
	by := &factor{}
	require.NoError(t, by.Set("2.5"))
	s, err := suggest([]store.Activity{{Turns: minutes(8, 200), Tokens: minutes(8000, 200)}}, plans.Plans["free"], names(stage("enforce")), by, 1)
	require.NoError(t, err)
	assert.Contains(t, s.Block, "\nmessages = { rate = \"20/min\", burst = 20 }\n")
	assert.Contains(t, s.Block, "\nbudget = { rate = \"20000/min\"")
	assert.Contains(t, s.Block, "\nturn = ", "what the plan has besides stays")
}

// Whatever was seen and whatever the plan is, what is suggested can be pasted
// as it is, and lets calls in.
func TestASuggestionIsAPlan(t *testing.T) {
	plans := parsePlans(t, freeAndPro)
	for name, c := range map[string]struct {
		plan, factor  string
		turns, tokens store.Histogram
		fanOut        int64
		tooLittle     bool
	}{
		"one minute":          {"free", "1", minutes(1, 1), minutes(1, 1), 1, true},
		"no tokens on record": {"free", "2.5", minutes(3, 100), nil, 1, true},
		"no turns on record":  {"free", "2.5", nil, minutes(3, 100), 1, true},
		"a plan in shadow":    {"pro", "1.1", minutes(20, 100), minutes(20, 100), 1, false},
		"no plan":             {"", "2.5", minutes(20, 100), minutes(20, 100), 1, false},
		"a wide fan-out":      {"free", "2.5", minutes(20, 100), minutes(20, 100), 1000, false},
		"a lot":               {"free", "1000", minutes(99e6, 100), minutes(99e6, 100), 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			base, err := basis(plans, c.plan)
			require.NoError(t, err)
			by := &factor{}
			require.NoError(t, by.Set(c.factor))
			s, err := suggest([]store.Activity{{Turns: c.turns, Tokens: c.tokens}}, base, shippedNames, by, c.fanOut)
			require.NoError(t, err)
			assert.Equal(t, c.tooLittle, s.TooLittle)

			var pasted bytes.Buffer
			s.write(&pasted)
			assert.Equal(t, c.tooLittle, strings.Contains(pasted.String(), "# too little to rely on"))
			p := parsePlans(t, "version = \"v2\"\ndefault = \""+base.Name+"\"\n"+pasted.String())
			assert.Equal(t, base.Mode, p.Plans[base.Name].Mode)
			for _, found := range manifest.Lint(&manifest.Manifest{Store: manifest.Store{URL: "redis://db", Replicas: 1}, Limits: manifest.Limits{FanOut: c.fanOut}},
				manifest.LintInput{Plans: p}) {
				assert.Fail(t, found.String())
			}
		})
	}
}

func TestNoSuggestionFromNothing(t *testing.T) {
	plans := parsePlans(t, freeAndPro)
	by := &factor{}
	require.NoError(t, by.Set("2.5"))
	_, err := suggest(nil, plans.Plans["free"], shippedNames, by, 1)
	require.ErrorIs(t, err, errNothingSeen)
	_, err = basis(plans, "gold")
	require.ErrorIs(t, err, host.ErrNoPlan)
	_, err = suggest([]store.Activity{{Turns: minutes(store.MaxUnits, 1)}}, plans.Plans["free"], shippedNames, by, 1)
	require.ErrorContains(t, err, "beyond the range")
}

func TestFactors(t *testing.T) {
	for text, want := range map[string]int64{"1": 20, "1.1": 22, "2.5": 50, "1.01": 21, "1000": 20000} {
		f := &factor{}
		require.NoError(t, f.Set(text))
		assert.Equal(t, want, f.times(20), text)
		assert.Equal(t, text, f.String())
	}
	for _, text := range []string{"", "0", "0.5", "-1", "1e3", "1/2", "nan", "1001", "1.", "1.1234567"} {
		assert.Error(t, (&factor{}).Set(text), text)
	}
}

func TestSpans(t *testing.T) {
	for text, want := range map[string]time.Duration{"5m": 5 * time.Minute, "36h": 36 * time.Hour, "7d": 7 * 24 * time.Hour, "1h30m": 90 * time.Minute} {
		var s span
		require.NoError(t, s.Set(text))
		assert.Equal(t, want, time.Duration(s))
	}
	for d, want := range map[time.Duration]string{
		5 * time.Minute: "5m", 36 * time.Hour: "36h", 48 * time.Hour: "2d", 90 * time.Minute: "1h30m", 10 * time.Second: "10s", 20 * time.Hour: "20h",
	} {
		s := span(d)
		assert.Equal(t, want, s.String())
	}
	for _, text := range []string{"", "0s", "-5m", "5", "d", "1.5x", "999999999d", "-1d", "0d", "1hd"} {
		var s span
		assert.Error(t, s.Set(text), text)
	}
}

// What is written back means the same, and no text is beyond the range.
func FuzzSpanAndFactor(f *testing.F) {
	for _, text := range []string{"5m", "7d", "106751d", "999999999d", "2.5", "1000", "1e9", "-1", "1h30m", "9999.999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s, again span
		if s.Set(text) == nil {
			require.Positive(t, s)
			require.NoError(t, again.Set(s.String()))
			require.Equal(t, s, again)
		}
		var by, same factor
		if by.Set(text) == nil {
			require.Positive(t, by.times(1))
			require.GreaterOrEqual(t, by.times(store.MaxUnits), int64(store.MaxUnits))
			require.NoError(t, same.Set(by.String()))
			require.Zero(t, by.Cmp(same.Rat))
		}
	})
}

// A number that a call did not give is missing, and a sum with such a call is
// at least what it says.
func TestSpentSaysWhatIsMissing(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	day := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	records := []store.Record{
		{User: "eve", App: "a", Plan: "free", Time: day, Tokens: store.Tokens{Prompt: n(0)}},
		{User: "ada", App: "b", Plan: "pro", Time: day, Tokens: store.Tokens{Prompt: n(100), Cached: n(40), Total: n(120)}},
		{User: "ada", App: "b", Plan: "pro", Time: day, Tokens: store.Tokens{Prompt: n(100), Total: n(130)}},
		{User: "ada", App: "b", Plan: "free", Time: day.Add(-time.Hour), Tokens: store.Tokens{Total: n(7)}},
	}
	shown := func(user string, from time.Time) string {
		var out bytes.Buffer
		writeSpent(&out, spentOf(records, user, from))
		return out.String()
	}
	assert.Equal(t, `user  app  plan  calls  prompt   cached   candidates  thoughts  tool_use  total
ada   b    free  1      unknown  unknown  unknown     unknown   unknown   7
ada   b    pro   2      200      40+      unknown     unknown   unknown   250
eve   a    free  1      0        unknown  unknown     unknown   unknown   unknown
+ some of the calls did not say
`, shown("", time.Time{}))
	assert.Equal(t, `user  app  plan  calls  prompt  cached   candidates  thoughts  tool_use  total
eve   a    free  1      0       unknown  unknown     unknown   unknown   unknown
`, shown("eve", day))
	assert.Equal(t, "no model call on record\n", shown("ada", day.Add(time.Hour)))

	text, err := json.Marshal(spentOf(records, "ada", day))
	require.NoError(t, err)
	assert.JSONEq(t, `[{"user": "ada", "app": "b", "plan": "pro", "calls": 2, "tokens": {"prompt": 200, "cached": 40, "total": 250}, "partial": ["cached"]}]`, string(text))
}

// What a conversation ends with says the same of the same calls: that a number
// was not given makes no other one larger.
func TestUsageOfARunSaysWhatIsMissing(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	records := []store.Record{
		{Tokens: store.Tokens{Prompt: n(100), Cached: n(40), Total: n(120)}},
		{Tokens: store.Tokens{Prompt: n(100), Total: n(130)}},
	}
	said := func(records []store.Record) string {
		return shown(false, func(p *printer) { p.usage("ada", records, nil) })
	}
	assert.Equal(t, `usage of ada: 2 model calls
  prompt              200 tokens
  of it cached        40+ tokens
  of it fresh         60+ tokens
  candidates      unknown tokens
  thoughts        unknown tokens
  tool use        unknown tokens
  total               250 tokens
  + some of the calls did not say
`, said(records))
	alone := said(records[1:])
	assert.Contains(t, alone, "of it cached    unknown tokens\n  of it fresh     unknown tokens\n")
	assert.NotContains(t, alone, "+")
}

// Where the store kept no more records, older calls may be missing in a sum.
func TestSpentSaysThatOlderCallsMayBeMissing(t *testing.T) {
	day := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	records := make([]store.Record, redis.MaxRecords)
	for i := range records {
		records[i] = store.Record{User: "ada", Time: day.Add(time.Duration(i) * time.Second)}
	}
	assert.True(t, spentOf(records, "", time.Time{})[0].Older)
	assert.False(t, spentOf(records, "", day.Add(time.Minute))[0].Older, "all that is asked for was kept")
	assert.False(t, spentOf(records[1:], "", time.Time{})[0].Older)
	var out bytes.Buffer
	writeSpent(&out, spentOf(records, "", time.Time{}))
	assert.Contains(t, out.String(), "users with 4096 calls may have more, which the store did not keep\n")
}

func TestViewOfLimits(t *testing.T) {
	plans := parsePlans(t, freeAndPro)
	free := plans.Plans["free"].Limits
	shown := host.Shown{
		App: "support", User: "a\x1b[2Jb", Version: "v1", Plan: host.UserPlan{Name: "free", Source: host.FromDefault},
		Limits: []host.ShownLimit{
			{Limit: free["runs"], Scope: "user", Held: 1},
			{Limit: free["tokens"], Scope: "user", Balance: -10},
			{Limit: plans.Plans["pro"].Limits["tokens"], Scope: "app", Shadow: "ratelimit", Balance: 7},
		},
	}
	text := func(all bool) string {
		var out bytes.Buffer
		viewOf(shown, plans, all).write(&out, plans)
		return out.String()
	}
	assert.Equal(t, `a\x1b[2Jb in app support is on plan free (enforce, version v1)
by default in plans.toml; a run that claims a plan by "plan" is on that one
  user  runs    { max = 2, expires = "30s" }                                                                  1 held
  user  tokens  { rate = "60000/min", burst = 60000, estimate = 6000, turn_estimate = 500, max_wait = "2s" }  -10 left
`, text(false))
	assert.Contains(t, text(true), `  app, shadow of ratelimit  tokens  { rate = "140000/min", burst = 60000, estimate = { by = "size", output = 100 } }`)

	for source, want := range map[host.PlanSource]string{
		host.FromStore: "an override in the store until 2026-12-31T00:00:00Z, set by kim: incident 118",
		host.FromFile:  "[override] in plans.toml until 2026-12-31T00:00:00Z, set by kim: incident 118",
	} {
		shown.Plan = host.UserPlan{Name: "pro", Source: source, Author: "kim", Note: "incident 118", Until: time.Date(2026, 12, 31, 0, 0, 0, 0, time.UTC)}
		assert.Equal(t, want, viewOf(shown, plans, false).Plan.from(plans))
	}
	shown.Plan = host.UserPlan{Name: "free", Source: host.FromUsers}
	plans.Claim = ""
	assert.Equal(t, "[users] in plans.toml", viewOf(shown, plans, false).Plan.from(plans))

	out, err := json.Marshal(viewOf(shown, plans, false))
	require.NoError(t, err)
	assert.JSONEq(t, `{
		"app": "support", "user": "a\u001b[2Jb", "plan": {"name": "free", "mode": "enforce", "version": "v1", "source": "users"},
		"limits": [
			{"scope": "user", "limit": "runs", "lease": {"max": 2, "expires": "30s", "held": 1}},
			{"scope": "user", "limit": "tokens", "bucket": {"rate": "60000/min", "burst": 60000, "estimate": {"by": "fixed", "units": 6000},
				"turn_estimate": 500, "max_wait": "2s", "balance": -10}}
		]}`, string(out))
}

// Arguments may stand anywhere among the flags; behind -- all are arguments.
func TestUsersAmongFlags(t *testing.T) {
	for _, args := range [][]string{
		{"ada", "--app", "x"}, {"--app", "x", "ada"}, {"--app=x", "ada", "--json"}, {"--json", "ada", "--app", "x"}, {"--app", "x", "--", "ada"},
	} {
		c, app := commandOf(args)
		user, err := c.parseUser("x", "y")
		require.NoError(t, err, args)
		assert.Equal(t, "ada", user)
		assert.Equal(t, "x", *app)
	}
	c, _ := commandOf([]string{"--app", "x", "--", "--json"})
	user, err := c.parseUser("x", "y")
	require.NoError(t, err)
	assert.Equal(t, "--json", user)

	for _, args := range [][]string{{}, {""}, {"ada", "eve"}, {"ada", "--", "eve"}, {"--app", "x"}, {"--what", "ada"}} {
		c, _ := commandOf(args)
		_, err := c.parseUser("x", "y")
		assert.ErrorIs(t, err, errUsage, args)
	}
}

func commandOf(args []string) (c *command, app *string) {
	var out bytes.Buffer
	v := verb{run: func(_ context.Context, got *command) error {
		c = got
		return nil
	}}
	v.call(context.Background(), args, &out, &out)
	app = c.String("app", "", "")
	c.BoolVar(&c.json, "json", false, "")
	return c, app
}

func TestOverridesAreChecked(t *testing.T) {
	t.Setenv("USER", "")
	now := time.Date(2026, 11, 30, 12, 0, 0, 500, time.UTC)
	whole := setFlags{plan: "pro", note: "incident 118", author: "kim", app: "shop"}
	check := func(change func(*setFlags)) (store.Override, error) {
		f := whole
		change(&f)
		c, _ := commandOf(nil)
		c.Usage = func() {}
		return f.override(c, "ada", now)
	}
	o, err := check(func(*setFlags) {})
	require.NoError(t, err)
	assert.Equal(t, store.Override{App: "shop", User: "ada", Plan: "pro", Author: "kim", Note: "incident 118"}, o)
	o, err = check(func(f *setFlags) { f.lasts = span(2 * time.Hour) })
	require.NoError(t, err)
	assert.Equal(t, time.Date(2026, 11, 30, 14, 0, 1, 0, time.UTC), o.Until)
	o, err = check(func(f *setFlags) { f.until = "2026-12-31T01:00:00+01:00" })
	require.NoError(t, err)
	assert.True(t, o.Until.Equal(time.Date(2026, 12, 31, 0, 0, 0, 0, time.UTC)))

	for name, change := range map[string]func(*setFlags){
		"no plan":    func(f *setFlags) { f.plan = "" },
		"no note":    func(f *setFlags) { f.note = " " },
		"no author":  func(f *setFlags) { f.author = "" },
		"over":       func(f *setFlags) { f.until = "2026-11-30T12:00:00Z" },
		"no time":    func(f *setFlags) { f.until = "2026-12-31" },
		"both times": func(f *setFlags) { f.until, f.lasts = "2026-12-31T00:00:00Z", span(time.Hour) },
	} {
		_, err := check(change)
		assert.ErrorIs(t, err, errUsage, name)
	}
}
