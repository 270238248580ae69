package meter

import (
	"cmp"
	"slices"
)

// maxGap is how many zeros are put between two data segments to make one of
// them. Go's linker leaves out every short run of zeros, which makes tens of
// thousands of segments; each would be an instruction of the start function
// and a slice in every instance.
const maxGap = 64

// join makes one data segment of several that follow one another closely, in
// a memory of the module's own that has room for all of them from the
// beginning: there the bytes between are zero already and none is out of
// bounds. It leaves segments alone that instructions may name, and those of a
// module that writes some over others.
func (m *module) join() {
	if m.dataCount >= 0 || !m.sections[sectionMemory].more() {
		return
	}
	r := m.sections[sectionMemory]
	if r.u32() == 0 {
		return
	}
	size := int64(r.limits()) << 16
	spans, apart := m.spans()
	if !apart {
		return
	}
	joined := m.data[:0:0]
	for i, s := range m.data {
		if i > 0 && spans[i].after == i-1 && spans[i].to <= size {
			if gap := spans[i].from - spans[i-1].to; gap <= maxGap {
				last := &joined[len(joined)-1]
				last.bytes = append(append(last.bytes, make([]byte, gap)...), s.bytes...)
				continue
			}
		}
		s.bytes = s.bytes[:len(s.bytes):len(s.bytes)] // to grow elsewhere
		joined = append(joined, s)
	}
	m.data = joined
}

// span is where in the memory a data segment goes, and which one comes before
// it there, or -1.
type span struct {
	from, to int64
	after    int
}

// spans reports whether the segments are all active, at places that are plain
// numbers, and apart from each other.
func (m *module) spans() (spans []span, apart bool) {
	spans = make([]span, len(m.data))
	order := make([]int, len(m.data))
	for i, s := range m.data {
		from, known := s.constantOffset()
		if !known {
			return nil, false
		}
		spans[i], order[i] = span{from, from + int64(len(s.bytes)), -1}, i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(spans[a].from, spans[b].from), cmp.Compare(spans[a].to, spans[b].to))
	})
	for i, at := range order[min(1, len(order)):] {
		before := order[i]
		if spans[at].from < spans[before].to {
			return nil, false
		}
		spans[at].after = before
	}
	return spans, true
}

// constantOffset is the offset of an active segment, if it is a plain number.
func (s *segment) constantOffset() (int64, bool) {
	if s.passive {
		return 0, false
	}
	r := s.offset
	if r.byte() != opI32Const {
		return 0, false
	}
	at := int64(uint32(r.signed(5)))
	return at, r.byte() == opEnd && !r.more()
}
