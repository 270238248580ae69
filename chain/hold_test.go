package chain_test

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
)

// holds keeps the last bytes of the last text back, where it may.
func holds(bytes int) verdict {
	return func(_ context.Context, ev *abi.Event) (abi.Verdict, error) {
		v := abi.Verdict{Kind: abi.Continue}
		if leaves := ev.Subject.Leaves(); len(leaves) > 0 {
			v.Holds = []abi.Hold{{Pointer: leaves[len(leaves)-1].Pointer, Bytes: bytes}}
		}
		return v, nil
	}
}

// stream is the chunks of one model call.
type stream struct {
	op   *chain.Op
	last chain.Outcome
}

// gets gives a chunk to the chain and returns what goes out.
func (s *stream) gets(parts ...*part) string { return s.chunk(false, parts) }

// ends is the chunk after which nothing follows.
func (s *stream) ends(parts ...*part) string { return s.chunk(true, parts) }

func (s *stream) chunk(end bool, parts []*part) string {
	ev := &abi.Event{Subject: subjectOf(messageOf(parts), true, end), Flags: abi.Partial}
	if end {
		ev.Flags |= abi.StreamEnd
	}
	s.last = s.op.Dispatch(context.Background(), abi.OnModelChunk, ev)
	if s.last.Subject == nil {
		return textOf(ev.Subject)
	}
	return textOf(s.last.Subject)
}

func streamThrough(t *testing.T, stages ...*stage) (*stream, *world) {
	w := chainOf(t, stages...)
	return &stream{op: w.model()}, w
}

func TestTailsGoInFrontOfTheNextChunk(t *testing.T) {
	s := transformer("s").at(abi.OnModelChunk, holds(3))
	out, w := streamThrough(t, s)
	assert.Equal(t, "My card ", out.gets(says("My card 411")))
	assert.Equal(t, 3, w.trace.last().Held)
	assert.Equal(t, "411111", out.gets(says("111111")))
	assert.Equal(t, "111111", textOf(s.last(t, abi.OnModelChunk).Subject)[3:], "the stage sees its tail again")
	assert.Equal(t, "411111111", textOf(s.last(t, abi.OnModelChunk).Subject))
	assert.Equal(t, "111.", out.ends(says(".")), "nothing can be held at the end")
	assert.Zero(t, w.trace.last().Held)
}

func TestAChunkCanBeHeldAsAWhole(t *testing.T) {
	out, _ := streamThrough(t, transformer("s").at(abi.OnModelChunk, holds(100)))
	assert.Empty(t, out.gets(says("41")))
	assert.NotNil(t, out.last.Subject, "it is there, and empty")
	assert.Empty(t, out.gets(says("11")))
	assert.Equal(t, "4111!", out.ends(says("!")))
}

func TestACutNeverSplitsACharacter(t *testing.T) {
	out, _ := streamThrough(t, transformer("s").at(abi.OnModelChunk, holds(1)))
	assert.Equal(t, "Zo", out.gets(says("Zoë")))
	assert.Equal(t, "ë", out.gets(says("€")))
	assert.Equal(t, "€!", out.ends(says("!")))
}

func TestATailEndsWhereTheKindChanges(t *testing.T) {
	s := transformer("s").at(abi.OnModelChunk, holds(2))
	out, _ := streamThrough(t, s)
	assert.Equal(t, "(thinki)", out.gets(thinks("thinking")))
	assert.Equal(t, "(ng)|he", out.gets(says("here")))
	assert.Equal(t, "re|(m)", out.gets(thinks("mmm")))
	assert.Equal(t, "(mm)", out.ends())
}

func TestATailWaitsForAChunkWithText(t *testing.T) {
	out, _ := streamThrough(t, transformer("s").at(abi.OnModelChunk, holds(2)))
	assert.Equal(t, "ab", out.gets(says("abcd")))
	assert.Empty(t, out.gets(), "a chunk with nothing but usage")
	assert.Nil(t, out.last.Subject)
	assert.Equal(t, "cd", out.ends(), "the end of the stream flushes it")
	assert.Empty(t, out.ends())
}

func TestOnlyTheLastTextOfAChunkCanBeHeld(t *testing.T) {
	first := gives(abi.Verdict{Kind: abi.Continue, Holds: []abi.Hold{{Pointer: "/content/parts/0/text", Bytes: 2}}})
	out, w := streamThrough(t, transformer("s").at(abi.OnModelChunk, first))
	assert.Equal(t, "(abc)|d", out.gets(thinks("abc"), says("d")))
	assert.Zero(t, w.trace.last().Cause, "it is no fault to ask, as the last chunk looks like any other")
}

func TestTheFinalResponseIsWhole(t *testing.T) {
	out, _ := streamThrough(t, transformer("s").at(abi.OnModelChunk, holds(2)))
	assert.Equal(t, "ab", out.gets(says("abcd")))
	assert.Equal(t, chain.Outcome{}, dispatch(out.op, abi.AfterModel, "abcd"), "nothing was cut from it, and nothing is put in")
}

func TestAnOpenFailureLetsTheTailGo(t *testing.T) {
	calls := 0
	s := transformer("s").onError(chain.Open).at(abi.OnModelChunk, func(ctx context.Context, ev *abi.Event) (abi.Verdict, error) {
		if calls++; calls == 2 {
			panic("boom")
		}
		return holds(2)(ctx, ev)
	})
	out, _ := streamThrough(t, s)
	assert.Equal(t, "ab", out.gets(says("abcd")))
	assert.Equal(t, "cdef", out.gets(says("ef")), "nothing is lost")
	assert.Equal(t, "g", out.gets(says("ghi")))
	assert.Equal(t, "hi", out.ends())
}

