package hostfn_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/host/internal/fake"
)

func TestHeadHasTheNumbersOfTheEvent(t *testing.T) {
	b := newBench(t).at(abi.AfterModel)
	b.ev.Flags, b.ev.Source = abi.Entered|abi.StreamEnd, abi.SourceAnswered
	b.ev.Usage = abi.Usage{Mask: abi.HasPrompt | abi.HasTotal, Prompt: 7, Total: 9}
	b.ev.Elapsed, b.ev.ModelCalls = 2*time.Second, 3
	head := make([]byte, abi.HeadSize)
	require.EqualValues(t, abi.HeadSize, b.call().Head(head))
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(head[at:]) }
	i64 := func(at int) int64 { return int64(binary.LittleEndian.Uint64(head[at:])) }
	assert.EqualValues(t, abi.AfterModel, u32(abi.HeadHook))
	assert.EqualValues(t, abi.Entered|abi.StreamEnd, u32(abi.HeadFlags))
	assert.EqualValues(t, abi.SourceAnswered, u32(abi.HeadSource))
	assert.EqualValues(t, abi.OpModel, u32(abi.HeadOperation))
	assert.EqualValues(t, abi.HasPrompt|abi.HasTotal, u32(abi.HeadUsageMask))
	assert.EqualValues(t, 7, i64(abi.HeadPrompt))
	assert.EqualValues(t, 9, i64(abi.HeadTotal))
	assert.EqualValues(t, 1_700_000_000_123, i64(abi.HeadTime))
	assert.EqualValues(t, 2_000_000, i64(abi.HeadElapsed))
	assert.EqualValues(t, -1, i64(abi.HeadFirstChunk), "none came yet")
	assert.EqualValues(t, 3, i64(abi.HeadModelCalls))
}

func TestReadsWriteWhatFitsAndReturnTheLength(t *testing.T) {
	c := newBench(t).call()
	buf := []byte("....")
	assert.EqualValues(t, 5, c.Text(int32(abi.FieldModel), buf[:3]))
	assert.Equal(t, "mod.", string(buf))
	assert.EqualValues(t, abi.NotFound, c.Text(int32(abi.FieldTool), buf), "empty is absent")
	assert.EqualValues(t, abi.BadArgument, c.Text(99, buf))
	assert.EqualValues(t, 5, c.Text(int32(abi.FieldStage), nil))
}

func TestLeaves(t *testing.T) {
	c := newBench(t).call()
	record := make([]byte, abi.LeafSize)
	require.EqualValues(t, abi.LeafSize, c.Leaf(2, record))
	assert.EqualValues(t, abi.LeafText, binary.LittleEndian.Uint32(record))
	assert.EqualValues(t, abi.LeafFlagReadOnly|abi.LeafFlagFinal|abi.LeafFlagContinues, binary.LittleEndian.Uint32(record[8:]))
	assert.EqualValues(t, 5, binary.LittleEndian.Uint32(record[12:]))
	path, _ := text(func(buf []byte) int32 { return c.LeafPath(1, buf) })
	assert.Equal(t, "/n", path)
	rest, _ := text(func(buf []byte) int32 { return c.LeafRead(0, 8, buf) })
	assert.Equal(t, "an alle", rest)
	assert.EqualValues(t, abi.NotFound, c.Leaf(3, record))
	assert.EqualValues(t, abi.NotFound, c.Leaf(-1, record))
	assert.EqualValues(t, abi.BadArgument, c.LeafRead(0, 16, nil))
	assert.EqualValues(t, 0, c.LeafRead(0, 15, nil), "the end of the text")
}

func TestSplicesThatDoNotFitAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		index, start, end int32
		text              string
		code              abi.Code
	}{
		"no such leaf":         {3, 0, 1, "", abi.NotFound},
		"read only":            {2, 0, 1, "", abi.WrongType},
		"before the begin":     {0, -1, 1, "", abi.BadArgument},
		"behind the end":       {0, 0, 16, "", abi.BadArgument},
		"backwards":            {0, 5, 4, "", abi.BadArgument},
		"begins in a letter":   {0, 5, 6, "", abi.BadArgument},
		"ends in a letter":     {0, 4, 5, "", abi.BadArgument},
		"overlaps":             {0, 0, 2, "", abi.BadArgument},
		"inside":               {0, 2, 2, "", abi.BadArgument},
		"around":               {0, 0, 6, "", abi.BadArgument},
		"begins where one did": {0, 1, 1, "x", abi.BadArgument},
		"not UTF-8":            {0, 8, 9, "\xff", abi.BadArgument},
		"too large":            {0, 8, 9, strings.Repeat("x", abi.MaxValue+1), abi.OverLimit},
		"touches":              {0, 4, 6, "ß", abi.OK},
		"inserts before":       {0, 0, 0, "x", abi.OK},
		"inserts at the end":   {0, 15, 15, "!", abi.OK},
		"a number":             {1, 0, 2, "[n]", abi.OK},
	} {
		t.Run(name, func(t *testing.T) {
			c := newBench(t).call()
			require.EqualValues(t, abi.OK, c.LeafSplice(0, 1, 4, "-"))
			assert.Equal(t, tt.code, c.LeafSplice(tt.index, tt.start, tt.end, tt.text))
		})
	}
}

