package hostfn_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/hostfn"
)

func TestRespondNeedsAnAnswer(t *testing.T) {
	c := newBench(t).call()
	_, err := c.Verdict(abi.Respond, 0)
	require.ErrorIs(t, err, hostfn.ErrBadVerdict)

	require.EqualValues(t, abi.OK, c.Answer(abi.AnswerText, "first"))
	require.EqualValues(t, abi.OK, c.Answer(abi.AnswerJSON, `{}`))
	v, err := c.Verdict(abi.Respond, 0)
	require.NoError(t, err)
	assert.Equal(t, abi.Answer{JSON: []byte(`{}`)}, v.Answer, "the last one counts")

	require.EqualValues(t, abi.OK, c.Refuse("policy.no", "No.", 1500))
	v, err = c.Verdict(abi.Respond, 0)
	require.NoError(t, err)
	assert.Equal(t, abi.Answer{Refusal: &abi.Refusal{Code: "policy.no", Text: "No.", Retry: 1500 * time.Millisecond}}, v.Answer)
}

func TestAnswersThatAreNone(t *testing.T) {
	b := newBench(t)
	c := b.call()
	assert.EqualValues(t, abi.BadArgument, c.Answer(abi.AnswerText, ""))
	assert.EqualValues(t, abi.BadArgument, c.Answer(abi.AnswerText, "\xff"))
	assert.EqualValues(t, abi.BadArgument, c.Answer(abi.AnswerJSON, "{"))
	assert.EqualValues(t, abi.BadArgument, c.Answer(3, "x"))
	assert.EqualValues(t, abi.BadArgument, c.Refuse("Policy", "No.", 0))
	assert.EqualValues(t, abi.BadArgument, c.Refuse("policy", "", 0))
	assert.EqualValues(t, abi.BadArgument, c.Refuse("policy", "No.", -1))
	assert.EqualValues(t, abi.BadArgument, c.Refuse("policy", "No.", 1<<62))
	b.ev.Decode = func(abi.Answer) (abi.Subject, error) { return nil, errors.New("no response") }
	assert.EqualValues(t, abi.BadArgument, c.Answer(abi.AnswerJSON, "{}"), "not of the hook's type")
	c = b.at(abi.OnEvent).call()
	assert.EqualValues(t, abi.NotAtThisHook, c.Answer(abi.AnswerText, "x"))
	assert.EqualValues(t, abi.NotAtThisHook, c.Refuse("policy", "No.", 0))
}

func TestNotesAreFewAndShort(t *testing.T) {
	c := newBench(t).call()
	assert.EqualValues(t, abi.OverLimit, c.Note("k", strings.Repeat("x", abi.MaxKey+1)))
	assert.EqualValues(t, abi.BadArgument, c.Note("", "x"))
	for i := range abi.MaxNotes {
		require.EqualValues(t, abi.OK, c.Note(fmt.Sprint(i), "x"))
	}
	assert.EqualValues(t, abi.OverLimit, c.Note("k", "x"))
	v, err := c.Verdict(abi.Fail, 0)
	require.NoError(t, err)
	assert.Len(t, v.Notes, abi.MaxNotes)
}

