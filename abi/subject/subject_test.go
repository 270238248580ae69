package subject_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/subject"
)

// message is shaped like what the host edits: pointers, slices, maps that hold
// typed pointers, an embedded struct, binary data.
type message struct {
	*Envelope
	Role  string         `json:"role,omitempty"`
	Parts []*part        `json:"parts,omitempty"`
	Meta  map[string]any `json:"meta"`
	Count int            `json:"count"`
	local string
}

// Envelope is embedded by its exported name, as JSON demands of a pointer.
type Envelope struct {
	To string `json:"to,omitempty"`
}

type part struct {
	Text string `json:"text,omitempty"`
	Blob []byte `json:"blob,omitempty"`
	Call *call  `json:"call,omitempty"`
}

type call struct {
	Name string         `json:"name"`
	Args map[string]any `json:"args,omitempty"`
}

func letter() *message {
	return &message{
		Envelope: &Envelope{To: "Ann"},
		Role:     "user",
		Parts: []*part{
			{Text: "card 4111 to Zoë"},
			{Blob: []byte{1, 2, 3}},
			{Call: &call{Name: "confirm", Args: map[string]any{
				"original": &call{Name: "pay", Args: map[string]any{"card": "4111", "amount": 12.5, "to": []any{"a", "b"}}},
			}}},
		},
		Meta:  map[string]any{"a/b": "slash", "m~n": "tilde", "": "empty key", "null": nil, "void": ""},
		Count: 3,
		local: "unseen",
	}
}

// of makes a subject whose leaves are all scalars of the value.
func of(value any) *subject.Subject { return subject.New(value, everyScalar(nil)) }

func everyScalar(readOnly map[string]bool) subject.Walk {
	return func(v any, emit func(abi.Leaf)) {
		subject.Scalars(v, "", func(at, text string, number bool) {
			emit(abi.Leaf{Kind: abi.LeafText, Pointer: at, Text: text, Number: number, ReadOnly: readOnly[at]})
		})
	}
}

func document(t *testing.T, doc string) any {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal([]byte(doc), &v))
	return v
}

func add(pointer, value string) abi.Edit {
	return abi.Edit{Op: abi.EditAdd, Pointer: pointer, Value: []byte(value)}
}

func replace(pointer, value string) abi.Edit {
	return abi.Edit{Op: abi.EditReplace, Pointer: pointer, Value: []byte(value)}
}

func remove(pointer string) abi.Edit { return abi.Edit{Op: abi.EditRemove, Pointer: pointer} }

func splice(pointer string, start, end int, text string) abi.Edit {
	return abi.Edit{Op: abi.EditSplice, Pointer: pointer, Start: start, End: end, Text: text}
}

func TestGetFollowsRFC6901(t *testing.T) {
	s := of(document(t, `{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"k\"l":6," ":7,"m~n":8,"~1":9,"null":null,"void":"","none":{}}`))
	for pointer, want := range map[string]string{
		"/foo": `["bar","baz"]`, "/foo/0": `"bar"`, "/foo/1": `"baz"`, "/": `0`, "/a~1b": `1`, "/c%d": `2`, "/k\"l": `6`,
		"/ ": `7`, "/m~0n": `8`, "/~01": `9`, "/null": `null`, "/void": `""`, "/none": `{}`,
	} {
		got, err := s.Get(pointer, abi.MaxValue)
		if assert.NoError(t, err, "%q", pointer) {
			assert.JSONEq(t, want, string(got), "%q", pointer)
		}
	}
	for _, pointer := range []string{
		"/gone", "/foo/-", "/foo/2", "/foo/00", "/foo/01", "/foo/+1", "/foo/-1", "/foo/1.0", "/foo/x", "/foo/99999999999999999999",
		"/null/x", "/void/x", "/foo/0/x", "/none/x",
	} {
		_, err := s.Get(pointer, abi.MaxValue)
		assert.ErrorIs(t, err, abi.ErrNotFound, "%q", pointer)
	}
	for _, pointer := range []string{"foo", "#/foo", "/a~b", "/a~2b", "/a~"} {
		_, err := s.Get(pointer, abi.MaxValue)
		assert.ErrorIs(t, err, abi.ErrBadEdit, "%q", pointer)
	}
}

func TestGetOfTheWholeIsTheDocument(t *testing.T) {
	got, err := of(letter()).Get("", abi.MaxValue)
	require.NoError(t, err)
	want, err := json.Marshal(letter())
	require.NoError(t, err)
	assert.JSONEq(t, string(want), string(got))
}

