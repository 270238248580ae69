package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	sizeVariable = "HOOKHOST_BENCH_SIZE"
	ownVariable  = "HOOKHOST_BENCH_OWN"
)

// pooled is what a process with a full pool takes, in bytes beyond what it
// takes with a single instance.
type pooled struct {
	Busy float64 // while all are in a call
	Idle float64 // after it
}

// measurePool fills a pool with Go instances in a process of its own.
func measurePool(l *lab, s settings) []figure {
	var busy, idle []float64
	for range min(s.rounds, 3) {
		cmd := childCommand(l, childPool, sizeVariable+"="+strconv.Itoa(s.instances), ownVariable+"="+s.own)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		require.NoError(l, err, "%s", stderr.String())
		var p pooled
		require.NoError(l, json.Unmarshal(out, &p), "%s", out)
		busy, idle = append(busy, p.Busy/1e6), append(idle, p.Idle/1e6)
	}
	what := fmt.Sprintf("pool: memory of %d Go instances", s.instances)
	return []figure{
		alone(what, "MB", idle).atMost(300).aim(200),
		alone(what+", all in a call", "MB", busy),
	}
}

// fillPool has a pool of Go instances that are in a call at once, and prints
// what they take.
func fillPool() {
	figures, err := attempt(context.Background(), func(l *lab) []figure {
		n, err := strconv.Atoi(os.Getenv(sizeVariable))
		require.NoError(l, err)
		out, err := json.Marshal(poolOf(l, n))
		require.NoError(l, err)
		fmt.Println(string(out))
		return nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err, figures)
		os.Exit(1)
	}
}

func poolOf(l *lab, n int) pooled {
	cfg := stageConfig(l, settings{own: os.Getenv(ownVariable)}, "go", "log")
	cfg.Pool, cfg.Timeout, cfg.Output = n, time.Minute, true
	gate := &gate{}
	stage := loadStage(l, cfg, slog.New(gate))
	ev := newEvent(l)("a line for the log")
	mustCall(l, stage, ev)()
	one := processMemory(l)

	gate.wait.Add(n)
	gate.held = make(chan struct{})
	var calls sync.WaitGroup
	for range n {
		calls.Go(mustCall(l, stage, ev))
	}
	gate.wait.Wait()
	busy := processMemory(l)
	close(gate.held)
	calls.Wait()
	time.Sleep(500 * time.Millisecond) // what is put back behind the calls
	idle := processMemory(l)
	return pooled{Busy: busy - one, Idle: idle - one}
}

// gate is a log that holds up who writes to it.
type gate struct {
	wait sync.WaitGroup
	held chan struct{} // nil holds up nobody
}

func (g *gate) Handle(context.Context, slog.Record) error {
	if g.held != nil {
		g.wait.Done()
		<-g.held
	}
	return nil
}

func (g *gate) Enabled(context.Context, slog.Level) bool { return true }
func (g *gate) WithAttrs([]slog.Attr) slog.Handler       { return g }
func (g *gate) WithGroup(string) slog.Handler            { return g }

// processMemory is the bytes of this process alone, and its share of what it
// has in common with others.
func processMemory(l *lab) float64 {
	debug.FreeOSMemory()
	rollup, err := os.ReadFile("/proc/self/smaps_rollup")
	require.NoError(l, err)
	for line := range strings.Lines(string(rollup)) {
		fields := strings.Fields(line)
		if fields[0] == "Pss:" {
			kb, err := strconv.ParseFloat(fields[1], 64)
			require.NoError(l, err)
			return kb * 1024
		}
	}
	require.Fail(l, "no Pss in smaps_rollup")
	return 0
}