func TestStateIsOfTheStageInItsScope(t *testing.T) {
	b := newBench(t)
	c := b.call()
	other := b.callAs(&hostfn.Stage{Name: "other"})
	assert.EqualValues(t, abi.NotFound, c.StateGet(abi.ScopeOp, "k", nil))
	require.EqualValues(t, abi.OK, c.StateSet(abi.ScopeOp, "k", ""))
	assert.EqualValues(t, 0, c.StateGet(abi.ScopeOp, "k", nil), "empty is not absent")
	assert.EqualValues(t, abi.NotFound, c.StateGet(abi.ScopeRun, "k", nil))
	assert.EqualValues(t, abi.NotFound, other.StateGet(abi.ScopeOp, "k", nil))
	require.EqualValues(t, abi.OK, c.StateDel(abi.ScopeOp, "k"))
	assert.EqualValues(t, abi.NotFound, c.StateGet(abi.ScopeOp, "k", nil))

	out := make([]byte, 8)
	require.EqualValues(t, 8, c.StateAdd(abi.ScopeRun, "n", -3, out))
	assert.Equal(t, []byte{0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, out)
	require.EqualValues(t, abi.OK, c.StateSet(abi.ScopeRun, "n", "word"))
	assert.EqualValues(t, abi.WrongType, c.StateAdd(abi.ScopeRun, "n", 1, out))
	assert.EqualValues(t, abi.BadArgument, c.StateAdd(abi.ScopeRun, "m", 1, out[:7]))
	assert.EqualValues(t, abi.BadArgument, c.StateSet(3, "k", ""))
	assert.EqualValues(t, abi.BadArgument, c.StateSet(abi.ScopeOp, "", ""))
	assert.EqualValues(t, abi.OverLimit, c.StateSet(abi.ScopeOp, "k", strings.Repeat("x", abi.MaxState+1)))
}

func TestConfigureHasItsOwnFunctions(t *testing.T) {
	b := newBench(t, "kv:cache")
	b.stage.Config = []hostfn.Setting{{Key: "b.c", Text: "1"}, {Key: "a", Text: ""}}
	assert.EqualValues(t, abi.NotAtThisHook, b.call().Reject("a", "no"))
	c := b.services.NewCall(t.Context(), b.stage, nil)
	assert.EqualValues(t, abi.NotAtThisHook, c.Head(nil))
	assert.EqualValues(t, abi.NotAtThisHook, c.StateSet(abi.ScopeOp, "k", "v"))
	assert.EqualValues(t, abi.NotAtThisHook, c.KVGet("cache", "k", nil))
	assert.EqualValues(t, abi.NotFound, c.Text(int32(abi.FieldUser), nil))
	key, _ := text(func(buf []byte) int32 { return c.ConfigKey(0, buf) })
	assert.Equal(t, "b.c", key)
	assert.EqualValues(t, abi.NotFound, c.ConfigKey(2, nil))
	assert.EqualValues(t, 0, c.Config("a", nil))
	assert.EqualValues(t, abi.NotFound, c.Config("b", nil))
	_, _, rejected := c.Rejected()
	assert.False(t, rejected)
	require.EqualValues(t, abi.OK, c.Reject("b.c", "must be even"))
	require.EqualValues(t, abi.OK, c.Reject("a", "and this"))
	name, why, rejected := c.Rejected()
	assert.Equal(t, []any{"b.c", "must be even", true}, []any{name, why, rejected}, "the first one counts")
}

func TestLogIsBoundedAndEscaped(t *testing.T) {
	b := newBench(t)
	require.EqualValues(t, abi.OK, b.call().Log(abi.LogInfo, "dropped"))
	assert.Empty(t, b.log.String())
	assert.EqualValues(t, 1, b.stage.Dropped())

	b.stage.Output = true
	c := b.call()
	assert.EqualValues(t, abi.BadArgument, c.Log(0, "x"))
	assert.EqualValues(t, abi.BadArgument, c.Log(abi.LogInfo, "\xff"))
	require.EqualValues(t, abi.OK, c.Log(abi.LogWarn, "näh\n\x1b[0m"+strings.Repeat("y", 5<<10)))
	assert.Contains(t, b.log.String(), `näh\\n\\x1b[0m`)
	assert.Less(t, b.log.Len(), 5<<10)
	for range 63 {
		require.EqualValues(t, abi.OK, c.Log(abi.LogWarn, "x"))
	}
	assert.EqualValues(t, abi.OverLimit, c.Log(abi.LogWarn, "x"))
	assert.Equal(t, 64, strings.Count(b.log.String(), "stage=probe"))
	assert.EqualValues(t, 2, b.stage.Dropped())
}