func TestGetSeesAStructAsItsJSON(t *testing.T) {
	s := of(letter())
	for pointer, want := range map[string]string{
		"/to": `"Ann"`, "/role": `"user"`, "/count": `3`, "/parts/1/blob": `"AQID"`, "/parts/2/call/args/original/args/card": `"4111"`,
		"/meta/null": `null`, "/meta/void": `""`, "/meta/": `"empty key"`,
	} {
		got, err := s.Get(pointer, abi.MaxValue)
		if assert.NoError(t, err, pointer) {
			assert.JSONEq(t, want, string(got), pointer)
		}
	}
	for _, pointer := range []string{"/parts/1/text", "/parts/0/call", "/parts/0/call/name", "/local", "/Envelope", "/Role"} {
		_, err := s.Get(pointer, abi.MaxValue)
		assert.ErrorIs(t, err, abi.ErrNotFound, "%s: what JSON leaves out is not there", pointer)
	}
	bare := of(&message{})
	_, err := bare.Get("/to", abi.MaxValue)
	assert.ErrorIs(t, err, abi.ErrNotFound, "a field of an embedded pointer that is nil")
}

func TestEditsFollowRFC6902(t *testing.T) {
	const doc = `{"list":["a","b"],"map":{"x":1,"null":null},"void":""}`
	for name, c := range map[string]struct {
		edit abi.Edit
		want string
	}{
		"add a member":            {add("/map/y", `2`), `{"list":["a","b"],"map":{"x":1,"null":null,"y":2},"void":""}`},
		"add over a member":       {add("/map/x", `{"z":3}`), `{"list":["a","b"],"map":{"x":{"z":3},"null":null},"void":""}`},
		"add a null":              {add("/map/y", `null`), `{"list":["a","b"],"map":{"x":1,"null":null,"y":null},"void":""}`},
		"add inserts in a list":   {add("/list/0", `"z"`), `{"list":["z","a","b"],"map":{"x":1,"null":null},"void":""}`},
		"add at the length":       {add("/list/2", `"c"`), `{"list":["a","b","c"],"map":{"x":1,"null":null},"void":""}`},
		"add at the end":          {add("/list/-", `"c"`), `{"list":["a","b","c"],"map":{"x":1,"null":null},"void":""}`},
		"replace a member":        {replace("/map/x", `"y"`), `{"list":["a","b"],"map":{"x":"y","null":null},"void":""}`},
		"replace a null":          {replace("/map/null", `0`), `{"list":["a","b"],"map":{"x":1,"null":0},"void":""}`},
		"replace what is empty":   {replace("/void", `"v"`), `{"list":["a","b"],"map":{"x":1,"null":null},"void":"v"}`},
		"replace in a list":       {replace("/list/1", `[]`), `{"list":["a",[]],"map":{"x":1,"null":null},"void":""}`},
		"replace the whole":       {replace("", `{"n":1}`), `{"n":1}`},
		"remove a member":         {remove("/map/x"), `{"list":["a","b"],"map":{"null":null},"void":""}`},
		"remove a null":           {remove("/map/null"), `{"list":["a","b"],"map":{"x":1},"void":""}`},
		"remove closes the ranks": {remove("/list/0"), `{"list":["b"],"map":{"x":1,"null":null},"void":""}`},
	} {
		t.Run(name, func(t *testing.T) {
			original := document(t, doc)
			next, err := of(original).Apply([]abi.Edit{c.edit})
			require.NoError(t, err)
			got, err := json.Marshal(next.Value())
			require.NoError(t, err)
			assert.JSONEq(t, c.want, string(got))
			assert.Equal(t, document(t, doc), original, "the original stays as it is")
		})
	}
}

