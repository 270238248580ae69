// What hookhost makes of ADK's facts: the chain behind the plugin, with native
// stages, on the real runner.
package adk_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host/adk"
	"github.com/hookhost/hookhost/host/demo"
)

// does is what a native stage does at one hook.
type does func(ev *abi.Event) (abi.Verdict, error)

// native is a stage made of functions.
type native map[abi.Hook]does

func (n native) Hooks() abi.HookSet {
	var set abi.HookSet
	for h := range n {
		set |= abi.SetOf(h)
	}
	return set
}

func (n native) Call(_ context.Context, ev *abi.Event) (abi.Verdict, error) { return n[ev.Hook](ev) }

func (n native) Close(context.Context) error { return nil }

// refuses refuses at the hook, once for each of its calls.
func refuses(text string) does {
	return func(*abi.Event) (abi.Verdict, error) {
		refusal := &abi.Refusal{Code: "test.no", Text: text, Retry: 3 * time.Second}
		return abi.Verdict{Kind: abi.Respond, Answer: abi.Answer{Refusal: refusal}}, nil
	}
}

// swaps amends every leaf that is the text.
func swaps(from, to string) does {
	return func(ev *abi.Event) (abi.Verdict, error) {
		var edits []abi.Edit
		for _, l := range ev.Subject.Leaves() {
			if l.Text == from && !l.ReadOnly {
				edits = append(edits, abi.Edit{Op: abi.EditSplice, Pointer: l.Pointer, End: len(l.Text), Text: to})
			}
		}
		if len(edits) == 0 {
			return abi.Verdict{Kind: abi.Continue}, nil
		}
		return abi.Verdict{Kind: abi.Amend, Edits: edits}, nil
	}
}

// hears is a stage that listens at these hooks and does nothing.
func hears(hooks ...abi.Hook) native {
	n := native{}
	for _, h := range hooks {
		n[h] = continues
	}
	return n
}

func continues(*abi.Event) (abi.Verdict, error) { return abi.Verdict{Kind: abi.Continue}, nil }

func panics(*abi.Event) (abi.Verdict, error) { panic("4111 1111 1111 1111") }

// chained is a probe with hookhost in front of the recorder.
type chained struct {
	*probe
	ledger *chain.Ledger
	traced func(chain.Step) // besides
	clock  faultyClock

	mu    sync.Mutex
	steps []chain.Step
}

// faultyClock panics when it is read next after it was broken.
type faultyClock struct {
	chain.WallClock
	broken atomic.Bool
}

func (c *faultyClock) Now() time.Time {
	if c.broken.Swap(false) {
		panic(card)
	}
	return c.WallClock.Now()
}

// newChained has a chain of one stage, which fails closed.
func newChained(t *testing.T, shape demo.Shape, stage chain.Stage, replies ...demo.Reply) *chained {
	return newChainOf(t, shape, []chain.Entry{{Spec: spec("test", chain.Closed), Stage: stage}}, replies...)
}

func spec(name string, onError chain.Policy) chain.Spec {
	return chain.Spec{
		Name: name, Role: chain.Responder, Mode: chain.Enforce, Timeout: time.Second,
		OnError: onError, OnLoadError: chain.Closed, OnStore: chain.Closed, Refusal: "not available",
	}
}

func newChainOf(t *testing.T, shape demo.Shape, entries []chain.Entry, replies ...demo.Reply) *chained {
	c := &chained{probe: newProbe(t, shape, replies...)}
	built, err := chain.New("v1", 0, entries...)
	require.NoError(t, err)
	c.ledger = chain.NewLedger(built, &c.clock, chain.Tracer{Step: func(s chain.Step) {
		c.mu.Lock()
		c.steps = append(c.steps, s)
		c.mu.Unlock()
		if c.traced != nil {
			c.traced(s)
		}
	}})
	plugin, err := adk.New(c.ledger, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	c.front = append(c.front, plugin)
	t.Cleanup(func() {
		runs, ops := c.ledger.Open()
		assert.Zero(t, runs, "runs left open")
		assert.Zero(t, ops, "operations left open")
		c.ledger.Close(context.Background())
	})
	return c
}

// lines are what the stage was called for: hook, verdict unless it went on,
// and what belongs to it.
func (c *chained) lines() []string { return slices.Concat(c.perOperation()...) }

// perOperation are the lines of each operation, in the order they began.
func (c *chained) perOperation() [][]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var groups [][]string
	index := map[string]int{}
	for _, s := range c.steps {
		i, known := index[s.Op]
		if !known {
			i = len(groups)
			index[s.Op], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], line(s))
	}
	return groups
}

func line(s chain.Step) string {
	words := []string{s.Hook.String()}
	if s.Cause == 0 && s.Verdict != abi.Continue {
		words = append(words, s.Verdict.String())
	}
	return strings.Join(append(words, s.Details()...), " ")
}

// storedTexts are the texts in the session that are not the user's.
func (c *chained) storedTexts() []string {
	var out []string
	for _, ev := range c.events() {
		if text := demo.Text(ev.Content); ev.Author != "user" && text != "" {
			out = append(out, text)
		}
	}
	return out
}

// everyRoad runs a test for each shape of agents, with and without a stream.
func everyRoad(t *testing.T, test func(t *testing.T, shape demo.Shape, stream bool)) {
	onRoads(t, demo.Shapes, test)
}

func onRoads(t *testing.T, shapes []demo.Shape, test func(t *testing.T, shape demo.Shape, stream bool)) {
	for _, shape := range shapes {
		for _, stream := range []bool{false, true} {
			name := string(shape)
			if stream {
				name += "/sse"
			}
			t.Run(name, func(t *testing.T) { test(t, shape, stream) })
		}
	}
}
