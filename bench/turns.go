package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/bench/work"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/demo"
)

// threeStages is the chain that ships. What fails is read by the user here, so
// that no turn goes past a stage.
func threeStages(l *lab, s settings) string {
	return fmt.Sprintf(threeManifest, shipped(l, s, "meter"), shipped(l, s, "ratelimit"), shipped(l, s, "redact"))
}

const threeManifest = `
version = 1
order = ["meter", "ratelimit", "redact"]
[store]
url = "memory://"
namespace = "bench"
[limits]
plans = "plans.toml"
[stage.meter]
module = %q
role = "observer"
on_error = "closed"
grants = ["usage:write"]
[stage.ratelimit]
module = %q
role = "responder"
on_error = "closed"
grants = ["limit:turn", "limit:tokens", "limit:runs"]
[stage.redact]
module = %q
role = "transformer"
on_error = "closed"
`

// kindsOfTurn are what is measured through the chain that ships.
func kindsOfTurn() []kindOfTurn {
	chunks := make([]string, 20)
	for i := range chunks {
		chunks[i] = fmt.Sprintf("This is piece %d of it, which says more. ", i)
	}
	lookup := func(order string) *genai.FunctionCall {
		return &genai.FunctionCall{Name: "lookup", Args: map[string]any{"order": order}}
	}
	const reply = "The card 4111 1111 1111 1111 of jo@example.com was charged once; your parcel comes on Friday."
	const masked = "The card [CARD] of [EMAIL] was charged once; your parcel comes on Friday."
	return []kindOfTurn{
		{name: "text turn", says: []string{reply}, want: masked},
		{name: "SSE turn of 20 chunks", says: chunks, stream: true},
		{name: "turn with two tool calls", says: []string{reply}, want: masked, calls: []*genai.FunctionCall{lookup("A-1"), lookup("A-2")}},
	}
}

type kindOfTurn struct {
	name   string
	says   []string
	stream bool
	calls  []*genai.FunctionCall
	want   string // what the user reads with the chain; empty for what the model said
}

// open makes turns of this kind behind plugins.
func (k kindOfTurn) open(l *lab, plugins ...*plugin.Plugin) *conversations {
	var tools []tool.Tool
	if k.calls != nil {
		tools = (&demo.Desk{}).Tools()
	}
	c := newConversations(l, &speaker{text: k.says, calls: k.calls}, tools, plugins...)
	c.stream = k.stream
	return c
}

func (k kindOfTurn) said() string {
	whole := ""
	for _, piece := range k.says {
		whole += piece
	}
	return whole
}

const asked = "Where is my parcel, and why was my card charged twice?"

// measureTurns compares turns with a chain and without any plugin.
func measureTurns(l *lab, s settings) []figure {
	var figures []figure
	for _, k := range kindsOfTurn() {
		h := openManifest(l, writeManifest(l, threeStages(l, s), plenty), host.Options{})
		want := k.want
		if want == "" {
			want = k.said()
		}
		figures = append(figures, compareTurns(l, s, "turns: "+k.name+", three stages", "no plugin",
			side{k.open(l, h.Plugin()), want, h}, side{k.open(l), k.said(), nil}, between, "ours - peer")...)
	}
	return append(figures, append(measureMask(l, s), measureNoOps(l, s)...)...)
}

// side is one of two whose turns are compared.
type side struct {
	*conversations
	want string
	host *host.Host // what it put off belongs to its turns
}

func (s side) take() {
	require.Equal(s, []string{s.want}, s.turn(asked))
	if s.host != nil {
		require.NoError(s, s.host.Drain(s.ctx))
	}
}

// compareTurns gives the latency of a turn, spaced, and what turns in a row
// use of the processors.
func compareTurns(l *lab, s settings, name, peerName string, ours, peer side, of func(ours, peer float64) float64, as string) []figure {
	turnOf := func(one side) func() { return func() { require.Equal(l, []string{one.want}, one.turn(asked)) } }
	latency := against(s, spaced, turnOf(ours), turnOf(peer))
	used := against(s, processors, ours.take, peer.take)
	return []figure{
		latency.judge(name, "µs", peerName, as, of),
		used.judge(name+", processor time", "µs", peerName, as, of),
	}
}

// processors is the mean processor time of calls in a row, what goes on beside
// them included.
func processors(do func(), budget time.Duration) float64 {
	n := 0
	begin, used := time.Now(), processorTime()
	for time.Since(begin) < budget {
		do()
		n++
	}
	return microseconds(processorTime()-used) / float64(n)
}

