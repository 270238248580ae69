package hostfn_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
)

func TestGuestsMayNotWriteMoreJSONThanIsQuickToRead(t *testing.T) {
	list := func(n int) string { return "[" + strings.Repeat("1,", n-1) + "1]" }
	c := newBench(t).call()
	require.Equal(t, abi.OK, c.Edit(int32(abi.EditReplace), "/a", list(250_000)))
	assert.Equal(t, abi.OverLimit, c.Edit(int32(abi.EditReplace), "/a", list(20_000)), "all of a call together")
	assert.Equal(t, abi.OverLimit, newBench(t).call().Answer(abi.AnswerJSON, list(270_000)))
	assert.Equal(t, abi.OverLimit, newBench(t).call().Edit(int32(abi.EditAdd), "/a", "["+strings.Repeat(`{"k":[]},`, 90_000)+"1]"))

	commas := `"` + strings.Repeat(`,\"[`, 100_000) + `"`
	assert.Equal(t, abi.OK, newBench(t).call().Edit(int32(abi.EditReplace), "/a", commas), "a text is one value, whatever it says")
	assert.Equal(t, abi.BadArgument, newBench(t).call().Edit(int32(abi.EditReplace), "/a", `["x"`))
}

// edits has a call write a JSON text.
func edits(t testing.TB, text string) abi.Code {
	return newBench(t).call().Edit(int32(abi.EditReplace), "/a", text)
}

func TestJSONIsWhatTheDecoderTakes(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, text := range []string{
		"", " ", "0", "-0", "01", "1.", "1.5", ".5", "1e5", "1E+5", "1e", "-", "+1", "true", "tru", "truex", "null", "nul", "false",
		`""`, `"`, `"\""`, `"\u00e9"`, `"\u00g9"`, `"\x"`, `"\`, "\"\t\"", "\"\x7f\"", `"é"`,
		"[]", "[ ]", "[1]", "[1,]", "[,1]", "[1 2]", "[1,2]", "[", "]", "{}", "{ }", `{"a":1}`, `{"a"}`, `{"a":}`, `{a:1}`, `{"a":1,}`, `{"a":1 , "b" : [ ] }`,
		"1 2", " 1\r\n\t", "[1]x", nested(9_999), nested(10_000), nested(10_001),
	} {
		want := abi.BadArgument
		if json.Valid([]byte(text)) {
			want = abi.OK
		}
		assert.Equal(t, want, edits(t, text), "%.40q", text)
	}
}

func TestTheCheckOfJSONEndsWithTheCall(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	c := b.services.NewCall(ctx, b.stage, b.ev)
	cancel()
	assert.Equal(t, abi.Unavailable, c.Edit(int32(abi.EditReplace), "/a", `"x"`))
}

func FuzzJSON(f *testing.F) {
	for _, text := range []string{`{"a":[1,-2.5e3,true,null,"\u00e9\n"]}`, "[[[]]]", `{"":{}}`, "0x1", `"\ud800"`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) || len(text) > abi.MaxJSON {
			return
		}
		assert.Equal(t, json.Valid([]byte(text)), edits(t, text) == abi.OK, "%q", text)
	})
}
