package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var halfAndTwice = rounds{ours: []float64{1, 4, 3}, peer: []float64{2, 2, 3}}

func TestAFigureIsTheMedianOfItsRounds(t *testing.T) {
	f := halfAndTwice.ratio("x", "count", "peer")
	assert.InDelta(t, 3, f.Ours, 0)
	assert.InDelta(t, 2, f.Peer, 0)
	assert.InDelta(t, 1, f.Judged, 0, "of 0.5, 2 and 1, not 3 / 2")
	assert.InDelta(t, 2.5, median([]float64{4, 1, 3, 2}), 0)
}

func TestAGoalIsMetOrMissed(t *testing.T) {
	f := halfAndTwice.ratio("x", "count", "peer")
	assert.False(t, f.missed(), "without a goal")
	for goal, missed := range map[float64]bool{0.9: true, 1: false, 1.1: false} {
		assert.Equal(t, missed, f.atMost(goal).missed(), "at most %g", goal)
	}
	for goal, missed := range map[float64]bool{0.9: false, 1: false, 1.1: true} {
		assert.Equal(t, missed, f.atLeast(goal).missed(), "at least %g", goal)
	}
}

func TestTheReportHasTheRawFiguresAndTheGoal(t *testing.T) {
	all := []figure{halfAndTwice.ratio("x", "count", "peer").atLeast(1.5), alone("y", "bytes", []float64{1234.5})}
	var text bytes.Buffer
	require.NoError(t, report(&text, all, false))
	lines := strings.Split(text.String(), "\n")
	assert.Equal(t, []string{"x", "count", "3", "2", "peer", "ours", "/", "peer", "=", "1", ">=", "1.5", "MISSED"}, strings.Fields(lines[1]))
	assert.Equal(t, []string{"y", "bytes", "1234", "-", "ours", "=", "1234", "none"}, strings.Fields(lines[2]))

	var data bytes.Buffer
	require.NoError(t, report(&data, all, true))
	var read []figure
	require.NoError(t, json.Unmarshal(data.Bytes(), &read))
	assert.Equal(t, all, read)
}

func TestACommandLineThatMeansNothing(t *testing.T) {
	for _, args := range [][]string{{"-only", "turns"}, {"-rounds", "0"}, {"-users", "999"}, {"-runs", "0"}, {"-budget", "0"}, {"-instances", "0"}, {"-what"}, {"turn"}} {
		var out bytes.Buffer
		assert.Equal(t, 2, run(t.Context(), args, &out, &out), args)
		assert.NotEmpty(t, out.String(), args)
	}
}

// What cannot be measured is as bad as a missed goal.
func TestAnItemThatFails(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var stdout, stderr bytes.Buffer
	assert.Equal(t, 1, run(t.Context(), []string{"-only", "peer"}, &stdout, &stderr))
	assert.Contains(t, stderr.String(), "redis-server is not in PATH")
}

func TestALabCleansUpInReverse(t *testing.T) {
	var order []int
	figures, err := attempt(t.Context(), func(l *lab) []figure {
		l.Cleanup(func() { order = append(order, 1) })
		l.Cleanup(func() { order = append(order, 2) })
		require.Equal(l, 1, 2)
		return []figure{{}}
	})
	assert.Empty(t, figures)
	assert.ErrorContains(t, err, "Not equal")
	assert.Equal(t, []int{2, 1}, order)
}
