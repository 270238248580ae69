package chaintest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
)

// kind is a stage that a scenario can put beside the shipped ones, with a
// behaviour that can be said in a line.
type kind struct {
	role   string   // unless the scenario gives another one
	config []string // its keys, all of them texts
	make   func(config map[string]string) chain.Stage
}

var kinds = map[string]kind{
	"recorder": {"observer", nil, newObserver},
	"cache":    {"responder", []string{"when", "answer"}, newCache},
	"cite":     {"transformer", []string{"text"}, newCite},
	"boom":     {"transformer", nil, newBoom},
	"refuse":   {"responder", []string{"code", "text", "retry"}, newRefuse},
}

// native is a stage written in Go.
type native struct {
	hooks abi.HookSet
	call  func(*abi.Event) (abi.Verdict, error)
}

func (n native) Hooks() abi.HookSet                                         { return n.hooks }
func (n native) Call(_ context.Context, ev *abi.Event) (abi.Verdict, error) { return n.call(ev) }
func (n native) Close(context.Context) error                                { return nil }

func goOn(*abi.Event) (abi.Verdict, error) { return abi.Verdict{Kind: abi.Continue}, nil }

// newObserver looks on, at every hook.
func newObserver(map[string]string) chain.Stage { return native{abi.AllHooks, goOn} }

// newCache answers a model call whose last user text contains `when` with the
// text `answer`.
func newCache(config map[string]string) chain.Stage {
	return native{abi.SetOf(abi.BeforeModel), func(ev *abi.Event) (abi.Verdict, error) {
		said := ""
		for _, leaf := range ev.Subject.Leaves() {
			if leaf.Kind == abi.LeafText && leaf.Role == abi.RoleUser {
				said = leaf.Text
			}
		}
		if !strings.Contains(said, config["when"]) {
			return goOn(ev)
		}
		return abi.Verdict{Kind: abi.Respond, Answer: abi.Answer{Text: config["answer"]}}, nil
	}}
}

// newCite appends `text` to the last text of a final response.
func newCite(config map[string]string) chain.Stage {
	return native{abi.SetOf(abi.AfterModel), func(ev *abi.Event) (abi.Verdict, error) {
		leaves := ev.Subject.Leaves()
		for i := len(leaves) - 1; i >= 0; i-- {
			leaf := leaves[i]
			if leaf.Kind == abi.LeafText && leaf.Text != "" {
				end := len(leaf.Text)
				edit := abi.Edit{Op: abi.EditSplice, Pointer: leaf.Pointer, Start: end, End: end, Text: config["text"]}
				return abi.Verdict{Kind: abi.Amend, Edits: []abi.Edit{edit}}, nil
			}
		}
		return goOn(ev)
	}}
}

// newBoom panics with all that it was given, at every hook.
func newBoom(map[string]string) chain.Stage {
	return native{abi.AllHooks, func(ev *abi.Event) (abi.Verdict, error) {
		var given []string
		if ev.Subject != nil {
			for _, leaf := range ev.Subject.Leaves() {
				given = append(given, leaf.Text)
			}
		}
		panic("boom: " + strings.Join(given, " "))
	}}
}

// newRefuse refuses, wherever a stage can, with `code`, `text` and, if there is
// one, `retry`.
func newRefuse(config map[string]string) chain.Stage {
	var hooks abi.HookSet
	for _, h := range abi.Hooks() {
		if abi.Allowed(h, abi.Respond) {
			hooks |= abi.SetOf(h)
		}
	}
	retry, _ := time.ParseDuration(config["retry"]) // checked with the file
	refusal := &abi.Refusal{Code: config["code"], Text: config["text"], Retry: retry}
	return native{hooks, func(*abi.Event) (abi.Verdict, error) {
		return abi.Verdict{Kind: abi.Respond, Answer: abi.Answer{Refusal: refusal}}, nil
	}}
}

// checkStage checks a stage that the scenario brings. What it says about the
// others is the manifest's to judge.
func (f *file) checkStage(d *decoder, name string, values map[string]any) {
	at := []string{"stage", name}
	v, is := values["kind"]
	if !is {
		return
	}
	k, known := kinds[text(v)]
	if !known {
		d.blame(below(at, "kind"), "no such kind of test stage: want %s", strings.Join(sorted(kinds), ", "))
		return
	}
	config, _ := values["config"].(map[string]any)
	for key, v := range config {
		at := below(below(at, "config"), key)
		if _, is := v.(string); !is {
			d.faults = append(d.faults, d.doc.Mismatch(at, "a text", v))
		}
		if !slices.Contains(k.config, key) {
			d.faults = append(d.faults, d.doc.UnknownKey(at, k.config))
		}
		if _, err := time.ParseDuration(text(v)); key == "retry" && err != nil {
			d.blame(at, "%q is no duration", text(v))
		}
	}
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