func TestEditsThatDoNotFit(t *testing.T) {
	const doc = `{"list":["a","b"],"map":{"x":1}}`
	for name, c := range map[string]struct {
		edit abi.Edit
		want error
	}{
		"add without a parent":       {add("/gone/x", `1`), abi.ErrNotFound},
		"add behind the end":         {add("/list/3", `1`), abi.ErrNotFound},
		"add with a leading zero":    {add("/list/00", `1`), abi.ErrNotFound},
		"add under a scalar":         {add("/map/x/y", `1`), abi.ErrNotFound},
		"replace what is missing":    {replace("/map/y", `1`), abi.ErrNotFound},
		"replace the end":            {replace("/list/-", `1`), abi.ErrNotFound},
		"remove what is missing":     {remove("/map/y"), abi.ErrNotFound},
		"remove the end":             {remove("/list/-"), abi.ErrNotFound},
		"remove the whole":           {remove(""), abi.ErrBadEdit},
		"the whole cannot be null":   {replace("", `null`), abi.ErrBadEdit},
		"no JSON":                    {add("/map/y", `{`), abi.ErrBadEdit},
		"more than one JSON":         {add("/map/y", `1 2`), abi.ErrBadEdit},
		"no value":                   {abi.Edit{Op: abi.EditAdd, Pointer: "/map/y"}, abi.ErrBadEdit},
		"a pointer without a slash":  {add("map", `1`), abi.ErrBadEdit},
		"no such edit":               {abi.Edit{Op: 9, Pointer: "/map/x", Value: []byte(`1`)}, abi.ErrBadEdit},
		"an edit that was forgotten": {abi.Edit{Pointer: "/map/x", Value: []byte(`1`)}, abi.ErrBadEdit},
	} {
		t.Run(name, func(t *testing.T) {
			original := document(t, doc)
			_, err := of(original).Apply([]abi.Edit{add("/map/first", `1`), c.edit})
			assert.ErrorIs(t, err, c.want)
			assert.Equal(t, document(t, doc), original)
		})
	}
}

func TestEditsGoInOneAfterTheOther(t *testing.T) {
	next, err := of(document(t, `{"list":["a"]}`)).Apply([]abi.Edit{
		add("/list/-", `"b"`), add("/list/0", `"z"`), remove("/list/1"), add("/new", `{}`), add("/new/x", `1`),
	})
	require.NoError(t, err)
	assert.Equal(t, document(t, `{"list":["z","b"],"new":{"x":1}}`), next.Value())
}

func TestEditsOfAStructKeepItsTypes(t *testing.T) {
	for name, c := range map[string]struct {
		edit abi.Edit
		want func(*message)
	}{
		"a field":                     {replace("/role", `"model"`), func(m *message) { m.Role = "model" }},
		"a field that was left out":   {add("/parts/1/text", `"t"`), func(m *message) { m.Parts[1].Text = "t" }},
		"a field behind an embedded":  {replace("/to", `"Bob"`), func(m *message) { m.To = "Bob" }},
		"a part":                      {add("/parts/0", `{"text":"new"}`), func(m *message) { m.Parts = append([]*part{{Text: "new"}}, m.Parts...) }},
		"a part less":                 {remove("/parts/1"), func(m *message) { m.Parts = append(m.Parts[:1], m.Parts[2:]...) }},
		"a field removed":             {remove("/role"), func(m *message) { m.Role = "" }},
		"inside a typed call in maps": {replace("/parts/2/call/args/original/args/card", `"x"`), func(m *message) { original(m).Args["card"] = "x" }},
		"a list in there":             {add("/parts/2/call/args/original/args/to/-", `"c"`), func(m *message) { original(m).Args["to"] = []any{"a", "b", "c"} }},
		"a number":                    {replace("/count", `4`), func(m *message) { m.Count = 4 }},
	} {
		t.Run(name, func(t *testing.T) {
			shared := letter()
			next, err := of(shared).Apply([]abi.Edit{c.edit})
			require.NoError(t, err)
			want := letter()
			c.want(want)
			assert.Equal(t, want, next.Value())
			assert.Equal(t, letter(), shared, "nothing shared is written")
		})
	}
	for name, e := range map[string]abi.Edit{
		"text for a number":      replace("/count", `"four"`),
		"a list for a struct":    replace("/parts/0", `[]`),
		"an unknown field":       add("/parts/0/colour", `"red"`),
		"a field JSON left out":  replace("/parts/1/text", `"t"`),
		"an unexported field":    add("/local", `"x"`),
		"inside an absent field": add("/parts/0/call/name", `"x"`),
	} {
		_, err := of(letter()).Apply([]abi.Edit{e})
		assert.Error(t, err, name)
	}
}

func original(m *message) *call { return m.Parts[2].Call.Args["original"].(*call) }

func TestWhatAnEditDoesNotTouchIsShared(t *testing.T) {
	shared := letter()
	next, err := of(shared).Apply([]abi.Edit{splice("/parts/0/text", 5, 9, "****")})
	require.NoError(t, err)
	got := next.Value().(*message)
	assert.Same(t, shared.Parts[1], got.Parts[1])
	assert.Same(t, shared.Parts[2], got.Parts[2])
	assert.NotSame(t, shared.Parts[0], got.Parts[0])
	assert.Equal(t, "unseen", got.local, "what JSON does not know survives")
}

