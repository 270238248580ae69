package chain_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
)

func TestEveryOperationIsTimedAlsoWhereNoStageAsks(t *testing.T) {
	w := chainOf(t)
	r := w.begin()
	op := w.open(r, abi.OpModel)
	dispatch(op, abi.BeforeModel, "")
	w.clock.advance(20 * time.Millisecond)
	dispatch(op, abi.OnModelChunk, "Hel")
	w.clock.advance(80 * time.Millisecond)
	dispatch(op, abi.AfterModel, "Hello")
	w.clock.advance(time.Millisecond)
	r.Finish(context.Background(), false)

	require.Len(t, w.trace.spans, 2, "the model call and the run")
	call, run := w.trace.spans[0], w.trace.spans[1]
	assert.Equal(t, abi.OpModel, call.Operation)
	assert.Equal(t, 20*time.Millisecond, call.FirstChunk)
	assert.Equal(t, 100*time.Millisecond, call.Took)
	assert.Equal(t, abi.ReasonDone, call.Reason)
	assert.Equal(t, abi.OpRun, run.Operation)
	assert.Equal(t, 101*time.Millisecond, run.Took)
}
