// Package guesttest is a host for native tests of guests: an event described
// by plain fields on one side, what the hook did on the other. It keeps the
// rules of abi/README.md.
package guesttest

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/guest"
)

// Host is one stage's host. What it is told stands first, what it was asked
// to do after that. It serves one goroutine.
type Host struct {
	Stage     string
	Event     abi.Event         // its Subject, Op and Run are not used
	OpID      string            // the operation's id
	RunID     string            // the run's id
	Leaves    []abi.Leaf        // of the subject
	Documents map[string]string // JSON by pointer: what get finds
	Config    map[string]string // by dotted key; the elements of an array by KEY.0 and so on
	Op, Run   map[string]string // state
	Decisions []Decision        // of admit and take, one after the other
	Values    map[string]string // of kv and results of claims, by "NAME KEY"
	Claims    []Claim           // what claim says, one after the other
	Counters  map[string]int64  // of usage
	Secrets   map[string]string // by name
	// Codes are returned by functions instead of working: by
	// "hookhost_limit.take" and so on.
	Codes map[string]abi.Code

	Edits    []abi.Edit
	Holds    []abi.Hold
	Answer   *abi.Answer
	Notes    []abi.Note
	Rejected []abi.Note // key and text
	Logs     []string
	Asked    []string // of limits, usage, kv and claims, in words

	ended map[int64]bool // reservations that were settled or released
}

// Decision is what a limit decides.
type Decision struct {
	Kind  abi.Decision
	Limit int // index in admit's list
	Wait  time.Duration
	ID    int64
}

// Claim is what claim says.
type Claim struct {
	State uint32 // abi.Claimed and so on
	Token int64
}

// Call runs one hook and returns its verdict as the host would read it. What
// an earlier hook did is forgotten, state is not.
func (h *Host) Call(hooks guest.Hooks, hook abi.Hook) (v abi.Verdict, ok bool) {
	h.Event.Hook = hook
	h.Edits, h.Holds, h.Answer, h.Notes, h.Asked = nil, nil, nil, nil, nil
	v.Kind, v.Wait, ok = abi.Unpack(guest.Module{Hooks: hooks, Host: functions{h}}.Call(hook))
	v.Notes = h.Notes
	switch v.Kind {
	case abi.Amend:
		v.Edits, v.Holds = h.Edits, h.Holds
	case abi.Continue:
		v.Holds = h.Holds
	case abi.Respond:
		ok = ok && h.Answer != nil
		if h.Answer != nil {
			v.Answer = *h.Answer
		}
	}
	return v, ok && abi.Allowed(hook, v.Kind)
}

// Configure runs the configuration and reports whether it was accepted.
func (h *Host) Configure(hooks guest.Hooks) bool {
	h.Event.Hook = abi.Configure
	return guest.Module{Hooks: hooks, Host: functions{h}}.Configure() == 0
}

// Texts are the leaves with the splices in their places.
func (h *Host) Texts() []string {
	texts := make([]string, len(h.Leaves))
	for i, leaf := range h.Leaves {
		texts[i] = spliced(leaf, h.Edits)
	}
	return texts
}

func spliced(leaf abi.Leaf, edits []abi.Edit) string {
	var of []abi.Edit
	for _, e := range edits {
		if e.Op == abi.EditSplice && e.Pointer == leaf.Pointer {
			of = append(of, e)
		}
	}
	slices.SortStableFunc(of, func(a, b abi.Edit) int { return cmp.Compare(a.Start, b.Start) })
	text, at := "", 0
	for _, e := range of {
		text += leaf.Text[at:e.Start] + e.Text
		at = e.End
	}
	return text + leaf.Text[at:]
}

// imports are the functions by module and name.
var imports = func() map[string]abi.Import {
	all := map[string]abi.Import{}
	for _, i := range abi.Imports() {
		all[i.Module+"."+i.Name] = i
	}
	return all
}()

// refused says why a function does not work now, or 0.
func (h *Host) refused(name string) int32 {
	if code, found := h.Codes[name]; found {
		return code
	}
	if !imports[name].Hooks.Has(h.Event.Hook) {
		return abi.NotAtThisHook
	}
	return abi.OK
}

// give writes what fits and returns the length.
func give(buf []byte, value string) int32 {
	copy(buf, value)
	return int32(len(value))
}

// find gives a value that may be absent.
func find(buf []byte, value string, found bool) int32 {
	if !found {
		return abi.NotFound
	}
	return give(buf, value)
}

func giveInt64(out []byte, n int64) int32 {
	return give(out, string(binary.LittleEndian.AppendUint64(nil, uint64(n))))
}

// between reports whether no character is cut at an offset. A byte that is
// part of none, because the text is not UTF-8 there, can be parted from any
// other.
func between(text string, at int32) bool {
	for start := max(0, int(at)-utf8.UTFMax+1); start < int(at); start++ {
		if _, size := utf8.DecodeRuneInString(text[start:]); start+size > int(at) {
			return false
		}
	}
	return true
}

func validText(texts ...string) bool {
	for _, t := range texts {
		if !utf8.ValidString(t) {
			return false
		}
	}
	return true
}
