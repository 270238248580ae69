package hostfn

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hookhost/hookhost/abi"
)

// leaf finds a leaf of the subject.
func (c *Call) leaf(function string, index int32) (abi.Leaf, abi.Code) {
	if code := c.here(function); code != abi.OK {
		return abi.Leaf{}, code
	}
	leaves := c.allLeaves()
	if index < 0 || int(index) >= len(leaves) {
		return abi.Leaf{}, abi.NotFound
	}
	return leaves[index], abi.OK
}

func (c *Call) allLeaves() []abi.Leaf {
	if !c.hasLeaves && c.ev.Subject != nil {
		c.leaves, c.hasLeaves = c.ev.Subject.Leaves(), true
	}
	return c.leaves
}

// Leaf writes the record of a leaf.
func (c *Call) Leaf(index int32, buf []byte) int32 {
	l, code := c.leaf("hookhost.leaf", index)
	if code != abi.OK {
		return code
	}
	var flags uint32
	for flag, set := range map[uint32]bool{
		abi.LeafFlagNumber: l.Number, abi.LeafFlagContinues: l.Continues,
		abi.LeafFlagFinal: l.Final, abi.LeafFlagReadOnly: l.ReadOnly,
	} {
		if set {
			flags |= flag
		}
	}
	record := make([]byte, 0, abi.LeafSize)
	for _, v := range []uint32{uint32(l.Kind), uint32(l.Role), flags, uint32(len(l.Text))} {
		record = binary.LittleEndian.AppendUint32(record, v)
	}
	return fill(buf, record)
}

// LeafPath reads the pointer of a leaf.
func (c *Call) LeafPath(index int32, buf []byte) int32 {
	l, code := c.leaf("hookhost.leaf_path", index)
	if code != abi.OK {
		return code
	}
	return fill(buf, l.Pointer)
}

// LeafRead reads the text of a leaf from an offset on.
func (c *Call) LeafRead(index, offset int32, buf []byte) int32 {
	l, code := c.leaf("hookhost.leaf_read", index)
	if code != abi.OK {
		return code
	}
	if offset < 0 || int(offset) > len(l.Text) {
		return abi.BadArgument
	}
	return fill(buf, l.Text[offset:])
}

// span is the range of bytes that a splice replaces.
type span struct{ start, end int32 }

// LeafSplice drafts the replacement of a range of a leaf. The range addresses
// the original text, begins and ends between two characters, and neither
// overlaps another one nor begins where another one does.
func (c *Call) LeafSplice(index, start, end int32, text string) int32 {
	l, code := c.leaf("hookhost.leaf_splice", index)
	if code != abi.OK {
		return code
	}
	if l.ReadOnly {
		return abi.WrongType
	}
	if start < 0 || end < start || int(end) > len(l.Text) || !between(l.Text, start) || !between(l.Text, end) {
		return abi.BadArgument
	}
	if code := checkText(text, abi.MaxValue); code != abi.OK {
		return code
	}
	if hold, held := c.draft.holds[index]; held && int(end) > len(l.Text)-hold.Bytes {
		return abi.BadArgument
	}
	at, free := place(c.draft.splices[index], span{start, end})
	if !free {
		return abi.BadArgument
	}
	edit := abi.Edit{Op: abi.EditSplice, Pointer: l.Pointer, Start: int(start), End: int(end), Text: text}
	if code := c.draft.add(edit, len(text)); code != abi.OK {
		return code
	}
	if c.draft.splices == nil {
		c.draft.splices = map[int32][]span{}
	}
	c.draft.splices[index] = slices.Insert(c.draft.splices[index], at, span{start, end})
	return abi.OK
}

// between reports whether no character is cut at an offset. A byte that is
// part of none, because the text is not UTF-8 there, can be parted from any
// other.
func between(text string, offset int32) bool {
	for start := max(0, int(offset)-utf8.UTFMax+1); start < int(offset); start++ {
		if _, size := utf8.DecodeRuneInString(text[start:]); start+size > int(offset) {
			return false
		}
	}
	return true
}