// measureMask compares one stage that masks cards with a plain ADK plugin that
// does the same.
func measureMask(l *lab, s settings) []figure {
	k := kindOfTurn{says: []string{mustFind(l, "mask").Input}}
	want := work.Mask(k.said())
	native := beside(l, "native", nil, func(_ agent.Context, r *model.LLMResponse, _ error) (*model.LLMResponse, error) {
		if r == nil || r.Content == nil {
			return nil, nil
		}
		for _, part := range r.Content.Parts {
			part.Text = work.Mask(part.Text)
		}
		return nil, nil
	})
	module, err := filepath.Abs(s.modulePath("go"))
	require.NoError(l, err)
	h := openManifest(l, writeManifest(l, fmt.Sprintf(maskManifest, module), plenty), host.Options{})
	return compareTurns(l, s, "turns: mask of 4096 bytes in go", "native ADK plugin",
		side{k.open(l, h.Plugin()), want, h}, side{k.open(l, native), want, nil}, between, "ours - peer")
}

const maskManifest = `
version = 1
order = ["mask"]
[store]
url = "memory://"
namespace = "bench"
[limits]
plans = "plans.toml"
[stage.mask]
module = %q
role = "transformer"
hooks = ["after_model"]
config = { task = "mask" }
`

// noOp is a stage in Go that goes on at every hook.
type noOp struct{}

func (noOp) Hooks() abi.HookSet { return abi.AllHooks }
func (noOp) Call(context.Context, *abi.Event) (abi.Verdict, error) {
	return abi.Verdict{Kind: abi.Continue}, nil
}
func (noOp) Close(context.Context) error { return nil }

// measureNoOps measures the chain and its ledger alone, with three stages that
// do nothing, on the hooks of a text turn; and the same stages behind ADK.
func measureNoOps(l *lab, s settings) []figure {
	turn := ledgerTurn(l)
	var took, allocations []float64
	for range s.rounds {
		took = append(took, inARow(turn, s.budget))
		allocations = append(allocations, testing.AllocsPerRun(100, turn))
	}
	k := kindsOfTurn()[0]
	names := []string{"one", "two", "three"}
	native := map[string]chain.Stage{}
	for _, name := range names {
		native[name] = noOp{}
	}
	h := openManifest(l, writeManifest(l, noOpManifest, plenty), host.Options{Native: native})
	figures := []figure{
		alone("turns: chain and ledger, three no-op stages", "µs", took).aim(25),
		alone("turns: chain and ledger, allocations", "count", allocations).aim(40),
	}
	ours, peer := side{k.open(l, h.Plugin()), k.said(), h}, side{k.open(l), k.said(), nil}
	figures = append(figures, compareTurns(l, s, "turns: text turn, three no-op stages", "no plugin", ours, peer, between, "ours - peer")...)
	var counted rounds
	for range s.rounds {
		counted.add(allocationsOf(ours.take), allocationsOf(peer.take))
	}
	return append(figures, counted.judge("turns: text turn, three no-op stages, allocations", "count", "no plugin", "ours - peer", between))
}

func allocationsOf(do func()) float64 {
	runtime.GC()
	return testing.AllocsPerRun(20, do)
}

// ledgerTurn runs the hooks of a text turn, as the adapter does for ADK.
func ledgerTurn(l *lab) func() {
	var entries []chain.Entry
	for _, name := range []string{"one", "two", "three"} {
		entries = append(entries, chain.Entry{
			Spec: chain.Spec{
				Name: name, Role: chain.Responder, Mode: chain.Enforce, Timeout: callTimeout,
				OnError: chain.Closed, OnLoadError: chain.Closed, OnStore: chain.Closed,
			},
			Stage: noOp{},
		})
	}
	built, err := chain.New("bench", 0, entries...)
	require.NoError(l, err)
	ledger := chain.NewLedger(built, chain.WallClock{}, chain.Tracer{})
	question, answer := newSubject("Where is my parcel?"), newSubject("It comes on Friday.")
	hook := func(op *chain.Op, h abi.Hook, subject abi.Subject) {
		out := op.Dispatch(l.ctx, h, &abi.Event{Subject: subject})
		if out.Answer != nil || out.Denial != nil {
			require.Fail(l, "a stage that does nothing answered")
		}
	}
	return func() {
		run := ledger.Begin(abi.Event{App: app, User: "user", Session: "session", Invocation: "invocation"})
		root := run.Root()
		hook(root, abi.OnUserMessage, question)
		hook(root, abi.BeforeRun, nil)
		agentOp, _ := run.Open(abi.OpAgent, abi.Event{Agent: "assistant"})
		hook(agentOp, abi.BeforeAgent, nil)
		modelOp, _ := run.Open(abi.OpModel, abi.Event{Agent: "assistant", Model: "model"})
		hook(modelOp, abi.BeforeModel, question)
		hook(modelOp, abi.AfterModel, answer)
		hook(root, abi.OnEvent, answer)
		hook(agentOp, abi.AfterAgent, nil)
		run.Finish(l.ctx, false)
		if runs, ops := ledger.Open(); runs+ops != 0 {
			require.Fail(l, "the turn is not over")
		}
	}
}

const noOpManifest = `
version = 1
order = ["one", "two", "three"]
[store]
url = "memory://"
namespace = "bench"
[limits]
plans = "plans.toml"
[stage.one]
role = "responder"
[stage.two]
role = "responder"
[stage.three]
role = "responder"
`
