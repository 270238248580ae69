package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/store"
)

func resetLimits(ctx context.Context, c *command) error {
	var f limitFlags
	f.declare(c)
	app := c.String("app", demoApp, "the `APP` in which the user is reset")
	only := c.String("only", "", "`WHAT` to reset, override or buckets (default: both)")
	user, err := c.parseUser("limits reset USER [flags]", "Takes back the overrides in the store that hold for a user in one app, also one for\nevery app, and makes the user's buckets there full. Leases stay: they end with their\nruns, or lapse. What runs have reserved is settled as if nothing had been reset.")
	if err != nil {
		return err
	}
	if *app == "" {
		return c.misused("--app \"\": name the app: a user's buckets are counted in each app apart")
	}
	if *only != "" && *only != "override" && *only != "buckets" {
		return c.misused("--only %q: want override or buckets", *only)
	}
	return f.withPlans(ctx, c, func(l *host.Limits, _ *manifest.Plans) error {
		done := resetView{User: user, App: *app}
		if *only != "buckets" {
			if done.Overrides, err = takeBack(ctx, l, *app, user); err != nil {
				return err
			}
		}
		if *only != "override" {
			if done.Buckets, err = l.Refill(ctx, *app, user); err != nil {
				return err
			}
		}
		if c.json {
			return writeJSON(c, done)
		}
		done.write(c.stdout, *only)
		return nil
	})
}

// takeBack ends the overrides that hold for a user in an app, and gives what
// they were.
func takeBack(ctx context.Context, l *host.Limits, app, user string) ([]overrideView, error) {
	all, err := l.Overrides(ctx, user)
	if err != nil {
		return nil, err
	}
	taken := []overrideView{}
	for _, o := range all {
		if o.App != "" && o.App != app {
			continue
		}
		if err := l.SetOverride(ctx, store.Override{App: o.App, User: o.User}); err != nil {
			return nil, err
		}
		taken = append(taken, overrideViewOf(o))
	}
	return taken, nil
}

// resetView is what reset did.
type resetView struct {
	User      string         `json:"user"`
	App       string         `json:"app"`
	Overrides []overrideView `json:"overrides,omitempty"` // those that were taken back
	Buckets   []string       `json:"buckets,omitempty"`   // those that are full now
}

func (v resetView) write(w io.Writer, only string) {
	if only != "buckets" && len(v.Overrides) == 0 {
		fmt.Fprintf(w, "%s has no override in the store %s\n", visible(v.User), inApp(v.App))
	}
	for _, o := range v.Overrides {
		fmt.Fprintf(w, "taken back: %s\n", o)
	}
	if only != "override" {
		fmt.Fprintf(w, "full %s: %s\n", inApp(v.App), strings.Join(v.Buckets, ", "))
	}
}
