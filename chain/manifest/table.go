package manifest

import (
	"fmt"
	"slices"
	"strings"
)

// table reads the keys of one table, strictly: each key that is read is known,
// and close blames the others. A table can have an overlay above it, whose
// keys win.
type table struct {
	faults  *faults
	subject string // see Error
	stage   string
	path    []string // of the table in its documents
	below   int      // how much of the path the subject stands for
	layers  []layer  // the first that has a key gives it
	known   []string
}

// layer is what one document has to say about a table.
type layer struct {
	*source
	values map[string]any
}

// rootTable reads the top of a document.
func rootTable(f *faults, sources ...*source) *table {
	t := &table{faults: f}
	for _, s := range sources {
		t.layers = append(t.layers, layer{s, s.root})
	}
	return t
}

// sub opens the table at a key. A key that is absent gives an empty table.
func (t *table) sub(key string) *table {
	t.known = append(t.known, key)
	s := &table{faults: t.faults, subject: t.subject, stage: t.stage, path: join(t.path, key), below: t.below}
	for _, l := range t.layers {
		switch values := l.values[key].(type) {
		case map[string]any:
			s.layers = append(s.layers, layer{l.source, values})
		case nil:
		default:
			t.blame(l.source, key, "want a table, not %s", typeName(values))
		}
	}
	return s
}

// about names what the table and the tables below it describe.
func (t *table) about(subject string) *table {
	t.subject, t.below = subject, len(t.path)
	return t
}

// keys lists the table's keys as they stand in the document.
func (t *table) keys() []string {
	var all []string
	for _, l := range t.layers {
		for key := range l.values {
			if !slices.Contains(all, key) {
				all = append(all, key)
			}
		}
	}
	slices.SortFunc(all, func(a, b string) int {
		la, lb := t.layerOf(a), t.layerOf(b)
		return la.places[dotted(join(t.path, a)...)].key.start - lb.places[dotted(join(t.path, b)...)].key.start
	})
	return all
}

// has reports whether the table has the key.
func (t *table) has(key string) bool { return t.layerOf(key) != nil }

func (t *table) layerOf(key string) *layer {
	for i := range t.layers {
		if _, found := t.layers[i].values[key]; found {
			return &t.layers[i]
		}
	}
	return nil
}

// errorf blames the value of a key, or the table where the key is missing. A
// key can be dotted, in the form of path parts.
func (t *table) errorf(key []string, format string, args ...any) {
	s := t.sourceOf(key)
	if s == nil {
		return // only a table that is absent has no source, and its absence is blamed above it
	}
	t.add(s.valueFault(join(t.path, key...)), key, format, args...)
}

// sourceOf finds the document that a key's value comes from.
func (t *table) sourceOf(key []string) *source {
	if len(key) > 0 {
		if l := t.layerOf(key[0]); l != nil {
			return l.source
		}
	}
	if len(t.layers) == 0 {
		return nil
	}
	return t.layers[len(t.layers)-1].source
}

// blame is errorf for a key of a given document, not of the winning one.
func (t *table) blame(s *source, key, format string, args ...any) {
	t.add(s.keyFault(join(t.path, key)), []string{key}, format, args...)
}

func (t *table) add(e *Error, key []string, format string, args ...any) {
	e.subject, e.Stage = t.subject, t.stage
	e.Key = dotted(join(t.path, key...)[t.below:]...)
	*t.faults = append(*t.faults, e.describe(format, args...))
}

// close blames the keys that nothing has read.
func (t *table) close() {
	for _, l := range t.layers {
		for key := range l.values {
			if !slices.Contains(t.known, key) {
				t.blame(l.source, key, "unknown key: want %s", list(t.known))
			}
		}
	}
}

// read takes a key's value, or the fallback where the key is absent or wrong.
func read[T any](t *table, key string, fallback T, want func(any) (T, error)) T {
	t.known = append(t.known, key)
	l := t.layerOf(key)
	if l == nil {
		return fallback
	}
	v, err := want(l.values[key])
	if err != nil {
		t.errorf([]string{key}, "%w", err)
		return fallback
	}
	return v
}

// need is read for a key that must be there.
func need[T any](t *table, key, why string, want func(any) (T, error)) T {
	var zero T
	if !t.has(key) && len(t.layers) > 0 {
		t.errorf([]string{key}, "missing: %s", why)
	}
	return read(t, key, zero, want)
}

// readList takes a key's list, element by element, without those that are
// wrong. It returns nil where the key is absent.
func readList[T comparable](t *table, key string, want func(any) (T, error)) []T {
	elements := read(t, key, nil, asList)
	out := make([]T, 0, len(elements))
	for i, element := range elements {
		at := []string{key, fmt.Sprint(i)}
		v, err := want(element)
		switch {
		case err != nil:
			t.errorf(at, "%w", err)
		case slices.Contains(out, v):
			t.errorf(at, "%v stands here twice: take one out", quote(element))
		default:
			out = append(out, v)
		}
	}
	if elements == nil {
		return nil
	}
	return out
}

func quote(v any) string {
	if s, is := v.(string); is {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprint(v)
}

// join makes a new path; append alone could share memory with another one.
func join(path []string, more ...string) []string {
	return append(append(make([]string, 0, len(path)+len(more)), path...), more...)
}

func list(words []string) string { return strings.Join(words, ", ") }
