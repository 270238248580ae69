package guest

import (
	"time"

	"github.com/hookhost/hookhost/abi"
)

// Call is one call of one hook: what it is about, and what can be done. It is
// good until the hook returns.
type Call struct {
	border  border
	hook    abi.Hook
	head    [abi.HeadSize]byte
	read    bool  // head is filled
	changed bool  // an edit was made
	broken  error // an edit that the host did not take
}

// Hook returns the hook point.
func (c *Call) Hook() abi.Hook { return c.hook }

// Operation returns the kind of operation that the hook belongs to.
func (c *Call) Operation() abi.Operation { return abi.Operation(c.uint32(abi.HeadOperation)) }

// Reason says how the operation ended, at close.
func (c *Call) Reason() abi.Reason { return abi.Reason(c.uint32(abi.HeadReason)) }

// Source says where the value of an after-hook comes from.
func (c *Call) Source() abi.Source { return abi.Source(c.uint32(abi.HeadSource)) }

// Entered reports whether this stage saw the before-hook of the operation.
func (c *Call) Entered() bool { return c.flag(abi.Entered) }

// Late reports whether the operation was closed before.
func (c *Call) Late() bool { return c.flag(abi.Late) }

// Recovered reports whether the hook follows a model error that a stage
// answered.
func (c *Call) Recovered() bool { return c.flag(abi.Recovered) }

// Live reports whether the run is a live one.
func (c *Call) Live() bool { return c.flag(abi.Live) }

// StreamEnd reports whether this is the last chunk of a stream, or a response
// that came whole.
func (c *Call) StreamEnd() bool { return c.flag(abi.StreamEnd) }

// Partial reports whether this is a chunk.
func (c *Call) Partial() bool { return c.flag(abi.Partial) }

// Cancelled reports whether the caller went away.
func (c *Call) Cancelled() bool { return c.flag(abi.Cancelled) }

// Streamed reports, at OnEvent, whether the text of a chunk is as it left
// OnModelChunk. What somebody changed since, or no model hook saw, is not.
func (c *Call) Streamed() bool { return c.flag(abi.Streamed) }

// NotBegun reports, at Close, whether the operation ended before any model,
// agent or tool ran: it was answered, refused, or left by the caller.
func (c *Call) NotBegun() bool { return c.flag(abi.NotBegun) }

// Resumed reports whether the run goes on after a pause for a human.
func (c *Call) Resumed() bool { return c.flag(abi.Resumed) }

// Usage is what the model call cost so far. Its mask says which numbers the
// provider sent.
func (c *Call) Usage() abi.Usage {
	return abi.Usage{
		Mask:       abi.UsageMask(c.uint32(abi.HeadUsageMask)),
		Prompt:     c.int64(abi.HeadPrompt),
		Candidates: c.int64(abi.HeadCandidates),
		Cached:     c.int64(abi.HeadCached),
		Thoughts:   c.int64(abi.HeadThoughts),
		ToolUse:    c.int64(abi.HeadToolUse),
		Total:      c.int64(abi.HeadTotal),
	}
}

// Time is the host's time of the hook, in whole milliseconds.
func (c *Call) Time() time.Time { return time.UnixMilli(c.int64(abi.HeadTime)) }

// Elapsed is the time since the operation began.
func (c *Call) Elapsed() time.Duration {
	return time.Duration(c.int64(abi.HeadElapsed)) * time.Microsecond
}

// FirstChunk is the time from the begin of a model call to its first
// response, and false before that came.
func (c *Call) FirstChunk() (time.Duration, bool) {
	us := c.int64(abi.HeadFirstChunk)
	return time.Duration(max(us, 0)) * time.Microsecond, us >= 0
}

// ModelCalls counts the model calls of this run, this one included.
func (c *Call) ModelCalls() int64 { return c.int64(abi.HeadModelCalls) }

// Stage is the name of this stage in the manifest.
func (c *Call) Stage() string { return c.text(abi.FieldStage) }

// App is the name of the app.
func (c *Call) App() string { return c.text(abi.FieldApp) }

// User is the id of the user, as the runner was called.
func (c *Call) User() string { return c.text(abi.FieldUser) }

// Session is the id of the session.
func (c *Call) Session() string { return c.text(abi.FieldSession) }

// Agent is the name of the agent.
func (c *Call) Agent() string { return c.text(abi.FieldAgent) }

// Branch is the branch of the agent.
func (c *Call) Branch() string { return c.text(abi.FieldBranch) }

// Invocation is ADK's id of the invocation. A client can choose it: what has
// to be unique hangs on Run.
func (c *Call) Invocation() string { return c.text(abi.FieldInvocation) }

// RunID is the host's id of the run.
func (c *Call) RunID() string { return c.text(abi.FieldRun) }

// OpID is the host's id of the operation.
func (c *Call) OpID() string { return c.text(abi.FieldOp) }

// Model is the name of the model.
func (c *Call) Model() string { return c.text(abi.FieldModel) }

// Tool is the name of the tool.
func (c *Call) Tool() string { return c.text(abi.FieldTool) }

// CallID is the id of the function call.
func (c *Call) CallID() string { return c.text(abi.FieldCall) }

// Author is the author of an event.
func (c *Call) Author() string { return c.text(abi.FieldAuthor) }

// FinishReason is why the model stopped.
func (c *Call) FinishReason() string { return c.text(abi.FieldFinishReason) }

// AnsweredBy is the stage that answered, when Source says that one did.
func (c *Call) AnsweredBy() string { return c.text(abi.FieldAnsweredBy) }

// Note leaves a short key and value in the trace.
func (c *Call) Note(key, value string) error { return check(c.border.Note(key, value)) }

// Log writes a line, at one of abi.LogDebug to abi.LogError. The host drops
// it unless the manifest asks for the stage's output.
func (c *Call) Log(level int32, text string) { c.border.Log(level, text) }

// text reads a string of the event, empty when it has none.
func (c *Call) text(field abi.Field) string {
	s, _ := readString(func(buf []byte) int32 { return c.border.Text(int32(field), buf) })
	return s
}

func (c *Call) flag(f abi.Flags) bool { return abi.Flags(c.uint32(abi.HeadFlags)).Has(f) }

func (c *Call) uint32(at int) uint32 {
	c.fill()
	return uint32At(c.head[:], at)
}

func (c *Call) int64(at int) int64 {
	c.fill()
	return int64At(c.head[:], at)
}

// fill reads the head, once.
func (c *Call) fill() {
	if !c.read {
		c.border.Head(c.head[:])
		c.read = true
	}
}
