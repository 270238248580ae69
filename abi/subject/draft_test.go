package subject_test

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/subject"
)

// manyEdits are batches whose every edit touches the same container.
var manyEdits = map[string]func(n int) (value any, edits []abi.Edit){
	"splices in a map": func(n int) (any, []abi.Edit) {
		m := map[string]any{}
		var edits []abi.Edit
		for i := range n {
			key := fmt.Sprintf("user%d", i)
			m[key] = "a@b.com"
			edits = append(edits, splice("/in/"+key, 0, 7, "[EMAIL]"))
		}
		return map[string]any{"in": m}, edits
	},
	"members added": func(n int) (any, []abi.Edit) {
		var edits []abi.Edit
		for i := range n {
			edits = append(edits, add("/in/k"+strconv.Itoa(i), `1`))
		}
		return map[string]any{"in": map[string]any{}}, edits
	},
	"members removed": func(n int) (any, []abi.Edit) {
		m := map[string]any{}
		var edits []abi.Edit
		for i := range n {
			m[strconv.Itoa(i)] = 1
			edits = append(edits, remove("/"+strconv.Itoa(i)))
		}
		return m, edits
	},
	"parts added": func(n int) (any, []abi.Edit) {
		var edits []abi.Edit
		for range n {
			edits = append(edits, add("/parts/-", `{"text":"t"}`))
		}
		return &message{Parts: []*part{{}}}, edits
	},
	"parts written": func(n int) (any, []abi.Edit) {
		m := &message{}
		var edits []abi.Edit
		for i := range n {
			m.Parts = append(m.Parts, &part{Text: "a@b.com"})
			edits = append(edits, splice(fmt.Sprintf("/parts/%d/text", i), 0, 7, "[EMAIL]"))
		}
		return m, edits
	},
	"parts inserted and removed": func(n int) (any, []abi.Edit) {
		var edits []abi.Edit
		for range n {
			edits = append(edits, add("/parts/0", `{"text":"t"}`))
		}
		for range n {
			edits = append(edits, remove("/parts/0"))
		}
		return &message{Parts: []*part{{}}}, edits
	},
}

// TestAContainerIsCopiedOnceHoweverManyEditsTouchIt: eight times the edits take
// about eight times the memory. A copy for each of them would take 64 times.
func TestAContainerIsCopiedOnceHoweverManyEditsTouchIt(t *testing.T) {
	for name, batch := range manyEdits {
		few, many := allocated(t, batch, 500), allocated(t, batch, 4000)
		assert.Less(t, many, 16*few, name)
	}
}

// allocated is how many bytes it takes to apply a batch of n edits.
func allocated(t *testing.T, batch func(int) (any, []abi.Edit), n int) uint64 {
	t.Helper()
	value, edits := batch(n)
	s := of(value)
	s.Leaves()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := s.Apply(edits)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	return after.TotalAlloc - before.TotalAlloc
}