func TestBytesThatAreNoCharacterCanBeParted(t *testing.T) {
	b := newBench(t)
	const broken = "a\x80\x80\xc3ü\xe2\x82"
	for _, tt := range []struct {
		at   int32
		code abi.Code
	}{{1, abi.OK}, {2, abi.OK}, {3, abi.OK}, {4, abi.OK}, {5, abi.BadArgument}, {6, abi.OK}, {7, abi.OK}, {8, abi.OK}} {
		b.ev.Subject = &fake.Subject{Texts: []abi.Leaf{{Kind: abi.LeafText, Pointer: "/a", Text: broken}}}
		c := b.call()
		assert.Equal(t, tt.code, c.LeafSplice(0, tt.at, tt.at, "x"), "between %q and %q", broken[:tt.at], broken[tt.at:])
	}
}

func TestGettersNeverSeeTheDraft(t *testing.T) {
	c := newBench(t).call()
	require.EqualValues(t, abi.OK, c.LeafSplice(0, 0, 1, "-"))
	require.EqualValues(t, abi.OK, c.Edit(int32(abi.EditReplace), "/a", `"b"`))
	got, _ := text(func(buf []byte) int32 { return c.LeafRead(0, 0, buf) })
	assert.Equal(t, "Grüße an alle", got)
	got, _ = text(func(buf []byte) int32 { return c.Get("/a", buf) })
	assert.Equal(t, `"Grüße an alle"`, got)
}

func TestEditsAreReturnedWithAnAmendAlone(t *testing.T) {
	draft := func() *hostfn.Call {
		c := newBench(t).call()
		require.EqualValues(t, abi.OK, c.LeafSplice(0, 0, 1, "-"))
		require.EqualValues(t, abi.OK, c.Edit(int32(abi.EditAdd), "/b", `{"x":1}`))
		require.EqualValues(t, abi.OK, c.Edit(int32(abi.EditRemove), "/c", ""))
		return c
	}
	v, err := draft().Verdict(abi.Amend, 0)
	require.NoError(t, err)
	assert.Equal(t, abi.Verdict{Kind: abi.Amend, Edits: []abi.Edit{
		{Op: abi.EditSplice, Pointer: "/a", Start: 0, End: 1, Text: "-"},
		{Op: abi.EditAdd, Pointer: "/b", Value: []byte(`{"x":1}`)},
		{Op: abi.EditRemove, Pointer: "/c"},
	}}, v)

	v, err = draft().Verdict(abi.Continue, 0)
	require.NoError(t, err)
	assert.Equal(t, abi.Verdict{Kind: abi.Continue}, v, "the draft is dropped")

	v, err = newBench(t).call().Verdict(abi.Amend, 0)
	require.NoError(t, err)
	assert.Equal(t, abi.Verdict{Kind: abi.Continue}, v, "an amend of nothing")
}

func TestEditsThatDoNotFitAreRefused(t *testing.T) {
	c := newBench(t).call()
	assert.EqualValues(t, abi.BadArgument, c.Edit(int32(abi.EditAdd), "/b", `{"x":`))
	assert.EqualValues(t, abi.BadArgument, c.Edit(int32(abi.EditAdd), "b", `1`))
	assert.EqualValues(t, abi.BadArgument, c.Edit(int32(abi.EditAdd), "/b~2", `1`))
	assert.EqualValues(t, abi.BadArgument, c.Edit(int32(abi.EditSplice), "/b", `1`))
	assert.EqualValues(t, abi.BadArgument, c.Edit(9, "/b", `1`))
	assert.EqualValues(t, abi.OverLimit, c.Edit(int32(abi.EditAdd), "/"+strings.Repeat("x", abi.MaxKey), `1`))
	assert.EqualValues(t, abi.NotGranted, c.Edit(int32(abi.EditAdd), "/actions/escalate", `true`))
	assert.EqualValues(t, abi.OK, newBench(t, "actions").call().Edit(int32(abi.EditAdd), "/actions/escalate", `true`))
	assert.EqualValues(t, abi.NotGranted, c.Get("/actions/x", nil))
	assert.EqualValues(t, 1, newBench(t, "actions").call().Get("/actions/x", nil))
	assert.EqualValues(t, abi.NotFound, c.Get("/elsewhere", nil))
}

