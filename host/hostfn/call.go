// Package hostfn is what guests import: one file per family of functions, on
// Go values, and in memory.go and table.go the way there from a guest's
// memory. It knows the ABI and the store, and nothing of Wasm.
package hostfn

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/store"
)

// Stage is what the functions have to know about a stage.
type Stage struct {
	Name    string
	Grants  []abi.Grant
	Config  []Setting         // in the order in which config_key lists them
	Secrets map[string][]byte // by name
	Shadow  bool              // limits and counters live in a key space of the stage's own
	Local   bool              // limits go on with a share of this process while the store is away
	Output  bool              // log and output are written; otherwise counted and dropped

	dropped atomic.Int64
}

// Setting is one value of a stage's configuration.
type Setting struct {
	Key  string // dotted
	Text string
}

// Call is one call of a stage: the event, the draft that the guest builds and
// the functions it may use, which are its exported methods with the names of
// the ABI. It serves one goroutine.
type Call struct {
	ctx      context.Context
	services *Services
	stage    *Stage
	ev       *abi.Event // nil in configure

	leaves    []abi.Leaf // of the subject, once they were asked for
	hasLeaves bool
	got       struct { // what get read last: guests ask for the length first
		pointer string
		json    []byte
	}
	draft     draft
	lines     int
	rejected  *rejection
	storeAway bool
}

// NewCall begins a call. A nil event is the call of configure.
func (s *Services) NewCall(ctx context.Context, stage *Stage, ev *abi.Event) *Call {
	s.start()
	return &Call{ctx: ctx, services: s, stage: stage, ev: ev}
}

// Hook is the hook that the call is of.
func (c *Call) Hook() abi.Hook {
	if c.ev == nil {
		return abi.Configure
	}
	return c.ev.Hook
}

// StoreAway reports whether a function returned Unavailable to the guest.
func (c *Call) StoreAway() bool { return c.storeAway }

// ErrBadVerdict is what Verdict fails with.
var ErrBadVerdict = errors.New("bad verdict")

// Verdict puts together what the guest returned and what it drafted. An amend
// that amends nothing is a continue; a draft that was not returned is dropped.
// The session's state is written when the verdict is taken, not before.
func (c *Call) Verdict(kind abi.Kind, wait time.Duration) (abi.Verdict, error) {
	v := abi.Verdict{Kind: kind, Notes: c.draft.notes}
	switch kind {
	case abi.Continue:
		v.Holds = c.draft.listHolds()
	case abi.Amend:
		v.Edits, v.Holds = c.draft.edits, c.draft.listHolds()
		if len(c.draft.session) > 0 {
			v.Commit = c.writeSession
		}
		if len(v.Edits) == 0 && v.Commit == nil {
			v.Kind = abi.Continue
		}
	case abi.Respond:
		if c.draft.answer == nil {
			return abi.Verdict{}, fmt.Errorf("%w: respond without an answer", ErrBadVerdict)
		}
		v.Answer = *c.draft.answer
	case abi.Wait:
		v.Wait = wait
	case abi.Fail:
	default:
		return abi.Verdict{}, fmt.Errorf("%w: kind %d", ErrBadVerdict, kind)
	}
	return v, nil
}

// draft is what a guest has prepared and not yet returned.
type draft struct {
	edits   []abi.Edit
	bytes   int // of all the edits
	values  int // of all the JSON
	splices map[int32][]span
	holds   map[int32]abi.Hold
	session []stateWrite
	answer  *abi.Answer
	notes   []abi.Note
}

var hooksOf = func() map[string]abi.HookSet {
	sets := map[string]abi.HookSet{}
	for _, imp := range abi.Imports() {
		sets[imp.Module+"."+imp.Name] = imp.Hooks
	}
	return sets
}()

// here checks that a function may be called at this hook.
func (c *Call) here(function string) abi.Code {
	if !hooksOf[function].Has(c.Hook()) {
		return abi.NotAtThisHook
	}
	return abi.OK
}

// granted checks the hook and then the grant.
func (c *Call) granted(function string, g abi.Grant) abi.Code {
	if code := c.here(function); code != abi.OK {
		return code
	}
	return c.has(g)
}

func (c *Call) has(want abi.Grant) abi.Code {
	for _, g := range c.stage.Grants {
		if g == want {
			return abi.OK
		}
	}
	return abi.NotGranted
}