// place finds where a span goes among the sorted ones.
func place(sorted []span, s span) (at int, free bool) {
	at, same := slices.BinarySearchFunc(sorted, s, func(a, b span) int { return int(a.start) - int(b.start) })
	switch {
	case same,
		at > 0 && sorted[at-1].end > s.start,
		at < len(sorted) && sorted[at].start < s.end:
		return 0, false
	}
	return at, true
}

// add records an edit, within the bounds of a call.
func (d *draft) add(e abi.Edit, bytes int) abi.Code {
	if len(d.edits) >= abi.MaxEdits || d.bytes+bytes > abi.MaxValue {
		return abi.OverLimit
	}
	d.edits = append(d.edits, e)
	d.bytes += bytes
	return abi.OK
}

// LeafHold says that the last bytes of a leaf cannot be judged yet. The last
// word on a leaf counts; 0 takes it back.
func (c *Call) LeafHold(index, bytes int32) int32 {
	l, code := c.leaf("hookhost.leaf_hold", index)
	if code != abi.OK {
		return code
	}
	if bytes == 0 {
		delete(c.draft.holds, index)
		return abi.OK
	}
	begin := int32(len(l.Text)) - bytes
	if bytes < 0 || begin < 0 || l.Final || !between(l.Text, begin) {
		return abi.BadArgument
	}
	if spans := c.draft.splices[index]; len(spans) > 0 && spans[len(spans)-1].end > begin {
		return abi.BadArgument
	}
	if c.draft.holds == nil {
		c.draft.holds = map[int32]abi.Hold{}
	}
	c.draft.holds[index] = abi.Hold{Pointer: l.Pointer, Bytes: int(bytes)}
	return abi.OK
}

func (d *draft) listHolds() []abi.Hold {
	indexes := make([]int32, 0, len(d.holds))
	for i := range d.holds {
		indexes = append(indexes, i)
	}
	slices.Sort(indexes)
	var holds []abi.Hold
	for _, i := range indexes {
		holds = append(holds, d.holds[i])
	}
	return holds
}

// Get reads the JSON at a pointer: of the subject, or of the session's state
// below /session/state.
func (c *Call) Get(pointer string, buf []byte) int32 {
	if code := firstOf(c.here("hookhost.get"), checkPointer(pointer)); code != abi.OK {
		return code
	}
	if c.got.json != nil && c.got.pointer == pointer {
		return fill(buf, c.got.json)
	}
	if value, made := c.large[pointer]; made {
		return fill(buf, value)
	}
	value, code := c.get(pointer)
	if code != abi.OK {
		return code
	}
	c.keep(pointer, value)
	return fill(buf, value)
}

const largeJSON = 64 << 10

// keep has what get made for when it is asked for again. Large values take
// milliseconds to make, in which a guest cannot be stopped: those are made
// once, as long as all of them are not more than one value may be.
func (c *Call) keep(pointer string, value []byte) {
	if len(value) < largeJSON {
		c.got.pointer, c.got.json = pointer, value
		return
	}
	if c.large == nil || c.largeBytes+len(value) > abi.MaxValue {
		c.large, c.largeBytes = map[string][]byte{}, 0
	}
	c.large[pointer] = value
	c.largeBytes += len(value)
}

func (c *Call) get(pointer string) ([]byte, abi.Code) {
	if under(pointer, "/session") {
		return c.readSession(pointer)
	}
	if under(pointer, "/actions") {
		if code := c.has(actions); code != abi.OK {
			return nil, code
		}
	}
	if c.ev.Subject == nil {
		return nil, abi.NotFound
	}
	most := min(abi.MaxValue, c.affordableJSON())
	value, err := c.ev.Subject.Get(pointer, most)
	if err == nil && pointer == "" && c.Hook() == abi.OnEvent && c.has(actions) != abi.OK {
		value, err = without(value, "actions")
	}
	switch {
	case errors.Is(err, abi.ErrNotFound):
		return nil, abi.NotFound
	case errors.Is(err, abi.ErrTooLarge) && most < abi.MaxValue:
		return nil, abi.Unavailable
	case errors.Is(err, abi.ErrTooLarge):
		return nil, abi.OverLimit
	case err != nil:
		return nil, abi.BadArgument
	}
	return value, abi.OK
}

