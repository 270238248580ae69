package guest

import (
	"iter"

	"github.com/hookhost/hookhost/abi"
)

// Leaf is one string, or one number, that a person or a model reads.
type Leaf struct {
	Kind      abi.LeafKind
	Role      abi.LeafRole
	Len       int  // bytes of the text
	Number    bool // a number in its JSON form; once spliced it is a string
	Continues bool // a text part that goes on with the leaf before
	Final     bool // at OnModelChunk: nothing follows, so nothing can be held
	ReadOnly  bool // cannot be changed at this hook

	call  *Call
	index int32
}

// Leaves lists every string that a person or a model reads, in the order of
// the document. It shows the value as it came, never this hook's own changes.
func (c *Call) Leaves() iter.Seq[Leaf] {
	return func(yield func(Leaf) bool) {
		var record [abi.LeafSize]byte
		for i := int32(0); ; i++ {
			if n := c.border.Leaf(i, record[:]); n < 0 {
				if n != abi.NotFound {
					c.broken = Error(n)
				}
				return
			}
			if !yield(leafOf(record[:], c, i)) {
				return
			}
		}
	}
}

// leafOf decodes a leaf record: kind, role, flags and length.
func leafOf(record []byte, c *Call, index int32) Leaf {
	flags := uint32At(record, 8)
	return Leaf{
		Kind:      abi.LeafKind(uint32At(record, 0)),
		Role:      abi.LeafRole(uint32At(record, 4)),
		Len:       int(uint32At(record, 12)),
		Number:    flags&abi.LeafFlagNumber != 0,
		Continues: flags&abi.LeafFlagContinues != 0,
		Final:     flags&abi.LeafFlagFinal != 0,
		ReadOnly:  flags&abi.LeafFlagReadOnly != 0,
		call:      c,
		index:     index,
	}
}

// Text reads the text. When the host does not give it, Done fails.
func (l Leaf) Text() string {
	if l.Len == 0 {
		return ""
	}
	buf := make([]byte, l.Len)
	n := l.call.border.LeafRead(l.index, 0, buf)
	if n < 0 {
		l.call.broken = Error(n)
		return ""
	}
	return string(buf[:min(int(n), len(buf))])
}

// Path reads the leaf's JSON pointer.
func (l Leaf) Path() string {
	path, err := readString(func(buf []byte) int32 { return l.call.border.LeafPath(l.index, buf) })
	if err != nil {
		l.call.broken = err
	}
	return path
}

// Splice replaces the bytes from start to end. It counts in the text as it
// came, whatever was spliced before; splices do not overlap, and cut no
// character. A leaf that is read-only stays as it is, and Done does not mind.
func (l Leaf) Splice(start, end int, text string) error {
	if l.ReadOnly {
		return ErrWrongType
	}
	return l.call.edited(l.call.border.LeafSplice(l.index, int32(start), int32(end), text))
}

// Replace replaces the whole text.
func (l Leaf) Replace(text string) error { return l.Splice(0, l.Len, text) }

// Hold says that the last bytes cannot be judged before the next chunk is
// there. The host keeps them back and puts them before it.
func (l Leaf) Hold(bytes int) error {
	err := check(l.call.border.LeafHold(l.index, int32(bytes)))
	if err != nil {
		l.call.broken = err
	}
	return err
}

// edited keeps in mind that something changed, or that it should have.
func (c *Call) edited(code int32) error {
	err := check(code)
	if err != nil {
		c.broken = err
	} else {
		c.changed = true
	}
	return err
}
