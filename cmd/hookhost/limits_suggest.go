package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/store"
)

func suggestPlan(ctx context.Context, c *command) error {
	var f limitFlags
	f.declare(c)
	app := c.String("app", "", "by the users of this `APP` only (default: of every app)")
	plan := c.String("plan", "", "by the users on this `PLAN` only, and for it (default: by all)")
	since := span(7 * 24 * time.Hour)
	c.Var(&since, "since", "by what was done within this `TIME`, up to 8d, in whole days by UTC")
	by := factor{big.NewRat(5, 2)}
	c.Var(&by, "factor", "how much more, `N`, than what is common shall be allowed")
	if err := c.parse("limits suggest [flags]", "Suggests a plan: the turns and tokens that 95 in 100 minutes of users do not go over,\ntimes a factor, as a block for plans.toml. Minutes in which a user did nothing do not\ncount. All other numbers are those of the plan as it is, or of the default one."); err != nil {
		return err
	}
	if err := c.noArguments(); err != nil {
		return err
	}
	if err := since.within(c, store.ActivityKept); err != nil {
		return err
	}
	return f.withPlans(ctx, c, func(l *host.Limits, plans *manifest.Plans) error {
		base, err := basis(plans, *plan)
		if err != nil {
			return err
		}
		all, err := readMany(ctx, c, func(ctx context.Context) ([]store.Activity, error) {
			return l.Activity(ctx, everybody(*app), time.Now().Add(-time.Duration(since)))
		})
		if err != nil {
			return fmt.Errorf("activity: %w", err)
		}
		s, err := suggest(seenOn(all, *plan), base, namesIn(l.Manifest()), &by, l.Manifest().Limits.FanOut)
		if err != nil {
			return err
		}
		s.Since, s.Factor = since.String(), by.String()
		if c.json {
			return writeJSON(c, s)
		}
		s.write(c.stdout)
		return nil
	})
}

// factor is a flag: a number from 1 to 1000 with a point.
type factor struct{ *big.Rat }

var factorText = regexp.MustCompile(`^[0-9]{1,4}(\.[0-9]{1,6})?$`)

func (f *factor) String() string {
	if f.Rat == nil {
		return ""
	}
	return strings.TrimRight(strings.TrimRight(f.FloatString(6), "0"), ".")
}

func (f *factor) Set(text string) error {
	n, ok := new(big.Rat).SetString(text)
	if !factorText.MatchString(text) || !ok || n.Cmp(big.NewRat(1, 1)) < 0 || n.Cmp(big.NewRat(1000, 1)) > 0 {
		return errors.New("want a number from 1 to 1000, such as 2.5")
	}
	f.Rat = n
	return nil
}

