package main

import (
	"iter"
	"strings"

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

// final reports whether nothing follows that could go on with the passage.
func (p passage) final() bool { return p.leaves[len(p.leaves)-1].Final }

// lookBehind is what the next passage of the stream has to know of what went
// out: nothing, when nothing goes on with this one.
func (p passage) lookBehind(out string) string {
	if p.final() {
		return ""
	}
	return out[max(0, len(out)-lookBehind):]
}

// mask puts the replacements in, each in the leaf where its span begins. The
// spans count from so many bytes before the passage.
func (p passage) mask(spans []span, before int) {
	at := before // where the leaf begins
	next := 0    // the first span that ends behind the leaf's begin
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

// hold keeps the last bytes of the passage back.
func (p passage) hold(bytes int) {
	for i := len(p.leaves) - 1; i >= 0 && bytes > 0; i-- {
		n := min(bytes, p.leaves[i].Len)
		p.leaves[i].Hold(n)
		bytes -= n
	}
}
