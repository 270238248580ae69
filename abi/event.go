package abi

import (
	"context"
	"time"
)

// Event is what one hook is about, as every stage sees it. The host makes
// one per callback; stages read it and never write to it.
type Event struct {
	Hook   Hook
	Op     Scope     // the operation that this hook belongs to
	Run    Scope     // the run that the operation is part of
	Of     Operation // what Op is: at Close not to be told from the hook
	Time   time.Time
	Flags  Flags
	Reason Reason // at Close
	Source Source // where the value of an after-hook comes from

	App, User, Session string // as the runner was called; the user id is not verified by ADK
	Agent, Branch      string
	Invocation         string // ADK's id; clients can choose it, so nothing hangs on it
	Model              string
	Tool, CallID       string
	Author             string // at OnEvent
	FinishReason       string
	AnsweredBy         string // the stage, when Source is SourceAnswered

	Usage      Usage
	ModelCalls int64         // of this run so far, this one included
	Elapsed    time.Duration // since the operation began
	FirstChunk time.Duration // from the begin to the first response; 0 before it came

	Subject  Subject                           // nil where a hook has none
	Decode   func(Answer) (Subject, error)     // makes the answer of this hook; nil where none is possible
	State    func(key string) (any, bool)      // the session's state; nil where it is out of reach
	SetState func(key string, value any) error // nil where it cannot be written
}

// Flags say how an event stands in its operation.
type Flags uint32

// The flags.
const (
	Entered   Flags = 1 << iota // this stage saw the operation's before-hook
	Late                        // the operation was closed before
	Recovered                   // follows an OnModelError that was answered
	Live                        // a live run
	StreamEnd                   // the last chunk, or a response that came whole
	Partial                     // a chunk
	Cancelled                   // the run's context is done
	Resumed                     // the run goes on after a pause for a human
	NotBegun                    // at Close: it ended before any model, agent or tool ran
	Streamed                    // at OnEvent: a chunk whose text is as it left OnModelChunk
)

// Has reports whether all flags of x are set.
func (f Flags) Has(x Flags) bool { return f&x == x }

// Reason says how an operation ended.
type Reason uint8

// The reasons.
const (
	ReasonDone      Reason = 1 + iota
	ReasonError            // the model or the tool failed
	ReasonAnswered         // a stage answered in its place
	ReasonRefused          // a stage or the host refused it
	ReasonCancelled        // the caller went away
	ReasonEnded            // over, and ADK did not say how
)

var reasonNames = [...]string{
	ReasonDone: "done", ReasonError: "error", ReasonAnswered: "answered",
	ReasonRefused: "refused", ReasonCancelled: "cancelled", ReasonEnded: "ended",
}

func (r Reason) String() string {
	if r == 0 || int(r) >= len(reasonNames) {
		return "reason?"
	}
	return reasonNames[r]
}

// Source says where the value of an after-hook comes from.
type Source uint8

// The sources.
const (
	SourceRan      Source = iota // the model, the agent or the tool itself
	SourceAnswered               // a stage answered; Event.AnsweredBy names it
	SourceError                  // made out of an error
)

var sourceNames = [...]string{SourceRan: "ran", SourceAnswered: "answered", SourceError: "error"}

func (s Source) String() string {
	if int(s) >= len(sourceNames) {
		return "source?"
	}
	return sourceNames[s]
}

// UsageMask says which numbers of a Usage the provider sent: an explicit zero
// is not a missing value.
type UsageMask uint32

// The bits, in the order of the numbers.
const (
	HasPrompt UsageMask = 1 << iota
	HasCandidates
	HasCached
	HasThoughts
	HasToolUse
	HasTotal
)

// Usage is what a model call cost, in tokens, as far as it is known. The
// figures are the provider's running totals for the call, never increments.
type Usage struct {
	Mask       UsageMask
	Prompt     int64 // the cached ones included
	Candidates int64
	Cached     int64
	Thoughts   int64
	ToolUse    int64 // tool-use prompt tokens
	Total      int64
}

// Known reports whether the provider sent any number.
func (u Usage) Known() bool { return u.Mask != 0 }

