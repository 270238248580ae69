package manifest

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const awkward = `
top = 1 # comment with [brackets] and "quotes"
"quoted key".'other.key' = "x"
a . b . "c\"d" = [ 1, # one
  "two, ]", [3, 4],
  { five = 5, six.seven = '}' }, # six
]
long = """
[not.a.table]
key = "no" \""" still ""\
 inside""""" # two quotes belong to the text
raw = '''
x = 1
'''
when = 1979-05-27 07:32:00
inline = { x = { y = [ { z = 1 } ] }, "a.b" = 2 }
empty = {}
[ spaced . "table name" ]
k=1
[[list]]
k = 1
[[list.sub]]
k = 2
[list.sub.deep]
k = 3
[[list]]
[[list.sub]]
k = "\u00e9"
"\u00e9" = 1
[last]
k = true`

func TestPositions(t *testing.T) {
	s, fault := parse("x", []byte(awkward))
	require.Nil(t, fault)
	for path, want := range map[string]string{
		"top":                      "1",
		`"quoted key"."other.key"`: `"x"`,
		`a.b."c\"d".0`:             "1",
		`a.b."c\"d".1`:             `"two, ]"`,
		`a.b."c\"d".2.1`:           "4",
		`a.b."c\"d".3.six.seven`:   "'}'",
		"raw":                      "'''\nx = 1\n'''",
		"when":                     "1979-05-27 07:32:00",
		"inline.x.y.0.z":           "1",
		`inline."a.b"`:             "2",
		"empty":                    "{}",
		`spaced."table name".k`:    "1",
		"list.0.sub.0.deep.k":      "3",
		"list.1.sub.0.k":           `"\u00e9"`,
		`list.1.sub.0."é"`:         "1",
		"last.k":                   "true",
	} {
		at, found := s.places[path]
		if assert.True(t, found, path) {
			assert.Equal(t, want, awkward[at.value.start:at.value.end], path)
		}
	}
	assert.True(t, strings.HasSuffix(awkward[s.places["long"].value.start:s.places["long"].value.end], `inside"""""`))
	table := s.places[`spaced."table name"`]
	assert.Equal(t, `spaced . "table name"`, awkward[table.key.start:table.key.end])
}

func TestDocumentsThatAreTooBigOrTooDeep(t *testing.T) {
	for text, want := range map[string]string{
		"a = " + strings.Repeat("[", 1<<19):   "nests deeper than 64",
		"a = " + strings.Repeat("{a=", 1<<18): "nests deeper than 64",
		strings.Repeat("a.", 1<<18) + "a = 1": "nests deeper than 64",
		strings.Repeat("#", 1<<20+1):          "1048577 bytes: want at most 1048576",
	} {
		_, fault := parse("hooks.toml", []byte(text))
		require.NotNil(t, fault)
		assert.Equal(t, "hooks.toml: "+want, fault.Error())
	}
}

// everyPath calls f with the path of each value.
func everyPath(v any, path []string, f func([]string)) {
	if len(path) > 0 {
		f(path)
	}
	switch v := v.(type) {
	case map[string]any:
		for key, element := range v {
			everyPath(element, join(path, key), f)
		}
	case []any:
		for i, element := range v {
			everyPath(element, join(path, strconv.Itoa(i)), f)
		}
	case []map[string]any:
		for i, element := range v {
			everyPath(element, join(path, strconv.Itoa(i)), f)
		}
	}
}

// Every value that the library finds in a document has a place, and a text
// that is no document does no harm.
func FuzzPositions(f *testing.F) {
	for _, seed := range []string{
		awkward, "a=1", "[a]\nb.c=\"\\\"\"", "a={b=[{c=1},{}]}", "x='''''a'''''\ny=1", "[[a]]\n[[a]]\nb=1\n[a.c]\nd=2",
		"a.b=1\na.c=2", "\xef\xbb\xbfa=1", "a=[[],[[1]]]", "'\"'=1", "\"\\u0041\"=1", "a=\"\"\"\\\"\"\"\"\"\"\nb=1",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, fault := parse("x", data)
		places, _ := newPositions(data)
		for _, at := range places {
			_, _, text := lineAt(data, at.key.start)
			require.LessOrEqual(t, text.start, text.end)
			require.LessOrEqual(t, at.key.start, at.key.end)
			require.LessOrEqual(t, at.value.start, at.value.end)
			require.LessOrEqual(t, at.value.end, len(data))
		}
		if fault != nil {
			return
		}
		everyPath(s.root, nil, func(path []string) {
			require.Contains(t, places, dotted(path...))
		})
	})
}
