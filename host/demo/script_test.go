package demo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAScriptSaysEverythingAReplyCan(t *testing.T) {
	replies, err := ParseScript([]byte(`
[[reply]]
text = "Hello."

[[reply]]
agent = "specialist"
chunks = ["My card is 4111 11", "11 1111 1111."]
thought = "thinking aloud"
usage = { prompt = 100, candidates = 20, cached = 60, thoughts = 3, tool_use = 2, total = 125 }
chunk_usage = [{ total = 110 }]

[[reply]]
calls = [{ name = "lookup", args = { order = "A-1", deep = { n = [1, { x = "y" }] } }, id = "c1" }]
delay = "1.5s"

[[reply]]
error = "503 unavailable"
`))
	require.NoError(t, err)
	assert.Equal(t, []Reply{
		{Text: "Hello."},
		{
			Agent: "specialist", Chunks: []string{"My card is 4111 11", "11 1111 1111."}, Thought: "thinking aloud",
			Usage:      &Usage{Prompt: 100, Candidates: 20, Cached: 60, Thoughts: 3, ToolUse: 2, Total: 125},
			ChunkUsage: []Usage{{Total: 110}},
		},
		{
			Calls: []Call{{ID: "c1", Name: "lookup", Args: map[string]any{
				"order": "A-1", "deep": map[string]any{"n": []any{int64(1), map[string]any{"x": "y"}}},
			}}},
			Delay: Duration(1500 * time.Millisecond),
		},
		{Error: "503 unavailable"},
	}, replies)
}

func TestAWrongScriptSaysWhere(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"no TOML":          {"[[reply]]\ntext = ", "2:7: unexpected EOF; expected value"},
		"empty":            {"", "script has no [[reply]]"},
		"top-level key":    {"turns = 3\n[[reply]]\ntext = 'a'", `1:1: unknown key "turns"`},
		"unknown table":    {"[[reply]]\ntext = 'a'\n[models]\nname = 'x'", `3:2: reply[1] unknown key "models"`},
		"unknown key":      {"[[reply]]\ntext = 'a'\n[[reply]]\n  txet = 'b'\ntext = 'c'", `4:3: reply[2] unknown key "txet"`},
		"unknown in usage": {"[[reply]]\nusage = { promt = 1 }", `2:11: reply[1] unknown key "promt"`},
		"wrong type":       {"[[reply]]\ntext = 1\n[[reply]]\ntext = 'a'", "2:1: reply[1] incompatible types: TOML value has type int64; destination has type string"},
		"bad duration":     {"[[reply]]\ntext = 'a'\ndelay = 'soon'", `3:10: reply[1] "soon" is no duration: want one like 1.5s`},
		"says nothing":     {"[[reply]]\ntext = 'a'\n\n[[reply]]\nagent = 'x'", "4:1: reply[2] says nothing: want one of text, chunks, thought, calls, usage, error, hang"},
		"text and chunks":  {"[[reply]]\ntext = 'a'\nchunks = ['b']", "1:1: reply[1] has both text and chunks: want one of them"},
		"nameless call":    {"[[reply]]\ncalls = [{ args = {} }]", "1:1: reply[1] call 1 has no name"},
		"negative usage":   {"[[reply]]\nusage = { total = -1 }", "1:1: reply[1] usage has a negative number: want 0 to 2147483647"},
		"header in a text": {"[[reply]]\ntext = '''\n[[reply]]\n'''\n[[reply]]\nnope = 1\ntext = 'a'", `6:1: reply[2] unknown key "nope"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseScript([]byte(c.script))
			require.Error(t, err)
			assert.Equal(t, c.want, err.Error())
		})
	}
}

func TestAllFaultsOfAScriptComeAtOnce(t *testing.T) {
	_, err := ParseScript([]byte("[[reply]]\ntext = 1\n[[reply]]\nx = 1\n[[reply]]\ncalls = [{}]"))
	require.Error(t, err)
	assert.Contains(t, err.Error(), "2:1: reply[1]")
	assert.Contains(t, err.Error(), `4:1: reply[2] unknown key "x"`)
	assert.Contains(t, err.Error(), "3:1: reply[2] says nothing")
	assert.Contains(t, err.Error(), "5:1: reply[3] call 1 has no name")
}

func TestRepliesMayStandInOneArray(t *testing.T) {
	replies, err := ParseScript([]byte(`reply = [{ text = "a" }, { text = "b" }]`))
	require.NoError(t, err)
	assert.Len(t, replies, 2)

	_, err = ParseScript([]byte(`reply = [{ text = "a" }, { agent = "b" }]`))
	require.ErrorContains(t, err, "reply[2] says nothing")
}

func FuzzParseScript(f *testing.F) {
	f.Add("[[reply]]\ntext = \"Hello.\"\n")
	f.Add("[[reply]]\nchunks = [\"a\"]\n[[reply]]\ncalls = [{ name = \"x\", args = { a = 1 } }]\n")
	f.Add("reply = [{ text = '''\n[[reply]]\n''' }]\n\"\"\"")
	f.Fuzz(func(t *testing.T, text string) {
		replies, err := ParseScript([]byte(text))
		if err != nil {
			return
		}
		for i := range replies {
			require.NoError(t, replies[i].Check())
		}
	})
}
