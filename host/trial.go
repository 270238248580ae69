package host

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/subject"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host/wasm"
)

// Trial is how a module ran, once at every hook that it asks for, each in a
// run of its own.
type Trial struct {
	Hooks  abi.HookSet
	Visits []Visit
}

// Visit is one call of a module at a hook.
type Visit struct {
	chain.Step
	Fuel   int64  // a measure of the instructions: the same for the same call, whatever the machine does
	Memory uint64 // bytes of the guest's memory behind it
}

// try runs a stage and closes it.
func (h *Host) try(ctx context.Context, spec chain.Spec, stage *wasm.Stage) (*Trial, error) {
	spec.Apps, spec.Agents, spec.Tools, spec.Models = nil, nil, nil, nil // the events are of none that is meant
	t := &Trial{Hooks: stage.Hooks()}
	observed := &wasm.Observed{Stage: stage}
	only, err := chain.New("trial", 0, chain.Entry{Spec: spec, Stage: observed})
	if err != nil {
		return nil, errors.Join(err, stage.Close(ctx))
	}
	visits := make(map[abi.Hook]Visit)
	ledger := chain.NewLedger(only, impatient{}, chain.Tracer{Step: func(s chain.Step) {
		visits[s.Hook] = Visit{s, observed.Fuel, observed.Memory}
	}})
	for _, hook := range abi.Hooks() {
		if !only.Wants(hook) {
			continue
		}
		clear(visits)
		visit(ctx, ledger, hook)
		if v, called := visits[hook]; called {
			t.Visits = append(t.Visits, v)
		}
	}
	return t, ledger.Close(ctx).Retire(ctx)
}

// impatient is a clock that nobody waits on.
type impatient struct{ chain.WallClock }

func (impatient) Sleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// visit comes to a hook in a run of its own, through that of its before-hook
// where it closes something.
func visit(ctx context.Context, ledger *chain.Ledger, hook abi.Hook) {
	run := ledger.Begin(abi.Event{App: "trial", User: "ada", Session: "s-1", Invocation: "i-1"})
	defer run.Finish(ctx, false)
	kind, before := hook.Operation(), map[abi.Hook]abi.Hook{
		abi.AfterRun: abi.BeforeRun, abi.AfterAgent: abi.BeforeAgent, abi.OnModelChunk: abi.BeforeModel, abi.AfterModel: abi.BeforeModel,
		abi.OnModelError: abi.BeforeModel, abi.AfterTool: abi.BeforeTool, abi.OnToolError: abi.BeforeTool, abi.Close: abi.BeforeModel,
	}[hook]
	if hook == abi.Close {
		kind = abi.OpModel
	}
	op := run.Root()
	if kind != abi.OpRun {
		about := abi.Event{Agent: "assistant"}
		switch kind {
		case abi.OpModel:
			about.Model = "model"
		case abi.OpTool:
			about.Tool, about.CallID = "refund", "c-1"
		}
		op, _ = run.Open(kind, about) // the run is not over
	}
	if before != 0 {
		op.Dispatch(ctx, before, event(before))
	}
	switch hook {
	case abi.AfterRun: // Finish comes to it
	case abi.Close:
		op.End(ctx, abi.ReasonEnded)
	default:
		op.Dispatch(ctx, hook, event(hook))
	}
}

// event is a small one of a hook, shaped like ADK's own.
func event(hook abi.Hook) *abi.Event {
	words := func(role, text string) map[string]any {
		return map[string]any{"role": role, "parts": []any{map[string]any{"text": text}}}
	}
	asked, answered := words("user", "Can I get a refund for order A-77?"), words("model", "It is on its way.")
	ev := &abi.Event{Usage: abi.Usage{Mask: abi.HasPrompt | abi.HasCandidates | abi.HasTotal, Prompt: 12, Candidates: 6, Total: 18}}
	if hook != abi.AfterModel {
		ev.Usage = abi.Usage{}
	}
	value := map[abi.Hook]map[string]any{
		abi.OnUserMessage: asked,
		abi.OnEvent:       {"author": "assistant", "content": answered},
		abi.BeforeModel:   {"model": "model", "contents": []any{asked}},
		abi.OnModelChunk:  {"content": answered, "partial": true},
		abi.AfterModel:    {"content": answered},
		abi.OnModelError:  {"error": "unavailable"},
		abi.BeforeTool:    {"order": "A-77", "amount": 12.5},
		abi.AfterTool:     {"status": "refunded"},
		abi.OnToolError:   {"error": "unavailable"},
	}[hook]
	if value != nil {
		ev.Subject = document(value, kindOf(hook))
	}
	if hook == abi.OnModelChunk {
		ev.Flags = abi.Partial
	}
	if abi.Allowed(hook, abi.Respond) {
		ev.Decode = func(a abi.Answer) (abi.Subject, error) {
			return document(words("model", a.Text), abi.LeafText), nil
		}
	}
	return ev
}

func kindOf(hook abi.Hook) abi.LeafKind {
	switch hook {
	case abi.BeforeTool:
		return abi.LeafArgument
	case abi.AfterTool:
		return abi.LeafResult
	case abi.OnModelError, abi.OnToolError:
		return abi.LeafError
	}
	return abi.LeafText
}

// document is a subject with a leaf for each text of a content, or for all that
// stands in a value of another kind.
func document(value map[string]any, kind abi.LeafKind) abi.Subject {
	return subject.New(value, func(v any, emit func(abi.Leaf)) {
		subject.Scalars(v, "", func(pointer, text string, number bool) {
			if kind == abi.LeafText && !strings.HasSuffix(pointer, "/text") {
				return
			}
			emit(abi.Leaf{Kind: kind, Pointer: pointer, Text: text, Number: number, ReadOnly: kind == abi.LeafError})
		})
	})
}
