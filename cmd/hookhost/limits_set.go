package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/store"
)

type setFlags struct {
	limitFlags
	plan, app, note, author string
	until                   string
	lasts                   span
}

func setOverride(ctx context.Context, c *command) error {
	var f setFlags
	f.declare(c)
	c.StringVar(&f.plan, "plan", "", "the `PLAN`, one of those in plans.toml")
	c.StringVar(&f.app, "app", "", "in this `APP` only (default: in every app)")
	c.StringVar(&f.until, "until", "", "up to this `TIME`, such as 2026-12-31T00:00:00Z")
	c.Var(&f.lasts, "for", "for so `LONG`, such as 2h or 7d")
	c.StringVar(&f.note, "note", "", "`WHY`, for those who come later")
	c.StringVar(&f.author, "author", "", "`WHO` does this (default: $USER)")
	user, err := c.parseUser("limits set USER --plan PLAN --note WHY [flags]", "Puts a user on a plan, by an override in the store. It wins over plans.toml and over\nclaims, and hosts that run see it within 2 seconds. One for an app wins over one for\nevery app. Without --until and --for it stands until hookhost limits reset.")
	if err != nil {
		return err
	}
	o, err := f.override(c, user, time.Now())
	if err != nil {
		return err
	}
	return f.with(ctx, c, func(l *host.Limits) error {
		if err := l.SetOverride(ctx, o); err != nil {
			return fmt.Errorf("plan %w", err)
		}
		if c.json {
			return writeJSON(c, overrideViewOf(o))
		}
		fmt.Fprintf(c.stdout, "%s: %s\nhosts that run see it within 2 seconds\n", visible(o.User), overrideViewOf(o))
		return sayOthers(ctx, c, l, o)
	})
}

// override is what the flags say.
func (f *setFlags) override(c *command, user string, now time.Time) (o store.Override, err error) {
	o = store.Override{App: f.app, User: user, Plan: f.plan, Author: cmp.Or(f.author, os.Getenv("USER")), Note: f.note}
	switch {
	case f.plan == "":
		return o, c.misused("no --plan")
	case strings.TrimSpace(f.note) == "":
		return o, c.misused("no --note: say why")
	case o.Author == "":
		return o, c.misused("no --author, and USER is not set")
	case f.until != "" && f.lasts != 0:
		return o, c.misused("--until and --for: want one of them")
	case f.until != "":
		if o.Until, err = time.Parse(time.RFC3339, f.until); err != nil {
			return o, c.misused("--until %q is no time: want one such as 2026-12-31T00:00:00Z", f.until)
		}
		if !o.Until.After(now) {
			return o, c.misused("--until %s is over", f.until)
		}
	case f.lasts != 0:
		o.Until = now.Add(time.Duration(f.lasts) + time.Second - 1).Truncate(time.Second) // rounded up
	}
	return o, nil
}

// sayOthers tells of the overrides that the user has beside a new one.
func sayOthers(ctx context.Context, c *command, l *host.Limits, o store.Override) error {
	all, err := l.Overrides(ctx, o.User)
	if err != nil {
		return err
	}
	for _, other := range all {
		switch {
		case other.App == o.App:
		case o.App == "":
			fmt.Fprintf(c.stdout, "another one wins where it holds: %s\n", overrideViewOf(other))
		default:
			fmt.Fprintf(c.stdout, "another one holds elsewhere: %s\n", overrideViewOf(other))
		}
	}
	return nil
}

// overrideView is an override of the store as it is shown.
type overrideView struct {
	User   string     `json:"user"`
	App    string     `json:"app,omitempty"` // empty is every app
	Plan   string     `json:"plan"`
	Author string     `json:"author,omitempty"`
	Note   string     `json:"note,omitempty"`
	Until  *time.Time `json:"until,omitempty"`
}

func overrideViewOf(o store.Override) overrideView {
	return overrideView{User: o.User, App: o.App, Plan: o.Plan, Author: o.Author, Note: o.Note, Until: moment(o.Until)}
}

// String is all but the user.
func (o overrideView) String() string {
	text := "plan " + o.Plan + " " + inApp(o.App)
	if o.Until != nil {
		text += " until " + o.Until.Format(time.RFC3339)
	}
	if o.Author != "" {
		text += ", by " + o.Author
	}
	if o.Note != "" {
		text += ": " + o.Note
	}
	return visible(text)
}
