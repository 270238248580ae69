package chain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
)

// verdictTable is the contract: what may be answered where, beside continue
// and fail, which may be everywhere.
var verdictTable = map[abi.Hook][]abi.Kind{
	abi.OnUserMessage: {abi.Amend},
	abi.BeforeRun:     {abi.Respond, abi.Wait},
	abi.AfterRun:      {},
	abi.OnEvent:       {abi.Amend},
	abi.BeforeAgent:   {abi.Respond, abi.Wait},
	abi.AfterAgent:    {abi.Respond},
	abi.BeforeModel:   {abi.Amend, abi.Respond, abi.Wait},
	abi.OnModelChunk:  {abi.Amend},
	abi.AfterModel:    {abi.Amend, abi.Respond},
	abi.OnModelError:  {abi.Respond},
	abi.BeforeTool:    {abi.Amend, abi.Respond, abi.Wait},
	abi.AfterTool:     {abi.Amend, abi.Respond},
	abi.OnToolError:   {abi.Respond},
	abi.Close:         {},
}

var roleTable = map[chain.Role][]abi.Kind{
	chain.Observer:    {abi.Continue, abi.Fail},
	chain.Transformer: {abi.Continue, abi.Fail, abi.Amend},
	chain.Responder:   {abi.Continue, abi.Fail, abi.Amend, abi.Respond, abi.Wait},
}

func contains(kinds []abi.Kind, k abi.Kind) bool {
	for _, x := range kinds {
		if x == k {
			return true
		}
	}
	return false
}

func TestVerdictTable(t *testing.T) {
	all := map[abi.Kind]verdict{
		0:            gives(abi.Verdict{}),
		abi.Continue: continues,
		abi.Amend:    appends("!"),
		abi.Respond:  responds("answer"),
		abi.Wait:     waits(time.Second),
		abi.Fail:     gives(abi.Verdict{Kind: abi.Fail}),
		abi.Fail + 1: gives(abi.Verdict{Kind: abi.Fail + 1}),
	}
	assert.Len(t, verdictTable, len(abi.Hooks()), "every hook is in the table")
	for h, here := range verdictTable {
		for role, can := range roleTable {
			for kind, verdict := range all {
				t.Run(h.String()+" "+role.String()+" "+kind.String(), func(t *testing.T) {
					hooks := []abi.Hook{h}
					if h == abi.Close {
						hooks = append(hooks, abi.BeforeModel) // it has to have entered
					}
					s := newStage("s", role, chain.Open).hears(hooks...).at(h, verdict)
					if kind == abi.Amend && (h == abi.AfterRun || h == abi.Close) {
						s.at(h, gives(abi.Verdict{Kind: abi.Amend})) // without a value to amend
					}
					w := chainOf(t, s)
					out := w.at(h, "value")

					step := w.trace.last()
					if h == abi.AfterRun || h == abi.Close {
						step = lastAt(w, h)
					}
					allowed := contains(can, kind) && (kind == abi.Continue || kind == abi.Fail || contains(here, kind))
					switch {
					case kind == abi.Fail:
						assert.Equal(t, chain.CauseFail, step.Cause)
						assert.Zero(t, step.Verdict)
					case allowed:
						assert.Zero(t, step.Cause, "%v", step.Err)
						assert.Equal(t, kind, step.Verdict)
					default:
						assert.Equal(t, chain.CauseBadVerdict, step.Cause)
						assert.ErrorIs(t, step.Err, chain.ErrVerdict)
						assert.Zero(t, step.Verdict)
					}
					changed, answered := "", ""
					if allowed && kind == abi.Amend {
						changed = "value!"
					}
					if allowed && kind == abi.Respond {
						answered = "answer"
					}
					assert.Equal(t, changed, textOf(out.Subject), "the amended value")
					assert.Equal(t, answered, textOf(out.Answer), "the answer")
					assert.Equal(t, allowed && kind == abi.Wait, len(w.clock.sleeps) == 1, "the wait")
				})
			}
		}
	}
}

func lastAt(w *world, h abi.Hook) (last chain.Step) {
	for _, s := range w.trace.steps {
		if s.Hook == h {
			last = s
		}
	}
	return last
}

func TestVerdictsOutOfRange(t *testing.T) {
	for name, v := range map[string]abi.Verdict{
		"a wait of nothing":       {Kind: abi.Wait},
		"a wait into the past":    {Kind: abi.Wait, Wait: -time.Second},
		"a wait over the longest": {Kind: abi.Wait, Wait: abi.MaxWait + time.Millisecond},
		"an answer of no use":     {Kind: abi.Respond, Answer: abi.Answer{JSON: []byte(`[]`)}},
		"an edit of nothing":      {Kind: abi.Amend, Edits: []abi.Edit{{Op: abi.EditRemove, Pointer: "/gone"}}},
		"a hold elsewhere":        {Kind: abi.Continue, Holds: []abi.Hold{{Pointer: "/content/parts/0/text", Bytes: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := chainOf(t, responder("s").onError(chain.Open).at(abi.BeforeModel, gives(v)))
			out := w.at(abi.BeforeModel, "value")
			assert.Equal(t, chain.CauseBadVerdict, w.trace.last().Cause)
			assert.Empty(t, w.clock.sleeps)
			assert.Nil(t, out.Subject)
			assert.Nil(t, out.Answer)
		})
	}
}

func TestAnObserverCanNeitherHoldNorEditAChunk(t *testing.T) {
	sneaks := gives(abi.Verdict{Kind: abi.Continue, Edits: []abi.Edit{{Op: abi.EditSplice, Pointer: "/content/parts/0/text", Text: "x"}}})
	holds := gives(abi.Verdict{Kind: abi.Continue, Holds: []abi.Hold{{Pointer: "/content/parts/0/text", Bytes: 1}}})
	for name, c := range map[string]struct {
		s     *stage
		cause chain.Cause
	}{
		"edits that come with a continue are not applied": {observer("s").at(abi.OnModelChunk, sneaks), 0},
		"not by a transformer either":                     {transformer("s").at(abi.OnModelChunk, sneaks), 0},
		"a hold by an observer is a bad verdict":          {observer("s").at(abi.OnModelChunk, holds), chain.CauseBadVerdict},
	} {
		w := chainOf(t, c.s)
		out := w.at(abi.OnModelChunk, "value")
		assert.Equal(t, c.cause, w.trace.last().Cause, name)
		assert.Nil(t, out.Subject, name)
	}
}