// firstOf returns the first code that is not OK.
func firstOf(codes ...abi.Code) abi.Code {
	for _, code := range codes {
		if code != abi.OK {
			return code
		}
	}
	return abi.OK
}

// Head writes the head record.
func (c *Call) Head(buf []byte) int32 {
	if code := c.here("hookhost.head"); code != abi.OK {
		return code
	}
	return fill(buf, head(c.ev))
}

func head(ev *abi.Event) []byte {
	b := make([]byte, abi.HeadSize)
	u32 := func(at int, v uint32) { binary.LittleEndian.PutUint32(b[at:], v) }
	i64 := func(at int, v int64) { binary.LittleEndian.PutUint64(b[at:], uint64(v)) }
	u32(abi.HeadHook, uint32(ev.Hook))
	u32(abi.HeadFlags, uint32(ev.Flags))
	u32(abi.HeadReason, uint32(ev.Reason))
	u32(abi.HeadSource, uint32(ev.Source))
	u32(abi.HeadOperation, uint32(ev.Of))
	u32(abi.HeadUsageMask, uint32(ev.Usage.Mask))
	i64(abi.HeadPrompt, ev.Usage.Prompt)
	i64(abi.HeadCandidates, ev.Usage.Candidates)
	i64(abi.HeadCached, ev.Usage.Cached)
	i64(abi.HeadThoughts, ev.Usage.Thoughts)
	i64(abi.HeadToolUse, ev.Usage.ToolUse)
	i64(abi.HeadTotal, ev.Usage.Total)
	i64(abi.HeadTime, ev.Time.UnixMilli())
	i64(abi.HeadElapsed, ev.Elapsed.Microseconds())
	i64(abi.HeadFirstChunk, -1)
	if ev.FirstChunk > 0 {
		i64(abi.HeadFirstChunk, ev.FirstChunk.Microseconds())
	}
	i64(abi.HeadModelCalls, ev.ModelCalls)
	return b
}

// Text reads a string of the event. An empty one is absent.
func (c *Call) Text(field int32, buf []byte) int32 {
	if code := c.here("hookhost.text"); code != abi.OK {
		return code
	}
	if abi.Field(field) < abi.FieldStage || abi.Field(field) > abi.FieldAnsweredBy {
		return abi.BadArgument
	}
	text := c.text(abi.Field(field))
	if text == "" {
		return abi.NotFound
	}
	return fill(buf, text)
}

func (c *Call) text(field abi.Field) string {
	if field == abi.FieldStage {
		return c.stage.Name
	}
	if c.ev == nil {
		return ""
	}
	switch field {
	case abi.FieldApp:
		return c.ev.App
	case abi.FieldUser:
		return c.ev.User
	case abi.FieldSession:
		return c.ev.Session
	case abi.FieldAgent:
		return c.ev.Agent
	case abi.FieldBranch:
		return c.ev.Branch
	case abi.FieldInvocation:
		return c.ev.Invocation
	case abi.FieldRun:
		return c.ev.Run.ID()
	case abi.FieldOp:
		return c.ev.Op.ID()
	case abi.FieldModel:
		return c.ev.Model
	case abi.FieldTool:
		return c.ev.Tool
	case abi.FieldCall:
		return c.ev.CallID
	case abi.FieldAuthor:
		return c.ev.Author
	case abi.FieldFinishReason:
		return c.ev.FinishReason
	case abi.FieldAnsweredBy:
		return c.ev.AnsweredBy
	}
	return ""
}

// milliseconds reads a duration that a guest gave, from least up to a year.
func milliseconds(ms, least int64) (time.Duration, abi.Code) {
	const year = 366 * 24 * time.Hour
	if ms < least || ms > year.Milliseconds() {
		return 0, abi.BadArgument
	}
	return time.Duration(ms) * time.Millisecond, abi.OK
}

// user is the owner of what belongs to the user of the run.
func (c *Call) user() store.Owner {
	return store.Owner{Kind: store.OwnerUser, App: c.ev.App, User: c.ev.User, Shadow: c.ownSpace()}
}

func (c *Call) ownSpace() string {
	if c.stage.Shadow {
		return c.stage.Name
	}
	return ""
}

// nextID makes an id that no other call of any host has.
func (c *Call) nextID() (int64, string) {
	n := c.services.sequence.Add(1)
	return n, fmt.Sprintf("%s/%s/%d", c.ev.Op.ID(), c.stage.Name, n)
}
