package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// lab stands in for a test, which the servers of redistest are made for: it
// ends them, and a failure ends the item that is measured.
type lab struct {
	testing.TB // nil: nothing calls what is not below
	ctx        context.Context
	failure    error
	cleanups   []func()
	cache      string // of compiled modules
}

// failed is what ends an item.
type failed struct{ *lab }

// attempt measures in a lab and cleans up.
func attempt(ctx context.Context, do func(*lab) []figure) (figures []figure, err error) {
	l := &lab{ctx: ctx}
	defer func() {
		for i := len(l.cleanups) - 1; i >= 0; i-- {
			l.cleanups[i]()
		}
		err = l.failure
	}()
	defer func() {
		if r := recover(); r != nil && r != any(failed{l}) {
			panic(r)
		}
	}()
	return do(l), nil
}

func (l *lab) Helper()          {}
func (l *lab) Name() string     { return "bench" }
func (l *lab) Cleanup(f func()) { l.cleanups = append(l.cleanups, f) }
func (l *lab) FailNow()         { panic(failed{l}) }

func (l *lab) Errorf(format string, args ...any) {
	l.failure = errors.Join(l.failure, fmt.Errorf(format, args...))
}

func (l *lab) Fatalf(format string, args ...any) {
	l.Errorf(format, args...)
	l.FailNow()
}

// Skipf fails: a figure that was not measured is not one that was met.
func (l *lab) Skipf(format string, args ...any) { l.Fatalf(format, args...) }

// cacheDir keeps compiled modules, for the next run if the environment says
// where, and else for this item.
func (l *lab) cacheDir(of string) string {
	if kept := os.Getenv("HOOKHOST_TEST_CACHE"); kept != "" {
		return filepath.Join(kept, of)
	}
	if l.cache == "" {
		l.cache = l.TempDir()
	}
	return filepath.Join(l.cache, of)
}

func (l *lab) TempDir() string {
	dir, err := os.MkdirTemp("", "hookhost-bench-")
	require.NoError(l, err)
	l.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