func TestAnAmendWithoutEditsIsTheSameSubject(t *testing.T) {
	s := of(letter())
	next, err := s.Apply(nil)
	require.NoError(t, err)
	assert.Same(t, s, next)
}

func TestSplices(t *testing.T) {
	const text = "card 4111 to Zoë" // ë is two bytes, 15 and 16
	for name, c := range map[string]struct {
		splices []abi.Edit
		want    string
	}{
		"a range":                     {[]abi.Edit{splice("", 5, 9, "****")}, "card **** to Zoë"},
		"several, in any order":       {[]abi.Edit{splice("", 10, 12, "for"), splice("", 0, 4, "CARD"), splice("", 5, 9, "")}, "CARD  for Zoë"},
		"ranges that touch":           {[]abi.Edit{splice("", 0, 4, "A"), splice("", 4, 9, "B")}, "AB to Zoë"},
		"insertions keep their order": {[]abi.Edit{splice("", 4, 4, "1"), splice("", 4, 4, "2")}, "card12 4111 to Zoë"},
		"before and after a range":    {[]abi.Edit{splice("", 5, 5, "<"), splice("", 5, 9, "x"), splice("", 9, 9, ">")}, "card <x> to Zoë"},
		"all of it":                   {[]abi.Edit{splice("", 0, len(text), "")}, ""},
		"at the end":                  {[]abi.Edit{splice("", len(text), len(text), "!")}, text + "!"},
		"a whole character":           {[]abi.Edit{splice("", 15, 17, "e")}, "card 4111 to Zoe"},
	} {
		got, err := subject.Splice(text, c.splices)
		if assert.NoError(t, err, name) {
			assert.Equal(t, c.want, got, name)
		}
	}
	for name, splices := range map[string][]abi.Edit{
		"overlap":              {splice("", 0, 5, "x"), splice("", 4, 9, "y")},
		"twice the same range": {splice("", 0, 5, "x"), splice("", 0, 5, "y")},
		"behind the end":       {splice("", 0, len(text)+1, "")},
		"before the start":     {splice("", -1, 2, "")},
		"backwards":            {splice("", 5, 4, "")},
		"half a character":     {splice("", 15, 16, "")},
		"into a character":     {splice("", 16, 16, "x")},
		"half a replacement":   {splice("", 0, 4, "\xff")},
	} {
		_, err := subject.Splice(text, splices)
		assert.ErrorIs(t, err, abi.ErrBadEdit, name)
	}
	got, err := subject.Splice("\xffab", []abi.Edit{splice("", 1, 2, "")})
	require.NoError(t, err, "what was no UTF-8 need not become any")
	assert.Equal(t, "\xffb", got)
}

func TestSplicesAddressTheOriginal(t *testing.T) {
	shared := letter()
	next, err := of(shared).Apply([]abi.Edit{
		splice("/parts/0/text", 10, 12, "for"),
		remove("/parts/1"),
		splice("/parts/2/call/args/original/args/card", 0, 4, "[card]"),
		splice("/parts/0/text", 5, 9, "[card]"),
		replace("/meta/void", `"x"`),
	})
	require.NoError(t, err, "the splices go in before the edits, whatever their order")
	want := letter()
	want.Parts[0].Text = "card [card] for Zoë"
	original(want).Args["card"] = "[card]"
	want.Parts = append(want.Parts[:1], want.Parts[2:]...)
	want.Meta["void"] = "x"
	assert.Equal(t, want, next.Value())
	assert.Equal(t, letter(), shared)
}

func TestASplicedNumberBecomesAString(t *testing.T) {
	shared := letter()
	next, err := of(shared).Apply([]abi.Edit{splice("/parts/2/call/args/original/args/amount", 0, 4, "[amount]")})
	require.NoError(t, err)
	assert.Equal(t, "[amount]", original(next.Value().(*message)).Args["amount"])
	assert.Equal(t, letter(), shared)

	_, err = of(shared).Apply([]abi.Edit{splice("/count", 0, 1, "x")})
	assert.ErrorIs(t, err, abi.ErrBadEdit, "a typed number has no room for a text")

	_, err = of(map[string]json.Number{"n": "1"}).Apply([]abi.Edit{splice("/n", 0, 1, "x")})
	assert.ErrorIs(t, err, abi.ErrBadEdit, "nor has one that is a string to Go")
}

