package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/bench/work"
)

func TestMain(m *testing.M) {
	if runChild() {
		return
	}
	os.Exit(m.Run())
}

// tiny measures as little as there is.
var tiny = settings{guests: "../guests", own: "guests", rounds: 1, budget: time.Millisecond, instances: 3}

// Each item of the sandbox can be measured. What the figures are on a machine
// that is busy says nothing.
func TestSandboxItems(t *testing.T) {
	for _, item := range items {
		if !strings.HasPrefix(item.name, "sandbox/") || item.name == "sandbox/start" {
			continue
		}
		t.Run(item.name, func(t *testing.T) {
			figures, err := attempt(t.Context(), func(l *lab) []figure { return item.measure(l, tiny) })
			require.NoError(t, err)
			require.NotEmpty(t, figures)
			seen := map[string]bool{}
			for _, f := range figures {
				key := f.Name + f.PeerName
				assert.False(t, seen[key], "%s is there twice", key)
				seen[key] = true
				assert.NotEmpty(t, f.OursRaw, f.Name)
				assert.Equal(t, f.PeerName != "", len(f.PeerRaw) == len(f.OursRaw), f.Name)
			}
		})
	}
}

// sandbox/start begins with an empty cache, which is not quick. This does not.
func TestAProcessStarts(t *testing.T) {
	_, err := attempt(t.Context(), func(l *lab) []figure {
		process, opened := start(l, writeManifest(l, threeStages(l, tiny), plenty), l.cacheDir("start"))
		assert.Positive(t, opened)
		assert.Greater(t, process, opened)
		return nil
	})
	require.NoError(t, err)
}

func TestWhoDoesSomethingElseIsFound(t *testing.T) {
	for _, task := range work.Tasks {
		right := native(task)
		wrong := func(text string) (string, error) {
			if text == task.Other[len(task.Other)-1] {
				return "something else", nil
			}
			return right(text)
		}
		for who, do := range map[string]doer{"right": right, "wrong": wrong} {
			_, err := attempt(t.Context(), func(l *lab) []figure {
				agree(l, task, who, do)
				return nil
			})
			assert.Equal(t, who == "wrong", err != nil, "%s: %s", who, task.Name)
		}
	}
}

func TestOutcomes(t *testing.T) {
	text := newSubject("a card")
	for want, v := range map[string]abi.Verdict{
		work.Allow: {Kind: abi.Continue},
		"a [card]": {Kind: abi.Amend, Edits: []abi.Edit{{Op: abi.EditSplice, Pointer: "/text", Start: 2, End: 6, Text: work.Card}}},
		"said":     {Kind: abi.Respond, Answer: abi.Answer{Text: "said"}},
		work.Deny:  {Kind: abi.Respond, Answer: abi.Answer{Refusal: &abi.Refusal{Code: "phrase"}}},
	} {
		got, err := outcome(text, v)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := outcome(text, abi.Verdict{Kind: abi.Fail})
	require.Error(t, err)
}

func TestPaces(t *testing.T) {
	nap := func() { time.Sleep(2 * time.Millisecond) }
	assert.GreaterOrEqual(t, inARow(nap, time.Millisecond), 2000.0)
	assert.GreaterOrEqual(t, spaced(nap, time.Millisecond), 2000.0)
	assert.Less(t, spaced(func() {}, time.Millisecond), 300.0, "the pause is no part of it")

	var order []int
	as := func(who int) func() { return func() { order = append(order, who) } }
	once := func(do func(), _ time.Duration) float64 { do(); return float64(len(order)) }
	figures := takeTurns(settings{rounds: 3}, once, as(0), as(1))
	assert.Equal(t, []int{0, 1, 0, 1, 1, 0, 0, 1}, order, "once to warm up, then in turns, and each begins a round")
	assert.Equal(t, [][]float64{{3, 6, 7}, {4, 5, 8}}, figures)
}

func TestASelectionNamesPartsOrAllOfThem(t *testing.T) {
	for only, want := range map[string]int{"": len(items), "sandbox": len(items) - 5, "sandbox/hook": 1, "turn": 1, "turn,sandbox/hook": 2} {
		wanted, err := selection(only)
		require.NoError(t, err)
		assert.Len(t, wanted, want, only)
	}
	for _, only := range []string{"sand", "sandbox/", "turn,"} {
		_, err := selection(only)
		require.Error(t, err, only)
	}
}

func TestResultsOfWhatWasNotMeasuredStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "RESULTS.md")
	one, two := alone("one", "µs", []float64{1}), alone("two", "µs", []float64{2}).atMost(1).aim(0.5)
	require.NoError(t, record(path, tiny, []part{{"peer", []figure{one}}, {"turn", []figure{one}}, {"size", nil}}))
	require.NoError(t, record(path, tiny, []part{{"turn", []figure{two}}}))
	written, err := os.ReadFile(path)
	require.NoError(t, err)
	text := string(written)
	assert.True(t, strings.HasPrefix(text, resultsHead))
	assert.Equal(t, 1, strings.Count(text, "## turn\n"))
	assert.Less(t, strings.Index(text, "## turn\n"), strings.Index(text, "## peer\n"), "in the order of the report")
	assert.NotContains(t, text, "## size")
	assert.Contains(t, text, "| one | µs | 1 |  | ours = 1 | none |")
	assert.Contains(t, text, "| two | µs | 2 |  | ours = 2 | <= 1 MISSED, aim 0.5 not reached |")
	assert.Equal(t, 2, strings.Count(text, "wazero "), "each part says with what it was measured")
	require.NoError(t, record(path, tiny, []part{{"turn", []figure{two}}}))
	again, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Len(t, again, len(written))
}
