// Bench measures what the limits cost on a real Redis, beside a peer that is
// measured in the same run, in turns. README.md says what each figure means.
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
)

// settings are what the command line says.
type settings struct {
	rounds int
	users  int
	runs   int
	guests string
}

// items are what can be measured, in the order of the report.
var items = []struct {
	name    string
	measure func(*lab, settings) []figure
}{
	{"turn", measureTurn},
	{"throughput", measureThroughput},
	{"size", measureSize},
	{"waiting", measureWaiting},
	{"peer", measurePeer},
}

func main() {
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
	only := flags.String("only", "", "measure these alone, of turn,throughput,size,waiting,peer")
	asJSON := flags.Bool("json", false, "print JSON, with the figures of every round")
	flags.IntVar(&s.rounds, "rounds", 9, "rounds, of which a figure is the median; waiting has 3 at most")
	flags.IntVar(&s.users, "users", 1_000_000, "users of the larger store in size")
	flags.IntVar(&s.runs, "runs", 10_000, "runs that wait at once in waiting")
	flags.StringVar(&s.guests, "guests", "../guests", "folder of the built guests")
	if flags.Parse(args) != nil {
		return 2
	}
	wanted, err := selection(*only)
	if err == nil && (s.rounds < 1 || s.users < smallStore || s.runs < 1 || flags.NArg() > 0) {
		err = fmt.Errorf("want at least 1 round, %d users and 1 run, and no other arguments", smallStore)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	all, measured := measure(ctx, s, wanted, stderr)
	if err := report(stdout, all, *asJSON); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	if !measured || slices.ContainsFunc(all, figure.missed) {
		return 1
	}
	return 0
}

func selection(only string) (map[string]bool, error) {
	wanted := map[string]bool{}
	for _, item := range items {
		wanted[item.name] = only == ""
	}
	if only != "" {
		for name := range strings.SplitSeq(only, ",") {
			if _, known := wanted[name]; !known {
				return nil, fmt.Errorf("nothing is called %q", name)
			}
			wanted[name] = true
		}
	}
	return wanted, nil
}

// measure measures what it can: one item that fails leaves the others.
func measure(ctx context.Context, s settings, wanted map[string]bool, stderr io.Writer) (all []figure, complete bool) {
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
		all = append(all, figures...)
	}
	return all, complete
}
