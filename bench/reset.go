package main

import (
	"fmt"

	"github.com/hookhost/hookhost/host/wasm"
)

// measureReset compares stages that put their instances back after each call
// with stages that do not. With one instance and calls in a row the next call
// waits for it; with a pause before each call it is done behind them.
func measureReset(l *lab, s settings) []figure {
	const peer, as = "isolation none", "ours - peer"
	must := map[string]float64{"go": 150, "rust": 30, "c": 30}
	var on, off []figure
	for _, language := range languages {
		for _, name := range []string{"verdict", "mask"} {
			task := mustFind(l, name)
			open := func(shared bool) *wasm.Stage {
				cfg := stageConfig(l, s, language, name)
				cfg.Pool, cfg.Shared = 1, shared
				return newStage(l, cfg)
			}
			isolated, shared := open(false), open(true)
			agree(l, task, language+" with isolation", doneBy(l, isolated))
			ev := newEvent(l)(task.Input)
			ours, theirs := mustCall(l, isolated, ev), mustCall(l, shared, ev)
			what := fmt.Sprintf("reset after %s in %s", workName(task), language)
			on = append(on, against(s, inARow, ours, theirs).judge(what+", on the latency path", "µs", peer, as, between).
				atMost(must[language]).aim(must[language]/2))
			off = append(off, against(s, spaced, ours, theirs).judge(what+", behind the calls", "µs", peer, as, between))
		}
	}
	return append(on, off...)
}