func TestSplicesThatAreRefused(t *testing.T) {
	shared := letter()
	s := subject.New(shared, everyScalar(map[string]bool{"/role": true}))
	for name, c := range map[string]struct {
		edit abi.Edit
		want error
	}{
		"read-only":            {splice("/role", 0, 4, "x"), abi.ErrBadEdit},
		"no leaf":              {splice("/parts/1/blob", 0, 1, "x"), abi.ErrNotFound},
		"nothing there at all": {splice("/gone", 0, 0, "x"), abi.ErrNotFound},
		"out of range":         {splice("/to", 0, 4, "x"), abi.ErrBadEdit},
	} {
		_, err := s.Apply([]abi.Edit{splice("/to", 0, 1, "X"), c.edit})
		assert.ErrorIs(t, err, c.want, name)
		assert.Equal(t, letter(), shared, name)
	}
}

func TestScalarsAreListedInDocumentOrder(t *testing.T) {
	var got []string
	subject.Scalars(letter(), "/at", func(pointer, text string, number bool) {
		if number {
			text += " (number)"
		}
		got = append(got, pointer+" = "+text)
	})
	assert.Equal(t, []string{
		"/at/to = Ann",
		"/at/role = user",
		"/at/parts/0/text = card 4111 to Zoë",
		"/at/parts/2/call/name = confirm",
		"/at/parts/2/call/args/original/name = pay",
		"/at/parts/2/call/args/original/args/amount = 12.5 (number)",
		"/at/parts/2/call/args/original/args/card = 4111",
		"/at/parts/2/call/args/original/args/to/0 = a",
		"/at/parts/2/call/args/original/args/to/1 = b",
		"/at/meta/ = empty key",
		"/at/meta/a~1b = slash",
		"/at/meta/m~0n = tilde",
		"/at/meta/void = ",
		"/at/count = 3 (number)",
	}, got)
}

func TestScalarsOfNumbers(t *testing.T) {
	got := map[string]string{}
	subject.Scalars(map[string]any{
		"i": int64(-4111111111111111), "u": uint8(7), "f": 1e21, "whole": 4111111111111111.0, "n": json.Number("4.10"),
		"b": true, "nil": nil, "bytes": []byte("xx"), "array": [2]int{1, 2},
	}, "", func(pointer, text string, number bool) {
		assert.True(t, number, pointer)
		got[pointer] = text
	})
	assert.Equal(t, map[string]string{
		"/i": "-4111111111111111", "/u": "7", "/f": "1e+21", "/whole": "4111111111111111", "/n": "4.10", "/array/0": "1", "/array/1": "2",
	}, got)
}

func TestEveryScalarCanBeFoundAndRemoved(t *testing.T) {
	value := map[string]any{"array": [2]string{"a", "b"}, "letter": letter(), "numbers": []int{1, 2}}
	subject.Scalars(value, "", func(pointer, text string, number bool) {
		_, err := of(value).Get(pointer, abi.MaxValue)
		assert.NoError(t, err, pointer)
		_, err = of(value).Apply([]abi.Edit{remove(pointer)})
		assert.NoError(t, err, pointer)
	})
	assert.Equal(t, letter(), value["letter"])
	assert.Equal(t, [2]string{"a", "b"}, value["array"])
}

func TestCloneSharesNothing(t *testing.T) {
	shared := map[string]any{"letter": letter(), "value": *original(letter()), "list": []any{map[string]any{"x": 1}}, "nil": nil}
	copied := subject.Clone(shared).(map[string]any)
	require.Equal(t, shared, copied)

	m := copied["letter"].(*message)
	m.Role, m.Parts[0].Text, m.Parts[1].Blob[0] = "x", "x", 9
	m.Meta["void"] = "x"
	original(m).Args["card"] = "x"
	original(m).Args["to"].([]any)[0] = "x"
	copied["value"].(call).Args["card"] = "x"
	copied["list"].([]any)[0].(map[string]any)["x"] = 2

	assert.Equal(t, letter(), shared["letter"])
	assert.Equal(t, *original(letter()), shared["value"])
	assert.Equal(t, []any{map[string]any{"x": 1}}, shared["list"])
	assert.Nil(t, subject.Clone(nil))
}

