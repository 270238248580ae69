package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/host"
)

func showLimits(ctx context.Context, c *command) error {
	var f limitFlags
	f.declare(c)
	app := c.String("app", demoApp, "the `APP` in which the user is looked at")
	all := c.Bool("all", false, "show the limits of the app and the global ones too")
	user, err := c.parseUser("limits show USER [flags]", "Shows the plan that a user is on and what put the user there, each limit of it with\nits numbers, and what is left or held now. It changes nothing.")
	if err != nil {
		return err
	}
	if *app == "" {
		return c.misused("--app \"\": name the app: a user's buckets are counted in each app apart")
	}
	return f.withPlans(ctx, c, func(l *host.Limits, plans *manifest.Plans) error {
		shown, err := l.Show(ctx, *app, user)
		if err != nil {
			return err
		}
		view := viewOf(shown, plans, *all)
		if c.json {
			return writeJSON(c, view)
		}
		view.write(c.stdout, plans)
		return nil
	})
}

// limitsView is what show shows.
type limitsView struct {
	App    string      `json:"app"`
	User   string      `json:"user"`
	Plan   planView    `json:"plan"`
	Limits []limitView `json:"limits"`
}

type planView struct {
	Name    string          `json:"name"`
	Mode    string          `json:"mode"`
	Version string          `json:"version"` // of plans.toml
	Source  host.PlanSource `json:"source"`
	Author  string          `json:"author,omitempty"`
	Note    string          `json:"note,omitempty"`
	Until   *time.Time      `json:"until,omitempty"`
}

// limitView is one limit and what is left of a bucket, or held of a lease.
type limitView struct {
	Scope   string      `json:"scope"` // user, app or global
	Name    string      `json:"limit"`
	Shadow  string      `json:"shadow,omitempty"` // the stage in shadow that counts for itself
	Bucket  *bucketView `json:"bucket,omitempty"`
	Lease   *leaseView  `json:"lease,omitempty"`
	numbers string
}

type bucketView struct {
	Rate         string        `json:"rate"`
	Burst        int64         `json:"burst"`
	Estimate     *estimateView `json:"estimate,omitempty"`
	TurnEstimate int64         `json:"turn_estimate,omitempty"`
	MaxWait      string        `json:"max_wait"`
	Slice        int64         `json:"slice,omitempty"`
	Balance      int64         `json:"balance"`
}

type estimateView struct {
	By    string `json:"by"`
	Units int64  `json:"units"`
}

type leaseView struct {
	Max     int64  `json:"max"`
	Expires string `json:"expires"`
	Held    int64  `json:"held"`
}

func viewOf(s host.Shown, plans *manifest.Plans, all bool) limitsView {
	v := limitsView{App: s.App, User: s.User, Limits: []limitView{}, Plan: planView{
		Name: s.Plan.Name, Mode: plans.Plans[s.Plan.Name].Mode.String(), Version: s.Version,
		Source: s.Plan.Source, Author: s.Plan.Author, Note: s.Plan.Note, Until: moment(s.Plan.Until),
	}}
	for _, one := range s.Limits {
		if all || one.Scope == "user" {
			v.Limits = append(v.Limits, limitViewOf(one))
		}
	}
	return v
}

func limitViewOf(one host.ShownLimit) limitView {
	v := limitView{Scope: one.Scope, Name: one.Name, Shadow: one.Shadow, numbers: limitTOML(one.Limit)}
	if b := one.Bucket; b != nil {
		v.Bucket = &bucketView{
			Rate: perMinute(b.Rate), Burst: b.Burst, TurnEstimate: b.TurnEstimate, MaxWait: b.MaxWait.String(), Slice: b.Slice, Balance: one.Balance,
		}
		if b.Estimate != (manifest.Estimate{}) {
			v.Bucket.Estimate = &estimateView{b.Estimate.By.String(), b.Estimate.Units}
		}
	}
	if l := one.Lease; l != nil {
		v.Lease = &leaseView{Max: l.Max, Expires: l.Expires.String(), Held: one.Held}
	}
	return v
}

// moment is a time that may be none.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func (v limitsView) write(w io.Writer, plans *manifest.Plans) {
	fmt.Fprintf(w, "%s %s is on plan %s (%s, version %s)\n", visible(v.User), inApp(v.App), v.Plan.Name, v.Plan.Mode, visible(v.Plan.Version))
	fmt.Fprintf(w, "by %s\n", v.Plan.from(plans))
	var rows [][]string
	for _, l := range v.Limits {
		scope := l.Scope
		if l.Shadow != "" {
			scope += ", shadow of " + l.Shadow
		}
		rows = append(rows, []string{"  " + scope, l.Name, l.numbers, l.now()})
	}
	writeTable(w, rows)
}

// from says what put the user on the plan.
func (p planView) from(plans *manifest.Plans) string {
	text := ""
	switch p.Source {
	case host.FromStore:
		text = "an override in the store"
	case host.FromFile:
		text = "[override] in " + visible(plans.File)
	case host.FromUsers:
		text = "[users] in " + visible(plans.File)
	default:
		text = "default in " + visible(plans.File)
	}
	if p.Until != nil {
		text += " until " + p.Until.Format(time.RFC3339)
	}
	if p.Author != "" {
		text += ", set by " + visible(p.Author)
	}
	if p.Note != "" {
		text += ": " + visible(p.Note)
	}
	if after := p.Source == host.FromUsers || p.Source == host.FromDefault; after && plans.Claim != "" {
		text += fmt.Sprintf("; a run that claims a plan by %q is on that one", plans.Claim)
	}
	return text
}

func (l limitView) now() string {
	if l.Lease != nil {
		return fmt.Sprintf("%d held", l.Lease.Held)
	}
	return fmt.Sprintf("%d left", l.Bucket.Balance)
}
