package abi

// Code is what an imported function returns when it is not a length: zero and
// above are lengths or success, below zero are the codes.
type Code = int32

// The codes.
const (
	OK            Code = 0
	NotFound      Code = -1 // absent, which is not the same as empty
	NotGranted    Code = -2
	Unavailable   Code = -3 // the store is away, or too little of the call's time is left
	BadArgument   Code = -4
	NotAtThisHook Code = -5
	OverLimit     Code = -6
	WrongType     Code = -7
)

var codeNames = [...]string{"ok", "not found", "not granted", "unavailable", "bad argument", "not at this hook", "over a limit", "wrong type"}

// CodeName names a code for logs and errors.
func CodeName(c Code) string {
	if c > 0 {
		return "length"
	}
	if int(-c) >= len(codeNames) {
		return "code?"
	}
	return codeNames[-c]
}

// Limits on what crosses the border. Over them is OverLimit.
const (
	MaxValue = 16 << 20 // bytes of one value, read or written
	MaxKey   = 1 << 10  // bytes of a key, a name or a path
	MaxState = 64 << 10 // bytes of one state value
	MaxNotes = 32       // notes a call
	MaxEdits = 1 << 16  // edits a call
	MaxJSON  = 1 << 18  // values at any depth in all the JSON that a call writes
)

// HeadSize is the length of the record that head writes. All its numbers are
// little-endian; times are milliseconds since 1970, durations microseconds.
const HeadSize = 112

// The offsets in the head record.
const (
	HeadHook       = 0   // u32
	HeadFlags      = 4   // u32, Flags
	HeadReason     = 8   // u32, Reason, at close
	HeadSource     = 12  // u32, Source
	HeadOperation  = 16  // u32, Operation
	HeadUsageMask  = 20  // u32, UsageMask
	HeadPrompt     = 24  // i64
	HeadCandidates = 32  // i64
	HeadCached     = 40  // i64
	HeadThoughts   = 48  // i64
	HeadToolUse    = 56  // i64
	HeadTotal      = 64  // i64
	HeadTime       = 72  // i64, ms
	HeadElapsed    = 80  // i64, us since the operation began
	HeadFirstChunk = 88  // i64, us from begin to first response, -1 before it came
	HeadModelCalls = 96  // i64, of this run
	HeadReserved   = 104 // i64, zero
)

// Field names a string of the event for the text function.
type Field int32

// The fields.
const (
	FieldStage Field = 1 + iota // the name of the stage itself
	FieldApp
	FieldUser
	FieldSession
	FieldAgent
	FieldBranch
	FieldInvocation
	FieldRun
	FieldOp
	FieldModel
	FieldTool
	FieldCall
	FieldAuthor
	FieldFinishReason
	FieldAnsweredBy
)

// LeafSize is the length of the record that leaf writes: kind, role, flags
// and the length of the text in bytes, each a u32.
const LeafSize = 16

// The flags in a leaf record.
const (
	LeafFlagNumber    = 1 << 0
	LeafFlagContinues = 1 << 1
	LeafFlagFinal     = 1 << 2
	LeafFlagReadOnly  = 1 << 3
)

// The scopes of state_get, state_set, state_del and state_add.
const (
	ScopeOp  = 1
	ScopeRun = 2
)

// The kinds of answer.
const (
	AnswerText = 1
	AnswerJSON = 2
)

// The levels of log.
const (
	LogDebug = 1
	LogInfo  = 2
	LogWarn  = 3
	LogError = 4
)

// Decision is what a limit decided.
type Decision uint32

// The decisions.
const (
	Admitted  Decision = iota // now
	Delayed                   // charged; to be used after the wait
	Denied                    // nothing charged; try again after the wait
	NeverFits                 // nothing charged; no wait would help
)

// DecisionSize is the length of the record that admit and take write.
const DecisionSize = 24

// The offsets in a decision record.
const (
	DecisionKind  = 0  // u32, Decision
	DecisionLimit = 4  // u32, the index of the limit that decided, in admit's list
	DecisionWait  = 8  // i64, ms
	DecisionID    = 16 // i64, for settle and release; 0 when nothing was taken
)

// EstimateOfPlan asks take for the estimate of the user's plan.
const EstimateOfPlan = -1
