package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/guest"
	"github.com/hookhost/hookhost/abi/guest/guesttest"
)

// asks runs a hook that continues and returns what it asked for.
func asks(t *testing.T, hook abi.Hook, ev abi.Event) []string {
	t.Helper()
	h := &guesttest.Host{Event: ev}
	v, ok := h.Call(hooks(), hook)
	require.True(t, ok)
	require.Equal(t, abi.Verdict{Kind: abi.Continue}, v)
	return h.Asked
}

func TestAModelCallIsRecordedHoweverItEnds(t *testing.T) {
	for _, hook := range []abi.Hook{abi.AfterModel, abi.OnModelError, abi.Close} {
		assert.Equal(t, []string{"record"}, asks(t, hook, abi.Event{Of: abi.OpModel}), "at %s", hook)
	}
}

func TestCase028ACallThatIsCutOffIsClosedForWhoSawItBegin(t *testing.T) {
	assert.Empty(t, asks(t, abi.BeforeModel, abi.Event{Of: abi.OpModel}))
	for reason, want := range map[abi.Reason][]string{
		abi.ReasonCancelled: {"record"}, abi.ReasonEnded: {"record"}, abi.ReasonError: {"record"},
		abi.ReasonAnswered: nil, abi.ReasonRefused: nil,
	} {
		assert.Equal(t, want, asks(t, abi.Close, abi.Event{Of: abi.OpModel, Reason: reason}), "%s", reason)
	}
}

func TestCase023ChunksAreNotAskedFor(t *testing.T) {
	wanted := abi.HookSet(guest.Module{Hooks: hooks()}.ABI())
	assert.False(t, wanted.Has(abi.OnModelChunk), "their usage is a running total")
}

func TestNothingElseThatCloses(t *testing.T) {
	for _, of := range []abi.Operation{abi.OpRun, abi.OpAgent, abi.OpTool} {
		assert.Empty(t, asks(t, abi.Close, abi.Event{Of: of}))
	}
	assert.Empty(t, asks(t, abi.AfterModel, abi.Event{Of: abi.OpModel, Flags: abi.Late}))
}

func TestToolsThatRanAreCounted(t *testing.T) {
	assert.Equal(t, []string{"add tool_calls 1"}, asks(t, abi.AfterTool, abi.Event{Of: abi.OpTool}))
	assert.Empty(t, asks(t, abi.AfterTool, abi.Event{Of: abi.OpTool, Source: abi.SourceAnswered}))
}

func TestAStoreThatIsAwayIsAFailure(t *testing.T) {
	h := &guesttest.Host{
		Event: abi.Event{Of: abi.OpModel},
		Codes: map[string]abi.Code{"hookhost_usage.record": abi.Unavailable},
	}
	v, ok := h.Call(hooks(), abi.AfterModel)
	require.True(t, ok)
	assert.Equal(t, abi.Fail, v.Kind)
}