func TestAnOpenBadVerdictLetsTheTailGo(t *testing.T) {
	s := transformer("s").onError(chain.Open).at(abi.OnModelChunk, holds(2))
	out, _ := streamThrough(t, s)
	assert.Equal(t, "ab", out.gets(says("abcd")))
	s.at(abi.OnModelChunk, gives(abi.Verdict{Kind: abi.Amend, Edits: []abi.Edit{{Op: abi.EditRemove, Pointer: "/gone"}}}))
	assert.Equal(t, "cdef", out.gets(says("ef")))
}

func TestSeveralStagesHoldEachItsOwn(t *testing.T) {
	first, second := transformer("first").at(abi.OnModelChunk, holds(2)), transformer("second").at(abi.OnModelChunk, holds(3))
	out, _ := streamThrough(t, first, second)
	assert.Equal(t, "a", out.gets(says("abcdef")))
	assert.Equal(t, "abcd", textOf(second.last(t, abi.OnModelChunk).Subject))
	assert.Equal(t, "b", out.gets(says("g")))
	assert.Equal(t, "cdefgh", out.ends(says("h")))
}

func TestMaskAndHoldInOneVerdict(t *testing.T) {
	s := transformer("s").at(abi.OnModelChunk, gives(abi.Verdict{
		Kind:  abi.Amend,
		Edits: []abi.Edit{{Op: abi.EditSplice, Pointer: "/content/parts/0/text", Start: 0, End: 4, Text: "****"}},
		Holds: []abi.Hold{{Pointer: "/content/parts/0/text", Bytes: 2}},
	}))
	out, _ := streamThrough(t, s)
	assert.Equal(t, "**** and ", out.gets(says("4111 and 41")))
	s.at(abi.OnModelChunk, continues)
	assert.Equal(t, "41x", out.gets(says("x")))
}

func TestHoldsThatAreBadVerdicts(t *testing.T) {
	at := func(pointer string, bytes int) abi.Hold { return abi.Hold{Pointer: pointer, Bytes: bytes} }
	for name, c := range map[string]struct {
		holds []abi.Hold
		cause chain.Cause
		out   string
	}{
		"of nothing":      {[]abi.Hold{at("/content/parts/0/text", 0)}, 0, "abcd"},
		"of less":         {[]abi.Hold{at("/content/parts/0/text", -1)}, chain.CauseBadVerdict, "abcd"},
		"of no leaf":      {[]abi.Hold{at("/content/parts/7/text", 1)}, chain.CauseBadVerdict, "abcd"},
		"twice":           {[]abi.Hold{at("/content/parts/0/text", 1), at("/content/parts/0/text", 1)}, chain.CauseBadVerdict, "abcd"},
		"of more than is": {[]abi.Hold{at("/content/parts/0/text", 1<<40)}, 0, ""},
	} {
		out, w := streamThrough(t, transformer("s").onError(chain.Open).at(abi.OnModelChunk, gives(abi.Verdict{Kind: abi.Continue, Holds: c.holds})))
		assert.Equal(t, c.out, out.gets(says("abcd")), name)
		assert.Equal(t, c.cause, w.trace.last().Cause, name)
	}
}

func TestACallOfItsOwnHasTailsOfItsOwn(t *testing.T) {
	w := chainOf(t, transformer("s").at(abi.OnModelChunk, holds(2)))
	r := w.begin()
	one, two := &stream{op: w.open(r, abi.OpModel)}, &stream{op: w.open(r, abi.OpModel)}
	assert.Equal(t, "ab", one.gets(says("abcd")))
	assert.Equal(t, "xy", two.gets(says("xyz!")))
	assert.Equal(t, "cd.", one.ends(says(".")))
	assert.Equal(t, "z!.", two.ends(says(".")))
}

// TestNothingOfAStreamIsLost: whatever stages hold back, and however the text
// is cut into chunks, what goes out in the end is what came in, and each
// part of it is UTF-8.
func TestNothingOfAStreamIsLost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var stages []*stage
		for i := range rapid.IntRange(1, 3).Draw(rt, "stages") {
			name := string(rune('a' + i))
			stages = append(stages, transformer(name).onError(chain.Open).at(abi.OnModelChunk, func(ctx context.Context, ev *abi.Event) (abi.Verdict, error) {
				switch rapid.IntRange(0, 9).Draw(rt, "verdict of "+name) {
				case 0:
					panic("boom")
				case 1:
					return continues(ctx, ev)
				default:
					return holds(rapid.IntRange(0, 8).Draw(rt, "bytes"))(ctx, ev)
				}
			}))
		}
		out, w := streamThrough(t, stages...)
		var sent, came strings.Builder
		chunks := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("a1 ë€😀")), 0, 6, -1), 0, 8).Draw(rt, "chunks")
		for _, text := range chunks {
			part := &part{Text: text, Thought: rapid.Bool().Draw(rt, "thought")}
			sent.WriteString(text)
			came.WriteString(out.gets(part))
			require.True(rt, utf8.ValidString(came.String()))
		}
		came.WriteString(out.ends())
		flat := strings.NewReplacer("(", "", ")", "", "|", "")
		assert.Equal(rt, sent.String(), flat.Replace(came.String()))
		out.op.End(context.Background(), abi.ReasonDone)
		out.op.Run().Finish(context.Background(), false)
		runs, _ := w.ledger.Open()
		require.Zero(rt, runs)
	})
}
