package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/store"
)

func topUsers(ctx context.Context, c *command) error {
	var f limitFlags
	f.declare(c)
	app := c.String("app", "", "of this `APP` only (default: of every app)")
	since := span(5 * time.Minute)
	c.Var(&since, "since", "those with a model call within this `TIME`, up to 8d")
	most := c.Int("n", 10, "at most so many users, `N`")
	if err := c.parse("limits top [flags]", "Lists the users with the most tokens in their newest minute with a model call, with\nthe turns of that minute. Minutes are those of the clock; the current one still grows."); err != nil {
		return err
	}
	if err := c.noArguments(); err != nil {
		return err
	}
	if *most < 1 {
		return c.misused("-n %d: want at least 1", *most)
	}
	if err := since.within(c, store.ActivityKept); err != nil {
		return err
	}
	return f.with(ctx, c, func(l *host.Limits) error {
		all, err := readMany(ctx, c, func(ctx context.Context) ([]store.Activity, error) {
			return l.Top(ctx, everybody(*app), time.Now().Add(-time.Duration(since)))
		})
		if err != nil {
			return fmt.Errorf("activity: %w", err)
		}
		users := []topUser{}
		for _, a := range all[:min(*most, len(all))] {
			users = append(users, topUser{User: a.User, App: a.App, Plan: a.Plan, Tokens: a.Last.Tokens, Turns: a.Last.Turns, Minute: a.Last.Start.UTC()})
		}
		switch {
		case c.json:
			return writeJSON(c, users)
		case len(users) == 0:
			fmt.Fprintf(c.stdout, "nobody had a model call in the last %s\n", &since)
		default:
			rows, short := [][]string{{"user", "app", "plan", "tokens", "turns", "in the minute of"}}, false
			for _, u := range users {
				short = short || shortens(u.User, u.App)
				rows = append(rows, []string{shortID(u.User), shortID(u.App), u.Plan, strconv.FormatInt(u.Tokens, 10), strconv.FormatInt(u.Turns, 10), u.Minute.Format(time.RFC3339)})
			}
			writeTable(c.stdout, rows)
			if short {
				fmt.Fprintln(c.stdout, shortSays)
			}
		}
		return nil
	})
}

// within refuses a time before which the store remembers nothing.
func (s *span) within(c *command, kept time.Duration) error {
	if time.Duration(*s) > kept {
		longest := span(kept)
		return c.misused("--since %s: the store keeps %s", s, &longest)
	}
	return nil
}

// topUser is what one user did in a minute.
type topUser struct {
	User   string    `json:"user"`
	App    string    `json:"app"`
	Plan   string    `json:"plan"`
	Tokens int64     `json:"tokens"`
	Turns  int64     `json:"turns"`
	Minute time.Time `json:"minute"`
}

// everybody owns what all users of an app did, or of every app.
func everybody(app string) store.Owner {
	if app == "" {
		return store.Owner{Kind: store.OwnerGlobal}
	}
	return store.Owner{Kind: store.OwnerApp, App: app}
}
