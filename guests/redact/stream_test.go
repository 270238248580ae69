package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/guest/guesttest"
)

// streamed is what a reader sees of a text that comes in chunks, each in one
// part or more.
func streamed(t require.TestingT, chunks ...[]string) string {
	s := stream{t: t, host: &guesttest.Host{}}
	for i, parts := range chunks {
		s.chunk(parts, i == len(chunks)-1)
	}
	return s.seen
}

// stream does with chunks what the host does: it keeps what the hook holds of
// the last leaf, and puts it before the next chunk.
type stream struct {
	t    require.TestingT
	host *guesttest.Host
	held string
	seen string
}

func (s *stream) chunk(parts []string, end bool) {
	s.host.Leaves = nil
	open := 0
	for i, part := range parts {
		if i == 0 {
			part = s.held + part
		}
		leaf := textLeaf("/"+strconv.Itoa(i), part)
		leaf.Continues, leaf.Final = i > 0, true
		s.host.Leaves = append(s.host.Leaves, leaf)
		if part != "" {
			open = i
		}
	}
	s.host.Leaves[open].Final = end
	v, ok := s.host.Call(hooks(), abi.OnModelChunk)
	require.True(s.t, ok)
	require.NotEqual(s.t, abi.Fail, v.Kind)
	require.LessOrEqual(s.t, len(v.Holds), 1)
	s.held = ""
	for _, hold := range v.Holds {
		last := s.host.Leaves[open].Text
		s.held = last[len(last)-hold.Bytes:]
	}
	s.seen += strings.TrimSuffix(strings.Join(s.host.Texts(), ""), s.held)
}

// whole makes chunks of one part each.
func whole(chunks ...string) [][]string {
	var all [][]string
	for _, chunk := range chunks {
		all = append(all, []string{chunk})
	}
	return all
}

// texts are made of what rules look for, and what stands around it.
func texts() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{
			"4111111111111111", "4111 1111 1111 1111", "3782 822463 10005", "4222222222222", "6205 5000 0000 0000 004",
			"jo@example.com", "jo.d@mail.example.co.uk", "@", ".", "-", "_", "*", "[CARD]", " ", "\u00a0", "\u2011", "ü", "卡",
			"GB82 WEST 1234 5698 7654 32", "gb82west12345698765432", "NO93 8601 1117 947", "DE", "D",
			"12345678-1234-4123-8046-129790155501", "4111", "1111", "12.", "0",
		}),
		rapid.StringMatching(`[0-9]{1,24}`),
		rapid.StringMatching(`[a-zA-Z0-9.@ -]{1,8}`),
		rapid.StringMatching(`[a-z]{60,70}`),
	)
	return rapid.Map(rapid.SliceOfN(piece, 0, 12), func(pieces []string) string { return strings.Join(pieces, "") })
}

func TestAStreamReadsAsTheWholeDoesHoweverItIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := texts().Draw(t, "text")
		chunks := [][]string{nil}
		runes := []rune(text)
		for {
			n := rapid.IntRange(0, min(20, len(runes))).Draw(t, "n")
			last := &chunks[len(chunks)-1]
			*last, runes = append(*last, string(runes[:n])), runes[n:]
			if len(runes) == 0 {
				break
			}
			if rapid.Bool().Draw(t, "next chunk") {
				chunks = append(chunks, nil)
			}
		}
		h := &guesttest.Host{Leaves: []abi.Leaf{textLeaf("/0", text)}}
		_, ok := h.Call(hooks(), abi.AfterModel)
		require.True(t, ok)
		assert.Equal(t, h.Texts()[0], streamed(t, chunks...))
	})
}

func TestMaskingTwiceChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := texts().Filter(func(text string) bool { return !overlong(text) }).Draw(t, "text")
		once := masked(text)
		assert.Equal(t, once, masked(once))
	})
}

// overlong reports whether something is no address only because it is too
// long: a mask in it may make it one.
func overlong(text string) bool {
	for at := range len(text) {
		if text[at] != '@' {
			continue
		}
		start, end := at, at+1
		for start > 0 && isLocal(text[start-1]) {
			start--
		}
		for end < len(text) && isDomain(text[end]) {
			end++
		}
		if at-start > maxLocal || end-at-1 > maxDomain {
			return true
		}
	}
	return false
}

func TestAStreamCutAnywhere(t *testing.T) {
	const text = "Pay 4111 1111 1111 1111 or GB82 WEST 1234 5698 7654 32, ask jo@example.com. id 12345678-1234-4123-8046-129790155501 4222222222222"
	want := redacted(t, text)
	require.Equal(t, "Pay [CARD] or [IBAN], ask [EMAIL]. id 12345678-1234-4123-8046-129790155501 [CARD]", want)
	for i := range len(text) {
		for j := i; j < len(text); j += 7 {
			require.Equal(t, want, streamed(t, whole(text[:i], text[i:j], text[j:])...), "cut at %d and %d", i, j)
		}
	}
	require.Equal(t, want, streamed(t, whole(strings.Split(text, "")...)...))
}

