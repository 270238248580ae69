// Command hookhost runs, checks and tests chains of hooks for ADK agents.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // what was checked or run failed
	exitUsage  = 2 // the command line is wrong
)

// verb is one thing that hookhost does.
type verb struct {
	name, does string
	run        func(ctx context.Context, c *command) error
}

var verbs = []verb{
	{"run", "run turns of a demo agent through the chain", runTurns},
	{"plan", "show which stages run where, and what their failures do", showPlan},
	{"lint", "warn of what a manifest allows and nobody means", lint},
	{"inspect", "show what a module asks for, and what it does", inspect},
	{"pin", "write the modules' hashes into the manifest", pin},
	{"limits", "show and change users' limits while hosts run", limits},
	{"usage", "show what users' model calls came to", showUsage},
	{"test", "run scenario files against the chain", testScenarios},
	{"version", "show the version of hookhost and of Go", version},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// command is one call of a verb: its flags, still to be declared and parsed,
// and where it writes to.
type command struct {
	*flag.FlagSet
	args           []string
	stdout, stderr io.Writer
	json           bool // for programs: faults of a manifest go to stdout too
	warned         sync.Once
}

// errUsage is a command line that cannot be taken; its text has been written.
var errUsage = errors.New("usage")

// errFailed is a check that failed; its text has been written.
var errFailed = errors.New("failed")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		usage(stderr)
		return exitUsage
	}
	if args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		usage(stdout)
		return exitOK
	}
	for _, v := range verbs {
		if v.name == args[0] {
			return v.call(ctx, args[1:], stdout, stderr)
		}
	}
	fmt.Fprintf(stderr, "hookhost: unknown command %q\n\n", args[0])
	usage(stderr)
	return exitUsage
}

func (v verb) call(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c := &command{FlagSet: flag.NewFlagSet("hookhost "+v.name, flag.ContinueOnError), args: args, stdout: stdout, stderr: stderr}
	c.SetOutput(stderr)
	err := v.run(ctx, c)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.Is(err, errUsage):
		return exitUsage
	case errors.Is(err, errFailed):
		return exitFailed
	}
	if c.json {
		reportJSON(c, err)
	} else {
		report(stderr, err)
	}
	return exitFailed
}

// parse reads the flags. about is the first line of the help text, which is
// what was asked for and goes to stdout, or comes with an error.
func (c *command) parse(usageLine, about string) error {
	c.Usage = func() {}
	err := c.Parse(c.args)
	c.Usage = func() {
		fmt.Fprintf(c.Output(), "usage: hookhost %s\n\n%s\n", usageLine, about)
		if c.hasFlags() {
			fmt.Fprintln(c.Output())
		}
		c.PrintDefaults()
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		c.SetOutput(c.stdout)
		c.Usage()
		return err
	case err != nil:
		c.Usage()
		return errUsage
	}
	return nil
}

func (c *command) hasFlags() bool {
	has := false
	c.VisitAll(func(*flag.Flag) { has = true })
	return has
}

// compiling says which module a person waits for.
func (c *command) compiling(module string, bytes int) {
	fmt.Fprintf(c.stderr, "compiling %s (%s)\n", visible(module), size(uint64(bytes)))
}

// cacheWarning says why the next command compiles again, once for all hosts
// that this one starts.
func (c *command) cacheWarning(what string, err error) {
	c.warned.Do(func() { fmt.Fprintf(c.stderr, "hookhost: %s: %s\n", what, visible(err.Error())) })
}

// noArguments refuses what is left behind the flags.
func (c *command) noArguments() error {
	if c.NArg() == 0 {
		return nil
	}
	fmt.Fprintf(c.stderr, "hookhost: unexpected argument %q\n", c.Arg(0))
	c.Usage()
	return errUsage
}

func usage(w io.Writer) {
	fmt.Fprint(w, "hookhost runs a chain of sandboxed hooks around ADK agents.\n\nusage: hookhost COMMAND [flags]\n\n")
	for _, v := range verbs {
		fmt.Fprintf(w, "  %-7s %s\n", v.name, v.does)
	}
	fmt.Fprint(w, "\n`hookhost COMMAND --help` explains each. Exit codes: 0 ok, 1 failed, 2 wrong usage.\n")
}
