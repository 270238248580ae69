package main

import (
	"runtime"
	"time"
)

// A pace says how the calls of a round follow each other, and gives the
// microseconds of one.
type pace func(do func(), budget time.Duration) float64

// pause is between two calls that do not follow each other at once: long
// enough for what goes on behind a call to be over.
const pause = 400 * time.Microsecond

// spaced is the median of calls with a pause before each: what the caller of
// a host waits for that is not busy.
func spaced(do func(), budget time.Duration) float64 {
	n := max(5, int(budget/pause))
	times := make([]float64, n)
	for i := range times {
		rest()
		start := time.Now()
		do()
		times[i] = microseconds(time.Since(start))
	}
	return median(times)
}

// rest keeps the processor awake, and lets others have it.
func rest() {
	for end := time.Now().Add(pause); time.Now().Before(end); {
		runtime.Gosched()
	}
}

// inARow is the mean of calls one after the other: all that they cost, also
// behind them.
func inARow(do func(), budget time.Duration) float64 {
	for n := 1; ; {
		start := time.Now()
		for range n {
			do()
		}
		took := time.Since(start)
		if took >= budget/2 {
			return microseconds(took) / float64(n)
		}
		n = max(2*n, int(float64(n)*float64(budget)/float64(took+1))/2)
	}
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// takeTurns measures in turns: one figure of each in every round. Who begins
// changes, so that nobody always runs after the same one.
func takeTurns(s settings, p pace, all ...func()) [][]float64 {
	for _, do := range all {
		p(do, s.budget/4) // fills pools, caches and tables
	}
	figures := make([][]float64, len(all))
	for round := range s.rounds {
		runtime.GC()
		for i := range all {
			at := (round + i) % len(all)
			figures[at] = append(figures[at], p(all[at], s.budget))
		}
	}
	return figures
}

// against measures two in turns.
func against(s settings, p pace, ours, peer func()) rounds {
	figures := takeTurns(s, p, ours, peer)
	return rounds{ours: figures[0], peer: figures[1]}
}