func TestOrdinaryWordsAreHeldNoLongerThanTheWordLasts(t *testing.T) {
	h := &guesttest.Host{Leaves: []abi.Leaf{textLeaf("/0", "The answer is forty-two. ")}}
	v, ok := h.Call(hooks(), abi.OnModelChunk)
	require.True(t, ok)
	assert.Equal(t, abi.Verdict{Kind: abi.Continue}, v)
}

func TestWhatHasToBeHeldOfAnEarlierLeafGoesOutWithTheNextChunk(t *testing.T) {
	s := stream{t: t, host: &guesttest.Host{}}
	s.chunk([]string{"ask ada@exam", "ple"}, false)
	assert.Equal(t, "ask ", s.seen)
	assert.Equal(t, "ple", s.held)
	s.chunk([]string{".com", "", " 4111 1111 "}, false)
	assert.Equal(t, "ask [EMAIL] ", s.seen)
	s.chunk([]string{", bye"}, true)
	assert.Equal(t, "ask [EMAIL] 4111 1111 , bye", s.seen)
}

func TestAnyBytesAreMaskedWithoutAFailure(t *testing.T) {
	assert.Equal(t, "pay [CARD]\x80 now", redacted(t, "pay 4111111111111111\x80 now"))
	assert.Equal(t, "\xc3[EMAIL]\xe2\x82", redacted(t, "\xc3jo@example.com\xe2\x82"))
	assert.Equal(t, "\x80[CARD]\x80.", streamed(t, whole("\x80", "4111 1111", " 1111 1111\x80", ".")...))
}

func FuzzAnyBytesAreMaskedWithoutAFailure(f *testing.F) {
	for _, seed := range []string{"pay 4111111111111111\x80 now", "4111\xc2|\xa01111|1", "a\xe2|\x80\x91@b.co", "\xf0\x9f|4111 1111 1111 1111\x98\x80"} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, text string, parts bool) {
		redacted(t, text)
		pieces := strings.Split(text, "|")
		if parts {
			streamed(t, pieces, []string{""})
		} else {
			streamed(t, whole(pieces...)...)
		}
	})
}

// event is a text of an event after the hook.
func event(t *testing.T, text string, flags abi.Flags) string {
	t.Helper()
	argument := abi.Leaf{Kind: abi.LeafArgument, Role: abi.RoleModel, Pointer: "/1", Text: "jo@example.com"}
	h := &guesttest.Host{Event: abi.Event{Flags: flags}, Leaves: []abi.Leaf{textLeaf("/0", text), argument}}
	_, ok := h.Call(hooks(), abi.OnEvent)
	require.True(t, ok)
	require.Equal(t, "[EMAIL]", h.Texts()[1], "what no chunk shows is masked in every event")
	return h.Texts()[0]
}

func TestTheEventOfAChunkThatWasSeenIsNotJudgedAgain(t *testing.T) {
	const card = "4111111111111111"
	assert.Equal(t, card, event(t, card, abi.Partial|abi.Streamed), "it may stand behind x_")
	assert.Equal(t, "[CARD]", event(t, card, abi.Partial), "nobody saw it, or somebody changed it since")
	assert.Equal(t, "[CARD]", event(t, card, 0), "it is whole")
}

func TestChunksAndTheirEventsReadAsTheFinalOne(t *testing.T) {
	for _, text := range []string{"see x_4111111111111111 ok", "].4111111111111111", "12.4111111111111111 end", "a 4111 1111 1111 1111 b"} {
		for cut := range len(text) {
			s := stream{t: t, host: &guesttest.Host{Event: abi.Event{Flags: abi.Partial | abi.Streamed}}}
			joined := ""
			for i, chunk := range []string{text[:cut], text[cut:]} {
				from := len(s.seen)
				s.chunk([]string{chunk}, i == 1)
				s.host.Leaves = []abi.Leaf{textLeaf("/0", s.seen[from:])}
				_, ok := s.host.Call(hooks(), abi.OnEvent)
				require.True(t, ok)
				joined += s.host.Texts()[0]
			}
			require.Equal(t, event(t, redacted(t, text), 0), joined, "%q cut at %d", text, cut)
		}
	}
}

// masked applies the default rules to a text.
func masked(text string) string {
	out, at := "", 0
	for _, s := range findAll(defaultRules(), text, 0) {
		out += text[at:s.start] + s.with
		at = s.end
	}
	return out + text[at:]
}

func FuzzRules(f *testing.F) {
	for _, seed := range []string{
		"", "4111 1111 1111 1111", "GB82 WEST 1234 5698 7654 32", "jo@example.com", "a@b.com4111111111111111",
		"\xc2", "\xe2\x80", "4111\xe2\x80", "12345678-1234-4123-8046-129790155501", "0.4111111111111111",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		end := 0
		spans := findAll(defaultRules(), text, 0)
		for _, s := range spans {
			require.LessOrEqual(t, end, s.start)
			require.Less(t, s.start, s.end)
			require.LessOrEqual(t, s.end, len(text))
			end = s.end
		}
		cut := judged(defaultRules(), text, spans)
		require.True(t, 0 <= cut && cut <= len(text))
		if once := masked(text); !overlong(text) {
			require.Equal(t, once, masked(once))
		}
	})
}
