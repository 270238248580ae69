// Package subject shows any Go value as the JSON document that a hook is
// about, and applies edits to it by copying only what they touch. The host
// uses it on ADK's own values; nothing that ADK, the session or another
// consumer shares is ever written to.
package subject

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/hookhost/hookhost/abi"
)

// Walk lists the leaves of a value in document order.
type Walk func(value any, emit func(abi.Leaf))

// Check says why edits may not turn one value into another.
type Check func(before, after any) error

// Subject is a value with a walk over its leaves. It is immutable.
type Subject struct {
	value  any
	walk   Walk
	check  Check
	leaves func() []abi.Leaf
}

// New makes a subject of a value that nobody changes while it lives.
func New(value any, walk Walk) *Subject { return NewChecked(value, walk, nil) }

// NewChecked makes a subject that can only be edited into what passes the
// check; anything else is ErrBadEdit.
func NewChecked(value any, walk Walk, check Check) *Subject {
	return &Subject{value: value, walk: walk, check: check, leaves: sync.OnceValue(func() (leaves []abi.Leaf) {
		walk(value, func(l abi.Leaf) { leaves = append(leaves, l) })
		return leaves
	})}
}

// Value returns the Go value.
func (s *Subject) Value() any { return s.value }

// Leaves lists the leaves. The walk runs once, when they are first asked for;
// where it panics, it does so for all who ask, so that nobody takes a part of
// the leaves for all of them.
func (s *Subject) Leaves() []abi.Leaf { return s.leaves() }

// Get returns the JSON at a pointer. Of what is certain to be longer than so
// many bytes it is not even made, and ErrTooLarge.
func (s *Subject) Get(pointer string, most int) ([]byte, error) {
	at, err := get(s.value, pointer)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", pointer, err)
	}
	if left := most; !fits(reflect.ValueOf(at), &left, maxDepth) {
		return nil, fmt.Errorf("get %s: %w", pointer, abi.ErrTooLarge)
	}
	doc, err := json.Marshal(at)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w: %w", pointer, abi.ErrBadEdit, err)
	}
	return doc, nil
}

// Apply makes the edited subject.
func (s *Subject) Apply(edits []abi.Edit) (abi.Subject, error) {
	if len(edits) == 0 {
		return s, nil
	}
	d := newDraft(s.value)
	if err := s.splice(d, edits); err != nil {
		return nil, err
	}
	for _, e := range edits {
		if e.Op == abi.EditSplice {
			continue
		}
		if err := d.edit(e); err != nil {
			return nil, fmt.Errorf("edit %s: %w", e.Pointer, err)
		}
	}
	value := d.value()
	if s.check != nil {
		if err := s.check(s.value, value); err != nil {
			return nil, fmt.Errorf("%w: %w", abi.ErrBadEdit, err)
		}
	}
	return NewChecked(value, s.walk, s.check), nil
}

// splice applies the splices, leaf by leaf: all of them address the original
// bytes, so those of one leaf go in together.
func (s *Subject) splice(d *draft, edits []abi.Edit) error {
	byLeaf := make(map[string][]abi.Edit)
	for _, e := range edits {
		if e.Op == abi.EditSplice {
			byLeaf[e.Pointer] = append(byLeaf[e.Pointer], e)
		}
	}
	if len(byLeaf) == 0 {
		return nil
	}
	for _, leaf := range s.Leaves() {
		splices, ok := byLeaf[leaf.Pointer]
		if !ok {
			continue
		}
		delete(byLeaf, leaf.Pointer)
		if leaf.ReadOnly {
			return fmt.Errorf("splice %s: %w: the leaf is read-only here", leaf.Pointer, abi.ErrBadEdit)
		}
		text, err := Splice(leaf.Text, splices)
		if err != nil {
			return fmt.Errorf("splice %s: %w", leaf.Pointer, err)
		}
		if err := d.setText(leaf.Pointer, text); err != nil {
			return fmt.Errorf("splice %s: %w", leaf.Pointer, err)
		}
	}
	for pointer := range byLeaf {
		return fmt.Errorf("splice %s: %w", pointer, abi.ErrNotFound)
	}
	return nil
}

// Splice puts texts in place of ranges of the original. Ranges may touch but
// not overlap; insertions at one place keep their order. Text that was UTF-8
// stays UTF-8.
func Splice(original string, splices []abi.Edit) (string, error) {
	ordered := slices.Clone(splices)
	slices.SortStableFunc(ordered, func(a, b abi.Edit) int { return a.Start - b.Start })
	out := make([]byte, 0, len(original))
	at := 0
	for _, e := range ordered {
		if e.Start < at || e.End < e.Start || e.End > len(original) {
			return "", fmt.Errorf("%w: range %d-%d of %d bytes", abi.ErrBadEdit, e.Start, e.End, len(original))
		}
		out = append(out, original[at:e.Start]...)
		out = append(out, e.Text...)
		at = e.End
	}
	out = append(out, original[at:]...)
	if utf8.ValidString(original) && !utf8.Valid(out) {
		return "", fmt.Errorf("%w: a range splits a character", abi.ErrBadEdit)
	}
	return string(out), nil
}