func BenchmarkApply20000(b *testing.B) {
	for name, batch := range manyEdits {
		value, edits := batch(20_000)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := of(value).Apply(edits); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestManyEditsWriteToNothingShared(t *testing.T) {
	twice := map[string]any{"x": "1"}
	shared := func() map[string]any {
		return map[string]any{"a": twice, "b": twice, "array": [2]string{"x", "y"}, "letter": letter()}
	}
	s := of(shared())
	next, err := s.Apply([]abi.Edit{
		splice("/a/x", 0, 1, "one"), add("/a/y", `"2"`), remove("/a/x"),
		replace("/array/0", `"z"`), replace("/array/1", `"z"`),
		splice("/letter/to", 0, 3, "Bob"), replace("/letter/to", `"Eve"`), add("/letter/parts/1", `{}`), remove("/letter/parts/0"),
		add("/letter/parts/2/call/args/original/args/to/0", `"z"`), remove("/letter/parts/2/call/args/original/args/to/1"),
	})
	require.NoError(t, err)
	assert.Equal(t, shared(), s.Value(), "the original")
	assert.Equal(t, map[string]any{"x": "1"}, twice)

	got := next.Value().(map[string]any)
	assert.Equal(t, map[string]any{"y": "2"}, got["a"])
	assert.Equal(t, map[string]any{"x": "1"}, got["b"], "the same map in another place")
	assert.Equal(t, [2]string{"z", "z"}, got["array"])
	want := letter()
	want.To = "Eve"
	original(want).Args["to"] = []any{"z", "b"}
	want.Parts = append([]*part{{}}, want.Parts[1:]...)
	assert.Equal(t, want, got["letter"])

	edited := subject.Clone(got)
	_, err = next.Apply([]abi.Edit{add("/letter/parts/-", `{}`), add("/a/z", `1`), replace("/letter/to", `"x"`)})
	require.NoError(t, err)
	assert.Equal(t, edited, next.Value(), "what one Apply owned the next one does not")
}

func TestNullIsNoStruct(t *testing.T) {
	for name, e := range map[string]abi.Edit{
		"in place of a part":     replace("/parts/0", `null`),
		"as one more part":       add("/parts/-", `null`),
		"in a list of parts":     replace("/parts", `[{"text":"t"},null]`),
		"in a list in the whole": replace("", ` {"parts":[null]}`),
		"for the whole":          replace("", ` null `),
	} {
		_, err := of(letter()).Apply([]abi.Edit{e})
		assert.ErrorIs(t, err, abi.ErrBadEdit, name)
	}
	_, err := of(map[string]map[string]*call{}).Apply([]abi.Edit{add("/x", `{"y":null}`)})
	assert.ErrorIs(t, err, abi.ErrBadEdit, "in a map of structs")

	next, err := of(letter()).Apply([]abi.Edit{replace("/parts/2/call", `null`), replace("/meta", `{"list":[null]}`), add("/meta/x", `null`)})
	require.NoError(t, err, "a field may be empty, and so may what has no type")
	assert.Nil(t, next.Value().(*message).Parts[2].Call)
	assert.Equal(t, map[string]any{"list": []any{nil}, "x": nil}, next.Value().(*message).Meta)
}

func TestDecodeWritesOverWhatIsThere(t *testing.T) {
	c := call{Name: "pay", Args: map[string]any{"x": "y"}}
	require.NoError(t, subject.Decode([]byte(`{"name":"lookup"}`), &c))
	assert.Equal(t, call{Name: "lookup", Args: map[string]any{"x": "y"}}, c)

	for _, doc := range []string{`null`, "\n null", `{"parts":[null]}`, `[]`, `{`, ``} {
		assert.ErrorIs(t, subject.Decode([]byte(doc), &message{}), abi.ErrBadEdit, doc)
	}
}

func TestACheckRefusesWhatEditsMakeOfAValue(t *testing.T) {
	renamed := errors.New("the role stays")
	s := subject.NewChecked(letter(), everyScalar(nil), func(before, after any) error {
		if before.(*message).Role != after.(*message).Role {
			return renamed
		}
		return nil
	})
	for name, edits := range map[string][]abi.Edit{
		"an edit":   {replace("/role", `"model"`)},
		"a splice":  {splice("/role", 0, 1, "")},
		"the whole": {replace("", `{"count":1}`)},
	} {
		_, err := s.Apply(edits)
		assert.ErrorIs(t, err, renamed, name)
		assert.ErrorIs(t, err, abi.ErrBadEdit, name)
	}
	next, err := s.Apply([]abi.Edit{remove("/role"), add("/role", `"user"`), replace("/count", `4`)})
	require.NoError(t, err, "only what comes of all edits counts")
	_, err = next.Apply([]abi.Edit{remove("/role")})
	assert.ErrorIs(t, err, renamed, "the check goes on with the value")
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"parts":[{"text":"t"},null],"meta":{"x":[null]}}`))
	f.Add([]byte(`{"to":"Ann","parts":[{"call":{"name":"x","args":{"y":null}}}]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		m := &message{Envelope: &Envelope{}}
		if subject.Decode(doc, m) != nil {
			return
		}
		for _, p := range m.Parts {
			require.NotNil(t, p)
		}
	})
}

// What is applied when a stage has returned does not count as its time, so it
// has a bound of its own.
func TestADraftThatIsTooMuchWorkIsABadEdit(t *testing.T) {
	many := func(n int, e abi.Edit) []abi.Edit {
		edits := make([]abi.Edit, n)
		for i := range edits {
			edits[i] = e
		}
		return edits
	}
	value := func() any { return map[string]any{"list": make([]any, 5_000), "a": 1.0} }
	deep := any(1.0)
	for range 500 {
		deep = map[string]any{"d": deep}
	}
	for name, edits := range map[string][]abi.Edit{
		"insertions at the head":  many(abi.MaxEdits, add("/list/0", "1")),
		"a pointer of many steps": many(abi.MaxEdits, replace(strings.Repeat("/d", 500), "1")),
	} {
		of := value()
		if strings.Contains(name, "steps") {
			of = deep
		}
		_, err := subject.New(of, func(any, func(abi.Leaf)) {}).Apply(edits)
		require.ErrorIs(t, err, abi.ErrBadEdit, name)
		require.ErrorContains(t, err, "too much work", name)
	}
	for name, edits := range map[string][]abi.Edit{
		"as many edits as a call may have":  many(abi.MaxEdits, replace("/a", "1")),
		"as many elements at the end":       many(abi.MaxEdits, add("/list/-", "1")),
		"all of a long list from its begin": many(5_000, remove("/list/0")),
	} {
		_, err := subject.New(value(), func(any, func(abi.Leaf)) {}).Apply(edits)
		require.NoError(t, err, name)
	}
}
