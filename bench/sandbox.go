package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/bench/work"
	"github.com/hookhost/hookhost/chain"
)

// measureLimits compares guests with all limits with the same guests without
// any: the call alone, on an event that is there already.
func measureLimits(l *lab, s settings) []figure {
	var waited, all []figure
	for _, language := range languages {
		for _, task := range work.Tasks {
			limited, free := newStage(l, stageConfig(l, s, language, task.Name)), newPlain(l, s, language, task.Name)
			agree(l, task, language+" with limits", doneBy(l, limited))
			agree(l, task, language+" without limits", doneBy(l, free))
			ev := newEvent(l)(task.Input)
			ours, peer := mustCall(l, limited, ev), mustCall(l, free, ev)
			what := fmt.Sprintf("limits: %s in %s", workName(task), language)
			waited = append(waited, against(s, spaced, ours, peer).ratio(what, "µs", "without").atMost(1.4).aim(1.25))
			all = append(all, against(s, inARow, ours, peer).ratio(what+", calls in a row", "µs", "without"))
		}
	}
	return append(waited, all...)
}

// workName says what is done to how much.
func workName(task work.Task) string {
	return fmt.Sprintf("%s of %d bytes", task.Name, len(task.Input))
}

// measureHook is a hook that no stage asks for.
func measureHook(l *lab, s settings) []figure {
	none, err := chain.New("bench", 0)
	require.NoError(l, err)
	run := chain.NewLedger(none, chain.WallClock{}, chain.Tracer{}).Begin(abi.Event{App: app, User: "user"})
	op, _ := run.Open(abi.OpModel, abi.Event{Agent: "assistant"})
	ev := &abi.Event{Usage: abi.Usage{Mask: abi.HasTotal, Total: 7}}
	dispatch := func() { op.Dispatch(l.ctx, abi.OnModelChunk, ev) }
	var ns, allocations []float64
	for range s.rounds {
		ns = append(ns, 1000*inARow(dispatch, s.budget))
		allocations = append(allocations, testing.AllocsPerRun(1000, dispatch))
	}
	return []figure{
		alone("hook without subscribers", "ns", ns).aim(100),
		alone("hook without subscribers: allocations", "count", allocations).atMost(0),
	}
}

// measureNative compares stages with the native Go function, from the text to
// what becomes of it.
func measureNative(l *lab, s settings) []figure {
	var figures []figure
	aims := map[string]map[string]float64{
		"verdict": {"go": 8, "rust": 4, "c": 4},
		"mask":    {"go": 8, "rust": 2.5, "c": 2.5},
	}
	for _, name := range []string{"verdict", "mask"} {
		task := mustFind(l, name)
		runners := []func(){mustDo(l, task, native(task))}
		for _, language := range languages {
			do := doneBy(l, newStage(l, stageConfig(l, s, language, task.Name)))
			agree(l, task, language, do)
			runners = append(runners, mustDo(l, task, do))
		}
		measured := takeTurns(s, spaced, runners...)
		for i, language := range languages {
			what := fmt.Sprintf("stage: %s in %s", workName(task), language)
			figures = append(figures, rounds{measured[i+1], measured[0]}.ratio(what, "µs", "native function").aim(aims[name][language]))
		}
	}
	return figures
}

func mustFind(l *lab, name string) work.Task {
	task, found := work.Find(name)
	require.True(l, found, name)
	return task
}

// measurePeers compares a stage with others who do the same in Go, and with
// wazero's own limit in all languages.
func measurePeers(l *lab, s settings) []figure {
	peers := []struct {
		name string
		open func(l *lab, s settings, task string) doer
	}{
		{"extism, timeout on", newExtism},
		{"knqyf263/go-plugin, no limits", newKnqyf},
		{"hashicorp/go-plugin, process", newHashicorp},
		{"gopher-lua, with context", newLua},
		{"wazero, CloseOnContextDone", func(l *lab, s settings, task string) doer { return doneBy(l, newTimed(l, s, "go", task)) }},
	}
	var figures []figure
	for _, name := range []string{"verdict", "mask"} {
		task := mustFind(l, name)
		runners := []func(){mustDo(l, task, doneBy(l, newStage(l, stageConfig(l, s, "go", task.Name))))}
		for _, peer := range peers {
			do := peer.open(l, s, task.Name)
			agree(l, task, peer.name, do)
			runners = append(runners, mustDo(l, task, do))
		}
		for _, p := range []struct {
			pace
			how string
		}{{spaced, ""}, {inARow, ", calls in a row"}} {
			measured := takeTurns(s, p.pace, runners...)
			for i, peer := range peers {
				what := fmt.Sprintf("peer: %s in go%s", workName(task), p.how)
				figures = append(figures, rounds{measured[0], measured[i+1]}.ratio(what, "µs", peer.name))
			}
		}
	}
	for _, language := range languages[1:] {
		for _, name := range []string{"verdict", "mask"} {
			task := mustFind(l, name)
			ours, peer := newStage(l, stageConfig(l, s, language, name)), newTimed(l, s, language, name)
			r := against(s, spaced, mustDo(l, task, doneBy(l, ours)), mustDo(l, task, doneBy(l, peer)))
			figures = append(figures, r.ratio(fmt.Sprintf("peer: %s in %s", workName(task), language), "µs", "wazero, CloseOnContextDone"))
		}
	}
	return figures
}

// between is what one takes more than another.
func between(ours, peer float64) float64 { return ours - peer }
