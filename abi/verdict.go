package abi

import "time"

// Kind is what a stage decided.
type Kind uint8

// The verdicts. Zero is not one of them: forgetting to answer never means yes.
const (
	Continue Kind = 1 + iota // go on, nothing changed
	Amend                    // go on with the changed value
	Respond                  // this is the answer, the chain ends here
	Wait                     // go on after a pause that the host makes
	Fail                     // the stage could not decide
)

var kindNames = [...]string{Continue: "continue", Amend: "amend", Respond: "respond", Wait: "wait", Fail: "fail"}

func (k Kind) String() string {
	if k == 0 || int(k) >= len(kindNames) {
		return "verdict?"
	}
	return kindNames[k]
}

// Verdict is what one call of one stage came to.
type Verdict struct {
	Kind   Kind
	Edits  []Edit        // with Amend, in the order in which they were made
	Holds  []Hold        // at OnModelChunk, with Continue and Amend
	Answer Answer        // with Respond
	Wait   time.Duration // with Wait, more than zero
	Notes  []Note        // for the trace
	Fuel   int64         // for the trace: what the guest burned; 0 of a native stage

	// Commit, with Amend, makes the changes that are not of the subject, such
	// as of the session's state. The chain calls it once when it takes the
	// amend: after the edits were found to fit, and never for a stage in
	// shadow. An error makes the verdict a bad one. Nil if there is nothing.
	Commit func() error
}

// Answer is the value that a stage responds with. Exactly one of its fields
// is set.
type Answer struct {
	Text    string   // becomes a one-part content, or {"result": text} at tool hooks
	JSON    []byte   // the hook's own answer type
	Refusal *Refusal // no
}

// Refusal is an answer that says no.
type Refusal struct {
	Code  string        // [a-z0-9_.]{1,64}, for metrics and programs
	Text  string        // what the user or the model reads
	Retry time.Duration // when to come back; 0 if that is not known
}

// Note is a short key and value that a stage leaves in the trace.
type Note struct{ Key, Value string }

// MaxWait is the longest pause that a verdict can ask for.
const MaxWait = time.Hour

// A packed verdict has the kind in bits 0 to 7, the wait in milliseconds in
// bits 32 to 63, and zero in all the others.
//
//	continue       0x0000_0000_0000_0001
//	amend          0x0000_0000_0000_0002
//	respond        0x0000_0000_0000_0003
//	wait 1500 ms   0x0000_05dc_0000_0004
//	fail           0x0000_0000_0000_0005

// Pack puts a verdict's kind and wait into the i64 that hookhost_call returns.
func Pack(k Kind, wait time.Duration) uint64 {
	if k != Wait {
		return uint64(k)
	}
	return uint64(k) | uint64(uint32(wait.Milliseconds()))<<32
}

// Unpack reads the i64 that hookhost_call returned. It reports false for all
// that is not a verdict: unknown kinds, stray bits, a wait that is missing,
// over MaxWait, or on a verdict that does not wait.
func Unpack(v uint64) (k Kind, wait time.Duration, ok bool) {
	k = Kind(v & 0xff)
	ms := v >> 32
	if v&0xffff_ff00 != 0 || k < Continue || k > Fail {
		return 0, 0, false
	}
	if (k == Wait) != (ms != 0) {
		return 0, 0, false
	}
	wait = time.Duration(ms) * time.Millisecond
	if wait > MaxWait {
		return 0, 0, false
	}
	return k, wait, true
}

// Allowed reports whether a stage may return this verdict at this hook,
// whatever its role.
func Allowed(h Hook, k Kind) bool {
	switch k {
	case Continue, Fail:
		return h >= OnUserMessage && h <= Close
	case Amend:
		switch h {
		case OnUserMessage, OnEvent, BeforeModel, OnModelChunk, AfterModel, BeforeTool, AfterTool:
			return true
		}
	case Respond:
		switch h {
		case BeforeRun, BeforeAgent, AfterAgent, BeforeModel, AfterModel, OnModelError, BeforeTool, AfterTool, OnToolError:
			return true
		}
	case Wait:
		switch h {
		case BeforeRun, BeforeAgent, BeforeModel, BeforeTool:
			return true
		}
	}
	return false
}

// ValidCode reports whether s can be a refusal's reason code.
func ValidCode(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '.' {
			return false
		}
	}
	return true
}