func TestTheLeavesAreWalkedOnce(t *testing.T) {
	walks := 0
	s := subject.New("x", func(v any, emit func(abi.Leaf)) {
		walks++
		emit(abi.Leaf{Text: v.(string)})
	})
	assert.Zero(t, walks, "not before somebody asks")
	assert.Equal(t, s.Leaves(), s.Leaves())
	assert.Equal(t, 1, walks)
}

func TestAWalkThatPanicsDoesSoForAll(t *testing.T) {
	s := subject.New(nil, func(_ any, emit func(abi.Leaf)) {
		emit(abi.Leaf{Text: "a part of the leaves"})
		panic("walk")
	})
	for range 2 {
		assert.PanicsWithValue(t, "walk", func() { s.Leaves() })
	}
}

func TestASubjectOfNothing(t *testing.T) {
	s := of(nil)
	got, err := s.Get("", abi.MaxValue)
	require.NoError(t, err)
	assert.Equal(t, "null", string(got))
	_, err = s.Get("/x", abi.MaxValue)
	assert.ErrorIs(t, err, abi.ErrNotFound)
	for _, e := range []abi.Edit{add("", `1`), add("/x", `1`), remove("/x"), splice("", 0, 0, "x")} {
		_, err := s.Apply([]abi.Edit{e})
		assert.Error(t, err)
	}
}

// FuzzApply: no document and no edits panic, and whatever becomes of the
// edits, the original stays as it is.
func FuzzApply(f *testing.F) {
	f.Add(`{"a":["x",{"b":1}],"c":null}`, byte(1), "/a/-", `{"d":2}`, byte(4), "/a/0", 0, 1, "yy")
	f.Add(`{"text":"Zoë"}`, byte(4), "/text", "x", byte(4), "/text", 3, 4, "")
	f.Add(`["~","/"]`, byte(2), "/0", "", byte(3), "/~01", 0, 0, "")
	f.Add(`"x"`, byte(1), "", `null`, byte(2), "", 0, 0, "")
	f.Add(`{"text":"in a struct"}`, byte(3), "/parts/0/call", `{"args":{"x":[]}}`, byte(1), "/parts/0/call/args/x/-", 0, 0, "1")
	f.Fuzz(func(t *testing.T, doc string, op1 byte, pointer1, value1 string, op2 byte, pointer2 string, start, end int, value2 string) {
		edits := []abi.Edit{
			{Op: abi.EditOp(op1), Pointer: pointer1, Value: []byte(value1), Start: start, End: end, Text: value1},
			{Op: abi.EditOp(op2), Pointer: pointer2, Value: []byte(value2), Start: start, End: end, Text: value2},
		}
		var tree any
		if json.Unmarshal([]byte(doc), &tree) != nil {
			tree = doc
		}
		fuzzed := func() *message {
			m := letter()
			m.Meta["doc"], m.Parts[0].Text = subject.Clone(tree), doc
			return m
		}
		for _, value := range []any{tree, fuzzed()} {
			before := subject.Clone(value)
			next, err := of(value).Apply(edits)
			if (next == nil) == (err == nil) {
				t.Fatalf("a subject or an error: %v, %v", next, err)
			}
			if next != nil {
				next.Leaves()
				if _, err := next.Get(pointer1, abi.MaxValue); err != nil && next.Value() == nil {
					t.Fatal(err)
				}
			}
			require.Equal(t, before, value)
		}
	})
}

func TestGetMakesNoJSONThatIsTooLong(t *testing.T) {
	half := strings.Repeat("x", abi.MaxValue/2)
	type content struct {
		Text  string
		Blob  []byte
		Local string `json:"-"`
		next  *content
		Parts []*content
	}
	for name, value := range map[string]any{
		"a map":        map[string]any{"a": half, "b": []any{half, "x"}},
		"a struct":     &content{Text: half, Parts: []*content{{Text: half}, {Text: "x"}}},
		"binary":       content{Text: half, Blob: []byte(half + "x")},
		"a short list": []any{half, half, "x"},
	} {
		_, err := of(value).Get("", abi.MaxValue)
		require.ErrorIs(t, err, abi.ErrTooLarge, name)
	}
	doc, err := of(map[string]any{"a": half, "b": []any{half, "x"}}).Get("/b", abi.MaxValue)
	require.NoError(t, err, "a part of it")
	assert.Len(t, doc, len(half)+len(`["","x"]`))
	unexported := content{Text: half, next: &content{Text: half + half}, Local: half + half}
	_, err = of(unexported).Get("", abi.MaxValue)
	require.NoError(t, err, "what is no part of the JSON")
}
