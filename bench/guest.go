package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/subject"
	"github.com/hookhost/hookhost/bench/work"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/host/wasm"
	memorystore "github.com/hookhost/hookhost/store/memory"
)

// languages have a guest in bench/guests that can do all the work.
var languages = []string{"go", "rust", "c"}

// callTimeout bounds one call, here and with every peer that can do that. It
// is hookhost's default.
const callTimeout = 250 * time.Millisecond

// modulePath is where a guest of bench/guests is.
func (s settings) modulePath(guest string) string {
	return filepath.Join(s.own, guest, "guest.wasm")
}

func (s settings) module(l *lab, guest string) []byte {
	module, err := os.ReadFile(s.modulePath(guest))
	require.NoError(l, err, "the guests have to be built first: make bench-guests")
	return module
}

// caller is a guest that is called at a hook: a stage, or what does its work
// without being one.
type caller interface {
	Call(ctx context.Context, ev *abi.Event) (abi.Verdict, error)
}

// stageConfig is a stage as a manifest without any settings makes it.
func stageConfig(l *lab, s settings, guest, task string) wasm.Config {
	return wasm.Config{Name: guest, Module: s.module(l, guest), Config: configOf(task), Timeout: callTimeout}
}

func configOf(task string) []hostfn.Setting { return []hostfn.Setting{{Key: "task", Text: task}} }

// newStage loads a guest with all limits.
func newStage(l *lab, cfg wasm.Config) *wasm.Stage { return loadStage(l, cfg, quiet) }

func loadStage(l *lab, cfg wasm.Config, log *slog.Logger) *wasm.Stage {
	services := &hostfn.Services{Store: memorystore.New(chain.WallClock{}), Log: log}
	stage, err := wasm.New(wasm.Options{CacheDir: l.cacheDir("sandbox"), Log: log}).Load(l.ctx, cfg, services)
	require.NoError(l, err)
	l.Cleanup(func() {
		if err := stage.Close(l.ctx); err != nil {
			l.Errorf("closing the stage: %v", err)
		}
	})
	return stage
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// said is a subject with one text.
type said struct {
	Text string `json:"text"`
}

func newSubject(text string) abi.Subject {
	return subject.New(&said{text}, func(value any, emit func(abi.Leaf)) {
		emit(abi.Leaf{Kind: abi.LeafText, Role: abi.RoleUser, Pointer: "/text", Text: value.(*said).Text})
	})
}

// newEvent makes the events of a model call with this text.
func newEvent(l *lab) func(text string) *abi.Event {
	none, err := chain.New("bench", 0)
	require.NoError(l, err)
	run := chain.NewLedger(none, chain.WallClock{}, chain.Tracer{}).Begin(abi.Event{App: app, User: "user"})
	op, open := run.Open(abi.OpModel, abi.Event{Agent: "assistant", Model: "model"})
	require.True(l, open)
	return func(text string) *abi.Event {
		return &abi.Event{
			Hook: abi.BeforeModel, Of: abi.OpModel, Op: op, Run: run.Root(), App: app, User: "user", Agent: "assistant",
			Subject: newSubject(text),
		}
	}
}

// doer does a task on a text. What it gives is the same for all who do it.
type doer func(text string) (string, error)

// native is the Go function itself.
func native(task work.Task) doer {
	return func(text string) (string, error) { return task.Do(text), nil }
}

// doneBy has a guest do the task, from the text to what becomes of it.
func doneBy(l *lab, c caller) doer {
	event := newEvent(l)
	return func(text string) (string, error) {
		ev := event(text)
		v, err := c.Call(l.ctx, ev)
		if err != nil {
			return "", err
		}
		return outcome(ev.Subject, v)
	}
}

// outcome is what a verdict makes of a text, in the words of package work.
func outcome(s abi.Subject, v abi.Verdict) (string, error) {
	switch v.Kind {
	case abi.Continue:
		return work.Allow, nil
	case abi.Amend:
		amended, err := s.Apply(v.Edits)
		if err != nil {
			return "", err
		}
		return amended.Value().(*said).Text, nil
	case abi.Respond:
		if v.Answer.Refusal != nil {
			return "refuse " + v.Answer.Refusal.Code, nil
		}
		return v.Answer.Text, nil
	}
	return "", fmt.Errorf("the guest came to %s", v.Kind)
}

// agree checks that a doer does what the native function does, on what is
// measured and on the rest.
func agree(l *lab, task work.Task, who string, do doer) {
	for _, text := range append([]string{task.Input}, task.Other...) {
		got, err := do(text)
		require.NoError(l, err, "%s: %s", who, task.Name)
		want := task.Do(text)
		if task.Name == "mask" && want == text && got == work.Allow {
			continue // a guest goes on where there is nothing to mask
		}
		require.Equal(l, want, got, "%s: %s of %q", who, task.Name, text)
	}
}

// mustDo is a task on what is measured, again and again.
func mustDo(l *lab, task work.Task, do doer) func() {
	return func() {
		if _, err := do(task.Input); err != nil {
			require.NoError(l, err)
		}
	}
}

// mustCall is a call of a guest alone, on an event that is there.
func mustCall(l *lab, c caller, ev *abi.Event) func() {
	return func() {
		if _, err := c.Call(l.ctx, ev); err != nil {
			require.NoError(l, err)
		}
	}
}