// times is the product, rounded up.
func (f *factor) times(n int64) int64 {
	product := new(big.Rat).Mul(f.Rat, new(big.Rat).SetInt64(n))
	whole, rest := new(big.Int).QuoRem(product.Num(), product.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	if !whole.IsInt64() {
		return 1<<63 - 1
	}
	return whole.Int64()
}

// basis is the plan that the numbers are put into.
func basis(plans *manifest.Plans, name string) (*manifest.Plan, error) {
	if name == "" {
		base := *plans.Plans[plans.Default]
		base.Name = "suggested"
		return &base, nil
	}
	base, found := plans.Plans[name]
	if !found {
		return nil, fmt.Errorf("plan %q: %w: want %s", name, host.ErrNoPlan, strings.Join(slices.Sorted(maps.Keys(plans.Plans)), ", "))
	}
	return base, nil
}

// seenOn are those whose newest call was on a plan.
func seenOn(all []store.Activity, plan string) []store.Activity {
	return slices.DeleteFunc(all, func(a store.Activity) bool { return plan != "" && a.Plan != plan })
}

// enough is how many minutes of users the percentile of 95 wants: five of them
// are above it then.
const enough = 100

// suggestion is a plan and what it comes from.
type suggestion struct {
	Since     string `json:"since"`
	Factor    string `json:"factor"`
	Users     int    `json:"users"`
	Turns     common `json:"turns"`
	Tokens    common `json:"tokens"`
	TooLittle bool   `json:"too_little"` // too few minutes to rely on
	Block     string `json:"block"`      // for plans.toml
}

// common is what most minutes of users do not go over.
type common struct {
	Minutes   int64 `json:"minutes"` // with any
	P95       int64 `json:"p95"`
	PerMinute int64 `json:"per_minute"` // what is suggested
}

func commonOf(h store.Histogram, by *factor) common {
	c := common{P95: h.Percentile(95)}
	for _, minutes := range h {
		c.Minutes += minutes
	}
	c.PerMinute = by.times(c.P95)
	return c
}

var errNothingSeen = errors.New("nothing to go by: no model call of these users is known from this time")

// limitNames are what the plans call the limits of turns and of tokens.
type limitNames struct{ turn, tokens string }

// namesIn are those that the limiter's configuration gives to limits which are
// each user's own, or else the shipped ones.
func namesIn(m *manifest.Manifest) limitNames {
	names := map[string]string{}
	for _, s := range m.Stages {
		for _, set := range s.Config {
			own := slices.Contains(s.Grants, abi.Grant{Family: "limit", Name: set.Value})
			if own && s.Spec.Mode != chain.Off && names[set.Key] == "" {
				names[set.Key] = set.Value
			}
		}
	}
	return limitNames{cmp.Or(names["turn"], "turn"), cmp.Or(names["tokens"], "tokens")}
}

func suggest(seen []store.Activity, base *manifest.Plan, names limitNames, by *factor, fanOut int64) (suggestion, error) {
	turns, tokens := store.Histogram{}, store.Histogram{}
	for _, a := range seen {
		turns.Merge(a.Turns)
		tokens.Merge(a.Tokens)
	}
	s := suggestion{Users: len(seen), Turns: commonOf(turns, by), Tokens: commonOf(tokens, by)}
	if s.Turns.Minutes == 0 && s.Tokens.Minutes == 0 {
		return s, errNothingSeen
	}
	s.TooLittle = min(s.Turns.Minutes, s.Tokens.Minutes) < enough

	limits := maps.Clone(base.Limits)
	if s.Turns.Minutes > 0 {
		limits[names.turn] = s.Turns.allowed(limits[names.turn].Bucket, names.turn, 1)
	}
	if s.Tokens.Minutes > 0 {
		b := limits[names.tokens].Bucket
		if b == nil {
			b = &manifest.Bucket{Estimate: manifest.Estimate{By: manifest.EstimateLearned, Units: s.Tokens.P95}}
		}
		limits[names.tokens] = s.Tokens.allowed(b, names.tokens, fanOut)
	}
	s.Block = planTOML(base.Name, base.Mode, limits)
	if _, err := manifest.ParsePlans("suggestion", []byte("version = \"1\"\ndefault = \""+base.Name+"\"\n"+s.Block)); err != nil {
		return s, fmt.Errorf("what is common is beyond the range of a plan: %w", err)
	}
	return s, nil
}

// allowed is a bucket with the numbers that are suggested: a minute's worth at
// once, or what the calls of one turn take at once if that is more.
func (c common) allowed(as *manifest.Bucket, name string, fanOut int64) manifest.Limit {
	b := manifest.Bucket{}
	if as != nil {
		b = *as
	}
	b.Rate = manifest.Rate{Units: c.PerMinute, Per: time.Minute}
	b.Burst = max(c.PerMinute, fanOut*b.Estimate.Units, b.TurnEstimate)
	return manifest.Limit{Name: name, Bucket: &b}
}

// planTOML writes a plan as plans.toml has it.
func planTOML(name string, mode chain.Mode, limits map[string]manifest.Limit) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[plan.%s]\n", name)
	if mode == chain.Shadow {
		fmt.Fprintf(&b, "mode = %q\n", mode)
	}
	for _, limit := range slices.Sorted(maps.Keys(limits)) {
		fmt.Fprintf(&b, "%s = %s\n", limit, limitTOML(limits[limit]))
	}
	return b.String()
}

// write writes all but the block as comments, so that the whole can be pasted.
func (s suggestion) write(w io.Writer) {
	fmt.Fprintf(w, "# the last %s, %s\n", s.Since, counted(int64(s.Users), "user"))
	for _, of := range []struct {
		what string
		common
	}{{"turn", s.Turns}, {"token", s.Tokens}} {
		if of.Minutes == 0 {
			fmt.Fprintf(w, "# no minute with a %s\n", of.what)
			continue
		}
		fmt.Fprintf(w, "# 95%% of %s with a %s had at most %s; times %s\n", counted(of.Minutes, "user-minute"), of.what, counted(of.P95, of.what), s.Factor)
	}
	if s.TooLittle {
		fmt.Fprintf(w, "# too little to rely on: less than %d user-minutes\n", enough)
	}
	fmt.Fprint(w, s.Block)
}
