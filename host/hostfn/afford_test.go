package hostfn_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/subject"
	"github.com/hookhost/hookhost/host/hostfn"
)

// within is a call with so much time left.
func (b *bench) within(d time.Duration) *hostfn.Call {
	ctx, cancel := context.WithTimeout(b.t.Context(), d)
	b.t.Cleanup(cancel)
	return b.services.NewCall(ctx, b.stage, b.ev)
}

func TestWhatTakesLongerThanIsLeftIsNotBegun(t *testing.T) {
	b := newBench(t)
	b.ev.Subject = subject.New(map[string]any{"large": strings.Repeat("x", 15<<20), "small": "y"}, func(any, func(abi.Leaf)) {})
	buf := make([]byte, 4)

	assert.EqualValues(t, abi.Unavailable, b.within(10*time.Millisecond).Get("/large", buf))
	assert.EqualValues(t, 3, b.within(time.Second).Get("/small", buf))
	assert.Greater(t, b.within(time.Minute).Get("/large", buf), int32(15<<20))
	assert.Greater(t, b.call().Get("/large", buf), int32(15<<20), "a call without an end")
}

func TestAVerdictIsAffordableWhileItsWorkFitsIntoTheTime(t *testing.T) {
	b := newBench(t)
	many := abi.Verdict{Kind: abi.Amend, Edits: slices.Repeat([]abi.Edit{{Op: abi.EditSplice}}, 20_000)}
	assert.False(t, b.within(10*time.Millisecond).Affordable(many))
	assert.True(t, b.within(time.Second).Affordable(many))
	assert.True(t, b.call().Affordable(many))
	many.Kind = abi.Continue
	assert.True(t, b.within(10*time.Millisecond).Affordable(many), "edits that are not made cost nothing")
}

func TestAnAnswerIsAffordableWhileItsValuesCanBeDecodedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which checking the answer takes no time
		c := newBench(t).within(500 * time.Millisecond)
		require.Equal(t, abi.OK, c.Answer(abi.AnswerJSON, "["+strings.Repeat("1,", 200_000)+"1]"))
		assert.True(t, c.Affordable(abi.Verdict{Kind: abi.Respond}))
		time.Sleep(480 * time.Millisecond)
		assert.False(t, c.Affordable(abi.Verdict{Kind: abi.Respond}))
	})
}