// Spent is the total, or where the provider sent none the sum of the parts:
// prompt, candidates, thoughts and tool use. The cached ones are a part of
// the prompt and not added again.
func (u Usage) Spent() int64 {
	if u.Mask&HasTotal != 0 {
		return u.Total
	}
	return u.Prompt + u.Candidates + u.Thoughts + u.ToolUse
}

// Scope is an operation or a run seen as the owner of what lives as long as
// it does: state between hooks, and resources that have to be given back.
type Scope interface {
	ID() string

	// Get, Set, Delete and Add work on this stage's state in the scope.
	// A key that was never set is not the same as an empty value.
	Get(stage, key string) ([]byte, bool)
	Set(stage, key string, value []byte) error
	Delete(stage, key string)
	Add(stage, key string, delta int64) (int64, error)

	// Own hands a resource over: release is called exactly once, when the
	// scope ends, after the last stage heard of it, unless Disown took the
	// resource back before. An Own after the end calls release at once.
	Own(key string, release func(context.Context, Ending))
	Disown(key string)
}

// Ending is how a scope ended, for those who own something in it.
type Ending struct {
	Reason   Reason
	Usage    Usage
	NotBegun bool // no model, agent or tool ran
}

// Subject is the value that a hook is about, seen as a JSON document. It is
// immutable: Apply makes another one and leaves this one, and all that ADK
// shares with it, untouched.
type Subject interface {
	// Leaves lists what a person or a model reads, in document order.
	Leaves() []Leaf
	// Get returns the JSON at an RFC 6901 pointer, or ErrNotFound. Of what is
	// certain to be longer than so many bytes it makes none: ErrTooLarge.
	Get(pointer string, most int) ([]byte, error)
	// Apply makes the subject with these edits: first the splices, which
	// address the original bytes, then the others in their order.
	Apply(edits []Edit) (Subject, error)
	// Value returns the Go value behind it.
	Value() any
}

// Leaf is one string, or one number, that a person or a model reads.
type Leaf struct {
	Kind      LeafKind
	Role      LeafRole
	Pointer   string // RFC 6901
	Text      string // a number in its JSON form
	Number    bool   // a spliced number becomes a string
	Continues bool   // a text part that goes on with the one before
	Final     bool   // at OnModelChunk: nothing more follows, so nothing can be held
	ReadOnly  bool   // a splice is refused
}

// LeafKind says what a leaf is.
type LeafKind uint8

// The kinds.
const (
	LeafText LeafKind = 1 + iota
	LeafThought
	LeafArgument      // of a call
	LeafResult        // of a tool
	LeafSystem        // the system instruction
	LeafTranscription // of audio
	LeafCode
	LeafCodeOutput
	LeafError
	LeafState  // a state delta
	LeafOutput // a node's output
)

var leafKindNames = [...]string{
	LeafText: "text", LeafThought: "thought", LeafArgument: "argument", LeafResult: "result", LeafSystem: "system",
	LeafTranscription: "transcription", LeafCode: "code", LeafCodeOutput: "code_output", LeafError: "error",
	LeafState: "state", LeafOutput: "output",
}

func (k LeafKind) String() string {
	if k == 0 || int(k) >= len(leafKindNames) {
		return "leaf?"
	}
	return leafKindNames[k]
}

// LeafRole says whose words a leaf is.
type LeafRole uint8

// The roles.
const (
	RoleNone LeafRole = iota
	RoleUser
	RoleModel
)

// EditOp is what an edit does. The words are those of RFC 6902.
type EditOp uint8

// The edits. A splice replaces the bytes from Start to End of the leaf at
// Pointer with Text; the others take the JSON in Value.
const (
	EditAdd EditOp = 1 + iota
	EditRemove
	EditReplace
	EditSplice
)

// Edit is one change that a stage made to its draft.
type Edit struct {
	Op         EditOp
	Pointer    string
	Value      []byte // JSON, for EditAdd and EditReplace
	Start, End int    // bytes, for EditSplice
	Text       string // for EditSplice
}

// Hold says that a stage cannot judge the last Bytes of a leaf yet.
type Hold struct {
	Pointer string
	Bytes   int
}

type subjectError string

func (e subjectError) Error() string { return string(e) }

// What Subject returns.
const (
	ErrNotFound = subjectError("pointer: not found")
	ErrBadEdit  = subjectError("edit: does not fit the subject")
	ErrTooLarge = subjectError("value: over its limit")
)
