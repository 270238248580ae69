package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/host"
)

var limitVerbs = []verb{
	{"show", "show the plan of a user, its numbers and what is left", showLimits},
	{"set", "put a user on another plan while hosts run", setOverride},
	{"reset", "make a user's buckets full, and take overrides back", resetLimits},
	{"top", "list the users with the most tokens a minute", topUsers},
	{"suggest", "suggest a plan by what users did", suggestPlan},
}

// limits runs the verb that stands behind it.
func limits(ctx context.Context, c *command) error {
	name := ""
	if len(c.args) > 0 {
		name, c.args = c.args[0], c.args[1:]
	}
	for _, v := range limitVerbs {
		if v.name == name {
			return v.run(ctx, c)
		}
	}
	switch name {
	case "help", "-h", "-help", "--help":
		limitsUsage(c.stdout)
		return nil
	case "":
	default:
		fmt.Fprintf(c.stderr, "hookhost: unknown command %q\n\n", "limits "+name)
	}
	limitsUsage(c.stderr)
	return errUsage
}

func limitsUsage(w io.Writer) {
	fmt.Fprint(w, "usage: hookhost limits COMMAND [flags]\n\nReads and changes the limits in the store of a manifest, while hosts run on it.\n\n")
	for _, v := range limitVerbs {
		fmt.Fprintf(w, "  %-7s %s\n", v.name, v.does)
	}
	fmt.Fprint(w, "\n`hookhost limits COMMAND --help` explains each.\n")
}

// limitFlags are those of the verbs that work on the store of a manifest.
type limitFlags struct{ manifest, env string }

func (f *limitFlags) declare(c *command) {
	c.StringVar(&f.manifest, "manifest", "hooks.toml", "the manifest, a `FILE`; its modules are not needed")
	c.StringVar(&f.env, "env", "", "lay hooks.`ENV`.toml over it")
	c.BoolVar(&c.json, "json", false, "write JSON, also of what is wrong with the manifest")
}

// with opens the limits, works with them and closes them.
func (f *limitFlags) with(ctx context.Context, c *command, work func(*host.Limits) error) error {
	log := slog.New(slog.NewTextHandler(c.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	l, err := host.OpenLimits(ctx, f.manifest, host.Options{Env: f.env, Log: log})
	if err != nil {
		return err
	}
	return errors.Join(work(l), l.Close(context.WithoutCancel(ctx)))
}

// withPlans is with for what goes by the plans.
func (f *limitFlags) withPlans(ctx context.Context, c *command, work func(*host.Limits, *manifest.Plans) error) error {
	return f.with(ctx, c, func(l *host.Limits) error {
		plans, err := l.Plans()
		if err != nil {
			return err
		}
		return work(l, plans)
	})
}

// parseUser is parse for a command line with a USER before, among or behind
// the flags.
func (c *command) parseUser(usageLine, about string) (user string, err error) {
	free, err := c.parseAround(usageLine, about)
	switch {
	case err != nil:
		return "", err
	case len(free) == 0:
		return "", c.misused("no USER")
	case len(free) > 1:
		return "", c.misused("unexpected argument %q", free[1])
	case free[0] == "":
		return "", c.misused("USER is empty")
	}
	return free[0], nil
}

// parseAround is parse for command lines with arguments among the flags. All
// behind -- are arguments.
func (c *command) parseAround(usageLine, about string) (free []string, err error) {
	for {
		if err := c.parse(usageLine, about); err != nil {
			return nil, err
		}
		if c.NArg() == 0 {
			return free, nil
		}
		if flags := len(c.args) - c.NArg(); flags > 0 && c.args[flags-1] == "--" {
			return append(free, c.Args()...), nil
		}
		free, c.args = append(free, c.Arg(0)), c.Args()[1:]
	}
}

// misused says what is wrong with the command line.
func (c *command) misused(format string, args ...any) error {
	fmt.Fprintf(c.stderr, "hookhost: "+format+"\n", args...)
	c.Usage()
	return errUsage
}

// span is a flag: a duration that can be written in days.
type span time.Duration

func (s *span) String() string {
	d := time.Duration(*s)
	if days := d / (24 * time.Hour); days > 0 && d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%dd", days)
	}
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

func (s *span) Set(text string) error {
	unit := time.Nanosecond
	number := text
	if days, is := strings.CutSuffix(text, "d"); is {
		unit, number = 24*time.Hour, days+"ns"
	}
	d, err := time.ParseDuration(number)
	if err != nil || d <= 0 || d > time.Duration(1<<63-1)/unit {
		return errors.New("want a time such as 5m, 36h or 7d")
	}
	*s = span(d * unit)
	return nil
}

// inApp says where something holds.
func inApp(app string) string {
	if app == "" {
		return "in every app"
	}
	return "in app " + visible(app)
}
