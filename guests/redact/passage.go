package main

import (
	"iter"
	"strings"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/guest"
)

// A passage is what a reader sees as one text: a leaf and those that go on
// with it.
type passage struct {
	leaves []guest.Leaf
	text   string // of all leaves
}

// passages lists what can be changed.
func passages(c *guest.Call) iter.Seq[passage] {
	return func(yield func(passage) bool) {
		var leaves []guest.Leaf
		for leaf := range c.Leaves() {
			if leaf.ReadOnly {
				continue
			}
			if !leaf.Continues && len(leaves) > 0 {
				if !yield(passageOf(leaves)) {
					return
				}
				leaves = nil
			}
			leaves = append(leaves, leaf)
		}
		if len(leaves) > 0 {
			yield(passageOf(leaves))
		}
	}
}

func passageOf(leaves []guest.Leaf) passage {
	texts := make([]string, len(leaves))
	for i, leaf := range leaves {
		texts[i] = leaf.Text()
	}
	return passage{leaves: leaves, text: strings.Join(texts, "")}
}

func (p passage) kind() string { return p.leaves[0].Kind.String() }

// streams reports whether the passage is what models say piece by piece.
func (p passage) streams() bool {
	kind := p.leaves[0].Kind
	return kind == abi.LeafText || kind == abi.LeafThought
}

// open is the index of the last leaf that the stream can go on with, -1 if
// there is none.
func (p passage) open() int {
	i := len(p.leaves) - 1
	for i >= 0 && p.leaves[i].Final {
		i--
	}
	return i
}

// final reports whether nothing follows that could go on with the passage.
func (p passage) final() bool { return p.open() < 0 }

// holdable is how many bytes at the end of the passage the host can hold.
func (p passage) holdable() int {
	if i := p.open(); i >= 0 {
		return p.leaves[i].Len
	}
	return 0
}

// hold keeps the last bytes of the passage back.
func (p passage) hold(bytes int) {
	if bytes > 0 {
		p.leaves[p.open()].Hold(bytes)
	}
}

// lookBehind is what the next passage of the stream has to know of what went
// out: nothing, when nothing goes on with this one.
func (p passage) lookBehind(out string) string {
	if p.final() {
		return ""
	}
	return out[max(0, len(out)-lookBehind):]
}

// mask puts the replacements in, each in the leaf where its span begins.
func (p passage) mask(spans []span) {
	at := 0   // where the leaf begins
	next := 0 // the first span that ends behind the leaf's begin
	for _, leaf := range p.leaves {
		end := at + leaf.Len
		for i := next; i < len(spans) && spans[i].start < end; i++ {
			s := spans[i]
			with := s.with
			if s.start < at {
				with = ""
			}
			leaf.Splice(max(s.start, at)-at, min(s.end, end)-at, with)
			if s.end <= end {
				next = i + 1
			}
		}
		at = end
	}
}
