package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/redis"
)

func showUsage(ctx context.Context, c *command) error {
	var f limitFlags
	f.declare(c)
	app := c.String("app", "", "in this `APP` only (default: in every app)")
	var since span
	c.Var(&since, "since", "within this `TIME`, such as 7d (default: all that the store keeps)")
	free, err := c.parseAround("usage [USER] [flags]", "Shows for each user, app and plan how many model calls the store has on record and\nwhat they came to in tokens. A number that no call gave is unknown, which is not 0.\nOf each user the store keeps the newest 4,096, until 31 days after the last.")
	if err != nil {
		return err
	}
	user := ""
	switch {
	case len(free) > 1:
		return c.misused("unexpected argument %q", free[1])
	case len(free) == 1 && free[0] == "":
		return c.misused("USER is empty")
	case len(free) == 1:
		user = free[0]
	}
	return f.with(ctx, c, func(l *host.Limits) error {
		records, err := readMany(ctx, c, func(ctx context.Context) ([]store.Record, error) {
			return l.Records(ctx, whoseRecords(*app, user))
		})
		if err != nil {
			return fmt.Errorf("records: %w", err)
		}
		from := time.Time{}
		if since > 0 {
			from = time.Now().Add(-time.Duration(since))
		}
		spent := spentOf(records, user, from)
		if c.json {
			return writeJSON(c, spent)
		}
		writeSpent(c.stdout, spent)
		return nil
	})
}

// whoseRecords is the narrowest owner that has them.
func whoseRecords(app, user string) store.Owner {
	if app != "" && user != "" {
		return store.Owner{Kind: store.OwnerUser, App: app, User: user}
	}
	return everybody(app)
}

// spent is what the calls of a user in an app on a plan came to.
type spent struct {
	User string `json:"user"`
	App  string `json:"app"`
	Plan string `json:"plan"`
	sum
	Partial []string `json:"partial"`         // the numbers that some of the calls did not give
	Older   bool     `json:"older,omitempty"` // the user may have more calls, which the store did not keep
	records []store.Record
}

// spentOf adds up the records of a user, or of all if it is empty, from a time
// on.
func spentOf(records []store.Record, user string, from time.Time) []spent {
	type key struct{ user, app, plan string }
	groups := map[key][]store.Record{}
	kept := map[store.Owner][]store.Record{}
	for _, r := range records {
		owner := store.Owner{Kind: store.OwnerUser, App: r.App, User: r.User}
		kept[owner] = append(kept[owner], r)
		if (user == "" || r.User == user) && !r.Time.Before(from) {
			k := key{r.User, r.App, r.Plan}
			groups[k] = append(groups[k], r)
		}
	}
	sums := []spent{}
	for _, k := range slices.SortedFunc(maps.Keys(groups), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.user, b.user), cmp.Compare(a.app, b.app), cmp.Compare(a.plan, b.plan))
	}) {
		s := spent{User: k.user, App: k.app, Plan: k.plan, sum: sumOf(groups[k]), Partial: []string{}, records: groups[k]}
		all := kept[store.Owner{Kind: store.OwnerUser, App: k.app, User: k.user}]
		s.Older = len(all) >= redis.MaxRecords && !all[0].Time.Before(from)
		for _, kind := range kinds {
			if kind.partial(groups[k]) {
				s.Partial = append(s.Partial, kind.name)
			}
		}
		sums = append(sums, s)
	}
	return sums
}

// kind is one of the numbers of a model call.
type kind struct {
	name string
	of   func(store.Tokens) *int64
}

var kinds = []kind{
	{"prompt", func(t store.Tokens) *int64 { return t.Prompt }},
	{"cached", func(t store.Tokens) *int64 { return t.Cached }},
	{"candidates", func(t store.Tokens) *int64 { return t.Candidates }},
	{"thoughts", func(t store.Tokens) *int64 { return t.Thoughts }},
	{"tool_use", func(t store.Tokens) *int64 { return t.ToolUse }},
	{"total", func(t store.Tokens) *int64 { return t.Total }},
}

// partial reports whether some of the records have a number, and not all.
func (k kind) partial(records []store.Record) bool {
	known := 0
	for _, r := range records {
		if k.of(r.Tokens) != nil {
			known++
		}
	}
	return known > 0 && known < len(records)
}

// total is what the calls that say came to, in one of the numbers.
func (k kind) total(records []store.Record) string {
	var n *int64
	for _, r := range records {
		add(&n, k.of(r.Tokens))
	}
	switch {
	case n == nil:
		return "unknown"
	case k.partial(records):
		return strconv.FormatInt(*n, 10) + "+"
	}
	return strconv.FormatInt(*n, 10)
}

// partialSays is what the sign behind a total means.
const partialSays = "+ some of the calls did not say"

func writeSpent(w io.Writer, all []spent) {
	if len(all) == 0 {
		fmt.Fprintln(w, "no model call on record")
		return
	}
	head := []string{"user", "app", "plan", "calls"}
	for _, k := range kinds {
		head = append(head, k.name)
	}
	rows, partial, older, short := [][]string{head}, false, false, false
	for _, s := range all {
		row := []string{shortID(s.User), shortID(s.App), s.Plan, strconv.Itoa(s.Calls)}
		for _, k := range kinds {
			row = append(row, k.total(s.records))
		}
		rows, partial, older = append(rows, row), partial || len(s.Partial) > 0, older || s.Older
		short = short || shortens(s.User, s.App)
	}
	writeTable(w, rows)
	if short {
		fmt.Fprintln(w, shortSays)
	}
	if partial {
		fmt.Fprintln(w, partialSays)
	}
	if older {
		fmt.Fprintf(w, "users with %d calls may have more, which the store did not keep\n", redis.MaxRecords)
	}
}
