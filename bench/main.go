// Bench measures what the limits cost on a real Redis, and what the sandbox
// costs, beside peers that are measured in the same run, in turns. README.md
// says what each figure means.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// settings are what the command line says.
type settings struct {
	rounds    int
	users     int
	runs      int
	guests    string
	own       string        // folder of the guests of this module
	budget    time.Duration // of one figure of one round
	instances int           // of a full pool
}

// items are what can be measured, in the order of the report. What stands
// before a slash names all of its parts.
var items = []struct {
	name    string
	measure func(*lab, settings) []figure
}{
	{"turn", measureTurn},
	{"throughput", measureThroughput},
	{"size", measureSize},
	{"waiting", measureWaiting},
	{"peer", measurePeer},
	{"sandbox/limits", measureLimits},
	{"sandbox/hook", measureHook},
	{"sandbox/native", measureNative},
	{"sandbox/peers", measurePeers},
	{"sandbox/reset", measureReset},
	{"sandbox/messages", measureMessages},
	{"sandbox/pool", measurePool},
	{"sandbox/start", measureStart},
	{"sandbox/turns", measureTurns},
}

func main() {
	if runChild() {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run gives 0 if all goals were met, 1 if one was missed or not measured, 2
// if the command line means nothing.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var s settings
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("only", "", "measure these alone, of "+strings.Join(names(), ","))
	asJSON := flags.Bool("json", false, "print JSON, with the figures of every round")
	flags.IntVar(&s.rounds, "rounds", 9, "rounds, of which a figure is the median; waiting and sandbox/pool have 3 at most")
	flags.IntVar(&s.users, "users", 1_000_000, "users of the larger store in size")
	flags.IntVar(&s.runs, "runs", 10_000, "runs that wait at once in waiting")
	flags.StringVar(&s.guests, "guests", "../guests", "folder of the built guests")
	flags.StringVar(&s.own, "own", "guests", "folder of the built guests of the bench")
	flags.DurationVar(&s.budget, "budget", 20*time.Millisecond, "time for one figure of one round in sandbox")
	flags.IntVar(&s.instances, "instances", 1000, "instances of the pool in sandbox/pool")
	results := flags.String("results", "", "file in which the tables of what is measured are replaced")
	if flags.Parse(args) != nil {
		return 2
	}
	wanted, err := selection(*only)
	if err == nil && (s.rounds < 1 || s.users < smallStore || s.runs < 1 || s.budget <= 0 || s.instances < 1 || flags.NArg() > 0) {
		err = fmt.Errorf("want at least 1 round, %d users, 1 run, 1 instance and some time, and no other arguments", smallStore)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	parts, measured := measure(ctx, s, wanted, stderr)
	var all []figure
	for _, p := range parts {
		all = append(all, p.figures...)
	}
	err = report(stdout, all, *asJSON)
	if err == nil && *results != "" {
		err = record(*results, s, parts)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	if !measured || slices.ContainsFunc(all, figure.missed) {
		return 1
	}
	return 0
}

// names are what can be measured alone: items, and the items of a kind.
func names() []string {
	var names []string
	for _, item := range items {
		names = append(names, item.name)
	}
	return names
}

// part is an item that was measured.
type part struct {
	name    string
	figures []figure
}

func selection(only string) (map[string]bool, error) {
	wanted := map[string]bool{}
	if only == "" {
		for _, name := range names() {
			wanted[name] = true
		}
		return wanted, nil
	}
	for name := range strings.SplitSeq(only, ",") {
		known := false
		for _, item := range names() {
			if item == name || strings.HasPrefix(item, name+"/") {
				wanted[item], known = true, true
			}
		}
		if !known {
			return nil, fmt.Errorf("nothing is called %q", name)
		}
	}
	return wanted, nil
}

// measure measures what it can: one item that fails leaves the others.
func measure(ctx context.Context, s settings, wanted map[string]bool, stderr io.Writer) (all []part, complete bool) {
	complete = true
	for _, item := range items {
		if !wanted[item.name] {
			continue
		}
		fmt.Fprintf(stderr, "measuring %s\n", item.name)
		figures, err := attempt(ctx, func(l *lab) []figure { return item.measure(l, s) })
		if err != nil {
			fmt.Fprintf(stderr, "%s: %v\n", item.name, err)
			complete = false
		}
		all = append(all, part{item.name, figures})
	}
	return all, complete
}
