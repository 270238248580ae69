package demo

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
)

func TestEveryShapeRuns(t *testing.T) {
	for shape, want := range map[Shape][]string{
		LLM:        {"assistant: hello"},
		Transfer:   {"front: hello"},
		Sequential: {"first: hello", "second: hello"},
		Parallel:   {"left: hello", "right: hello"},
		Loop:       {"worker: hello", "worker: hello"},
		Custom:     {"assistant: hello"},
		Workflow:   {"first: hello", "second: hello"},
	} {
		t.Run(string(shape), func(t *testing.T) {
			m := &Model{Repeat: true, Replies: []Reply{{Text: "hello"}}}
			out := run(t, Tree{Shape: shape, Model: m, Iterations: 2}, Turn{Text: "hi"})
			require.NoError(t, out.Err())
			var got []string
			for _, ev := range out.Events {
				if text := Text(ev.Content); text != "" {
					got = append(got, ev.Author+": "+text)
				}
			}
			assert.ElementsMatch(t, want, got)
		})
	}
}

func TestEveryShapeHasItsName(t *testing.T) {
	for _, want := range Shapes {
		var got Shape
		require.NoError(t, got.UnmarshalText([]byte(want)))
		assert.Equal(t, want, got)
	}
	var got Shape
	require.EqualError(t, got.UnmarshalText([]byte("ring")),
		`unknown shape "ring": want llm, transfer, sequential, parallel, loop, custom, workflow`)
	_, err := Agent("ring", &Model{})
	require.EqualError(t, err, `demo: unknown shape "ring"`)
}

func TestTheFrontTransfers(t *testing.T) {
	m := &Model{Replies: []Reply{
		{Agent: "front", Calls: []Call{{Name: "transfer_to_agent", Args: map[string]any{"agent_name": "specialist"}}}},
		{Agent: "specialist", Text: "here I am"},
	}}
	out := run(t, Tree{Shape: Transfer, Model: m}, Turn{Text: "hi"})
	require.NoError(t, out.Err())
	assert.Equal(t, []string{"here I am"}, out.Texts())
}

func TestToolsKeepARecord(t *testing.T) {
	desk := new(Desk)
	m := &Model{Replies: []Reply{
		{Calls: []Call{
			{Name: "lookup", Args: map[string]any{"order": "A-1"}},
			{Name: "refund", Args: map[string]any{"order": "A-1", "amount": 5}},
			{Name: "ledger", Args: map[string]any{"order": "A-1"}},
			{Name: "crash", Args: map[string]any{"order": "A-1"}},
			{Name: "cancel_order", Args: map[string]any{"order": "A-1"}},
			{Name: "export", Args: map[string]any{"order": "A-1"}},
		}},
	}}
	out := run(t, Tree{Shape: LLM, Model: m, Tools: desk.Tools()}, Turn{Text: "hi"})
	require.NoError(t, out.Err())

	assert.Equal(t, []Order{{Order: "A-1"}}, desk.Lookups())
	assert.Equal(t, []Refund{{Order: "A-1", Amount: 5}}, desk.Refunds())
	assert.Equal(t, []Order{{Order: "A-1"}}, desk.Exports())
	assert.Empty(t, desk.Cancelled(), "no human said yes")
	results := map[string]map[string]any{}
	for _, ev := range out.Events {
		for _, p := range ev.Content.Parts {
			if p.FunctionResponse != nil {
				results[p.FunctionResponse.Name] = p.FunctionResponse.Response
			}
		}
	}
	assert.Equal(t, "ada@example.com", results["lookup"]["email"])
	assert.Equal(t, "refunded", results["refund"]["status"])
	assert.Equal(t, ErrLedgerDown.Error(), results["ledger"]["error"])
	assert.Contains(t, results["crash"]["error"], "index out of range")
	assert.Contains(t, results["cancel_order"]["error"], tool.ErrConfirmationRequired.Error())
	assert.NotContains(t, results, "export")
}

func TestABreakEndsTheRun(t *testing.T) {
	m := &Model{Replies: []Reply{{Chunks: []string{"a", "b", "c"}}}}
	out := run(t, Tree{Shape: LLM, Model: m}, Turn{Text: "hi", Stream: true, Each: func(*session.Event) bool { return false }})
	assert.Equal(t, []string{"a"}, out.Chunks())
	assert.Empty(t, out.Texts())
}

func TestEachLLMAgentMayBeChanged(t *testing.T) {
	m := &Model{Repeat: true, Replies: []Reply{{Text: "hello"}}}
	var names []string
	run(t, Tree{Shape: Sequential, Model: m, Each: func(c *llmagent.Config) {
		names = append(names, c.Name)
		c.Instruction = "Be brief."
	}}, Turn{Text: "hi"})

	assert.Equal(t, []string{"first", "second"}, names)
	for _, req := range m.Requests() {
		assert.Contains(t, Text(req.Config.SystemInstruction), "Be brief.")
	}
}

func run(t *testing.T, tree Tree, turn Turn) Outcome {
	t.Helper()
	root, err := tree.Agent()
	require.NoError(t, err)
	r, err := runner.New(runner.Config{AppName: "app", Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true})
	require.NoError(t, err)
	return Run(context.Background(), r, turn)
}
