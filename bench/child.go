package main

import (
	"os"
	"os/exec"

	"github.com/stretchr/testify/require"
)

// childVariable says what this program is, where another one of it has
// started it.
const childVariable = "HOOKHOST_BENCH_CHILD"

const (
	childHashicorp = "hashicorp"
	childStart     = "start"
	childPool      = "pool"
)

var children = map[string]func(){
	childHashicorp: serveHashicorp,
	childStart:     startHost,
	childPool:      fillPool,
}

// runChild does what a parent wants of this process, and reports whether there
// is one.
func runChild() bool {
	do, is := children[os.Getenv(childVariable)]
	if is {
		do()
	}
	return is
}

// childCommand starts this program as one of the children.
func childCommand(l *lab, kind string, env ...string) *exec.Cmd {
	self, err := os.Executable()
	require.NoError(l, err)
	cmd := exec.CommandContext(l.ctx, self)
	cmd.Env = append(append(os.Environ(), childVariable+"="+kind), env...)
	return cmd
}