func TestADraftIsBounded(t *testing.T) {
	c := newBench(t).call()
	half := `"` + strings.Repeat("x", abi.MaxValue/2) + `"`
	require.EqualValues(t, abi.OK, c.Edit(int32(abi.EditAdd), "/b", half))
	assert.EqualValues(t, abi.OverLimit, c.Edit(int32(abi.EditAdd), "/b", half), "all the edits together")

	c = newBench(t).call()
	for range abi.MaxEdits {
		require.EqualValues(t, abi.OK, c.Edit(int32(abi.EditRemove), "/b", ""))
	}
	assert.EqualValues(t, abi.OverLimit, c.Edit(int32(abi.EditRemove), "/b", ""))
}

func TestHoldsAreOfTheTailOfAChunk(t *testing.T) {
	b := newBench(t)
	assert.EqualValues(t, abi.NotAtThisHook, b.call().LeafHold(0, 1))
	c := b.at(abi.OnModelChunk).call()
	assert.EqualValues(t, abi.OK, c.LeafHold(0, 4))
	assert.EqualValues(t, abi.OK, c.LeafHold(0, 5), "the last word counts")
	assert.EqualValues(t, abi.OK, c.LeafHold(1, 2))
	assert.EqualValues(t, abi.OK, c.LeafHold(1, 0), "taken back")
	assert.EqualValues(t, abi.BadArgument, c.LeafHold(0, 16))
	assert.EqualValues(t, abi.BadArgument, c.LeafHold(0, -1))
	assert.EqualValues(t, abi.BadArgument, c.LeafHold(0, 12), "cuts a letter")
	assert.EqualValues(t, abi.BadArgument, c.LeafHold(2, 1), "nothing follows a final leaf")
	assert.EqualValues(t, abi.BadArgument, c.LeafSplice(0, 8, 12, "x"), "reaches into what is held")
	assert.EqualValues(t, abi.OK, c.LeafSplice(0, 0, 8, "x"))
	assert.EqualValues(t, abi.BadArgument, c.LeafHold(0, 9), "reaches into what is replaced")
	held := []abi.Hold{{Pointer: "/a", Bytes: 5}}
	v, err := c.Verdict(abi.Continue, 0)
	require.NoError(t, err)
	assert.Equal(t, abi.Verdict{Kind: abi.Continue, Holds: held}, v, "a continue keeps its holds")
	v, err = c.Verdict(abi.Amend, 0)
	require.NoError(t, err)
	assert.Equal(t, held, v.Holds)
}

func TestSessionStateNeedsItsGrants(t *testing.T) {
	session := map[string]any{"a/b": "x", "odd": func() {}}
	set := func(b *bench) *bench {
		b.ev.State = func(key string) (any, bool) { v, ok := session[key]; return v, ok }
		b.ev.SetState = func(key string, value any) error {
			if key == "forbidden" {
				return errors.New("no")
			}
			session[key] = value
			return nil
		}
		return b
	}
	c := set(newBench(t)).call()
	assert.EqualValues(t, abi.NotGranted, c.Get("/session/state/a~1b", nil))
	assert.EqualValues(t, abi.NotGranted, c.Edit(int32(abi.EditAdd), "/session/state/k", `1`))

	b := set(newBench(t, "session:read", "session:write"))
	c = b.call()
	got, _ := text(func(buf []byte) int32 { return c.Get("/session/state/a~1b", buf) })
	assert.Equal(t, `"x"`, got)
	assert.EqualValues(t, abi.NotFound, c.Get("/session/state/k", nil))
	assert.EqualValues(t, abi.WrongType, c.Get("/session/state/odd", nil))
	assert.EqualValues(t, abi.BadArgument, c.Edit(int32(abi.EditRemove), "/session/state/k", ""))
	require.EqualValues(t, abi.OK, c.Edit(int32(abi.EditAdd), "/session/state/k", `{"n":1}`))
	v, err := c.Verdict(abi.Amend, 0)
	require.NoError(t, err)
	assert.Equal(t, abi.Amend, v.Kind, "a change of the session is one, though the subject has none")
	assert.NotContains(t, session, "k", "written when the verdict is taken")
	require.NoError(t, v.Commit())
	assert.Equal(t, map[string]any{"n": 1.0}, session["k"])

	c = b.call()
	require.EqualValues(t, abi.OK, c.Edit(int32(abi.EditAdd), "/session/state/dropped", `1`))
	v, err = c.Verdict(abi.Continue, 0)
	require.NoError(t, err)
	assert.Nil(t, v.Commit, "the draft is dropped")

	c = b.call()
	require.EqualValues(t, abi.OK, c.Edit(int32(abi.EditAdd), "/session/state/forbidden", `1`))
	v, err = c.Verdict(abi.Amend, 0)
	require.NoError(t, err)
	require.ErrorContains(t, v.Commit(), "session: no")
}