// without is an object without one of its members.
func without(object []byte, member string) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, err
	}
	delete(members, member)
	return json.Marshal(members)
}

var (
	actions      = abi.Grant{Family: "actions"}
	sessionRead  = abi.Grant{Family: "session", Name: "read"}
	sessionWrite = abi.Grant{Family: "session", Name: "write"}
)

// checkPointer knows the form of RFC 6901.
func checkPointer(pointer string) abi.Code {
	if pointer != "" && pointer[0] != '/' {
		return abi.BadArgument
	}
	for i, c := range pointer {
		if c == '~' && (i+1 == len(pointer) || pointer[i+1] != '0' && pointer[i+1] != '1') {
			return abi.BadArgument
		}
	}
	return checkText(pointer, abi.MaxKey)
}

func under(pointer, root string) bool {
	return pointer == root || strings.HasPrefix(pointer, root+"/")
}

// sessionKey takes the key out of /session/state/KEY.
func sessionKey(pointer string) (string, bool) {
	token, ok := strings.CutPrefix(pointer, "/session/state/")
	if !ok || token == "" || strings.Contains(token, "/") {
		return "", false
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(token), true
}

func (c *Call) readSession(pointer string) ([]byte, abi.Code) {
	if code := c.has(sessionRead); code != abi.OK {
		return nil, code
	}
	if c.ev.State == nil {
		return nil, abi.NotAtThisHook
	}
	key, ok := sessionKey(pointer)
	if !ok {
		return nil, abi.NotFound
	}
	value, found := c.ev.State(key)
	if !found {
		return nil, abi.NotFound
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, abi.WrongType
	}
	return text, abi.OK
}

// Edit drafts a change at a pointer, in the words of RFC 6902. A key of the
// session's state can be added or replaced. The subject as a whole cannot: it
// would take what needs a grant along.
func (c *Call) Edit(op int32, pointer, value string) int32 {
	if code := firstOf(c.here("hookhost.edit"), checkPointer(pointer), checkText(value, abi.MaxValue)); code != abi.OK {
		return code
	}
	if pointer == "" {
		return abi.BadArgument
	}
	edit := abi.Edit{Pointer: pointer}
	switch op {
	case int32(abi.EditAdd), int32(abi.EditReplace):
		if code := c.checkJSON(value); code != abi.OK {
			return code
		}
		edit.Value = []byte(value)
	case int32(abi.EditRemove):
	default:
		return abi.BadArgument
	}
	edit.Op = abi.EditOp(op)
	if under(pointer, "/session") {
		return c.editSession(edit)
	}
	if under(pointer, "/actions") {
		if code := c.has(actions); code != abi.OK {
			return code
		}
	}
	if c.ev.Subject == nil {
		return abi.NotFound
	}
	return c.draft.add(edit, len(edit.Value))
}

// stateWrite is a change of the session's state that waits for the verdict.
type stateWrite struct {
	key   string
	value any
}

func (c *Call) editSession(e abi.Edit) abi.Code {
	if code := c.has(sessionWrite); code != abi.OK {
		return code
	}
	if c.ev.SetState == nil {
		return abi.NotAtThisHook
	}
	key, ok := sessionKey(e.Pointer)
	if !ok || e.Op == abi.EditRemove {
		return abi.BadArgument
	}
	if len(c.draft.session) >= abi.MaxNotes || c.draft.bytes+len(e.Value) > abi.MaxValue {
		return abi.OverLimit
	}
	w := stateWrite{key: key}
	if err := json.Unmarshal(e.Value, &w.value); err != nil {
		return abi.BadArgument
	}
	c.draft.session = append(c.draft.session, w)
	c.draft.bytes += len(e.Value)
	return abi.OK
}

// writeSession does what was drafted for the session's state.
func (c *Call) writeSession() error {
	for _, w := range c.draft.session {
		if err := c.ev.SetState(w.key, w.value); err != nil {
			return fmt.Errorf("session: %w", err)
		}
	}
	return nil
}
