package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/guest/guesttest"
)

// streamed is what a reader sees of a text that comes in chunks: the host
// keeps what the hook holds, and puts it before the next chunk.
func streamed(t require.TestingT, chunks ...string) string {
	h := &guesttest.Host{}
	seen, held := "", ""
	for i, chunk := range chunks {
		leaf := textLeaf("/0", held+chunk)
		leaf.Final = i == len(chunks)-1
		h.Leaves = []abi.Leaf{leaf}
		v, ok := h.Call(hooks(), abi.OnModelChunk)
		require.True(t, ok)
		require.LessOrEqual(t, len(v.Holds), 1)
		n := 0
		for _, hold := range v.Holds {
			n = hold.Bytes
		}
		cut := len(leaf.Text) - n
		held = leaf.Text[cut:]
		for _, e := range v.Edits {
			require.LessOrEqual(t, e.End, cut, "nothing that is held is changed")
		}
		seen += strings.TrimSuffix(h.Texts()[0], held)
	}
	return seen + held
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
		var chunks []string
		runes := []rune(text)
		for len(runes) > 0 {
			n := rapid.IntRange(1, min(20, len(runes))).Draw(t, "n")
			chunks, runes = append(chunks, string(runes[:n])), runes[n:]
		}
		h := &guesttest.Host{Leaves: []abi.Leaf{textLeaf("/0", text)}}
		_, ok := h.Call(hooks(), abi.AfterModel)
		require.True(t, ok)
		assert.Equal(t, h.Texts()[0], streamed(t, chunks...))
	})
}

func TestMaskingTwiceChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := texts().Draw(t, "text")
		if overlong(text) {
			t.Skip()
		}
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
	whole := redacted(t, text)
	require.Equal(t, "Pay [CARD] or [IBAN], ask [EMAIL]. id 12345678-1234-4123-8046-129790155501 [CARD]", whole)
	for i := range len(text) {
		for j := i; j < len(text); j += 7 {
			require.Equal(t, whole, streamed(t, text[:i], text[i:j], text[j:]), "cut at %d and %d", i, j)
		}
	}
	require.Equal(t, whole, streamed(t, strings.Split(text, "")...))
}

func TestOrdinaryWordsAreHeldNoLongerThanTheWordLasts(t *testing.T) {
	h := &guesttest.Host{Leaves: []abi.Leaf{textLeaf("/0", "The answer is forty-two. ")}}
	v, ok := h.Call(hooks(), abi.OnModelChunk)
	require.True(t, ok)
	assert.Equal(t, abi.Verdict{Kind: abi.Continue}, v)
}

func TestAHoldReachesOverTheLeavesOfAPassage(t *testing.T) {
	second := textLeaf("/1", "1111")
	second.Continues = true
	h := &guesttest.Host{Leaves: []abi.Leaf{textLeaf("/0", "card 4111 1111 "), second}}
	v, ok := h.Call(hooks(), abi.OnModelChunk)
	require.True(t, ok)
	assert.Equal(t, []abi.Hold{{Pointer: "/1", Bytes: 4}, {Pointer: "/0", Bytes: 10}}, v.Holds)
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
