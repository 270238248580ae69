package guesttest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookhost/hookhost/abi"
)

// functions are the imports over a Host.
type functions struct{ *Host }

// Head writes the head record of the event.
func (h functions) Head(buf []byte) int32 {
	if code := h.refused("hookhost.head"); code < 0 {
		return code
	}
	ev := h.Event
	r := make([]byte, abi.HeadSize)
	le := binary.LittleEndian
	le.PutUint32(r[abi.HeadHook:], uint32(ev.Hook))
	le.PutUint32(r[abi.HeadFlags:], uint32(ev.Flags))
	le.PutUint32(r[abi.HeadReason:], uint32(ev.Reason))
	le.PutUint32(r[abi.HeadSource:], uint32(ev.Source))
	le.PutUint32(r[abi.HeadOperation:], uint32(ev.Of))
	le.PutUint32(r[abi.HeadUsageMask:], uint32(ev.Usage.Mask))
	first := ev.FirstChunk.Microseconds()
	if first == 0 {
		first = -1
	}
	for at, n := range map[int]int64{
		abi.HeadPrompt: ev.Usage.Prompt, abi.HeadCandidates: ev.Usage.Candidates, abi.HeadCached: ev.Usage.Cached,
		abi.HeadThoughts: ev.Usage.Thoughts, abi.HeadToolUse: ev.Usage.ToolUse, abi.HeadTotal: ev.Usage.Total,
		abi.HeadTime: ev.Time.UnixMilli(), abi.HeadElapsed: ev.Elapsed.Microseconds(),
		abi.HeadFirstChunk: first, abi.HeadModelCalls: ev.ModelCalls,
	} {
		le.PutUint64(r[at:], uint64(n))
	}
	return give(buf, string(r))
}

// Text gives a string of the event.
func (h functions) Text(field int32, buf []byte) int32 {
	if code := h.refused("hookhost.text"); code < 0 {
		return code
	}
	ev := h.Event
	text, known := map[abi.Field]string{
		abi.FieldStage: h.Stage, abi.FieldApp: ev.App, abi.FieldUser: ev.User, abi.FieldSession: ev.Session,
		abi.FieldAgent: ev.Agent, abi.FieldBranch: ev.Branch, abi.FieldInvocation: ev.Invocation,
		abi.FieldRun: h.RunID, abi.FieldOp: h.OpID, abi.FieldModel: ev.Model, abi.FieldTool: ev.Tool,
		abi.FieldCall: ev.CallID, abi.FieldAuthor: ev.Author, abi.FieldFinishReason: ev.FinishReason,
		abi.FieldAnsweredBy: ev.AnsweredBy,
	}[abi.Field(field)]
	if !known {
		return abi.BadArgument
	}
	return find(buf, text, text != "")
}

// leaf finds a leaf, or says why not.
func (h functions) leaf(function string, index int32) (*abi.Leaf, int32) {
	if code := h.refused(function); code < 0 {
		return nil, code
	}
	if index < 0 || int(index) >= len(h.Leaves) {
		return nil, abi.NotFound
	}
	return &h.Leaves[index], abi.OK
}

// Leaf writes a leaf record.
func (h functions) Leaf(index int32, buf []byte) int32 {
	leaf, code := h.leaf("hookhost.leaf", index)
	if code < 0 {
		return code
	}
	var flags uint32
	for flag, set := range map[uint32]bool{
		abi.LeafFlagNumber: leaf.Number, abi.LeafFlagContinues: leaf.Continues,
		abi.LeafFlagFinal: leaf.Final, abi.LeafFlagReadOnly: leaf.ReadOnly,
	} {
		if set {
			flags |= flag
		}
	}
	var r []byte
	for _, n := range []uint32{uint32(leaf.Kind), uint32(leaf.Role), flags, uint32(len(leaf.Text))} {
		r = binary.LittleEndian.AppendUint32(r, n)
	}
	return give(buf, string(r))
}

// LeafPath gives a leaf's pointer.
func (h functions) LeafPath(index int32, buf []byte) int32 {
	leaf, code := h.leaf("hookhost.leaf_path", index)
	if code < 0 {
		return code
	}
	return give(buf, leaf.Pointer)
}

// LeafRead gives a leaf's text from an offset on.
func (h functions) LeafRead(index, offset int32, buf []byte) int32 {
	leaf, code := h.leaf("hookhost.leaf_read", index)
	if code < 0 {
		return code
	}
	if offset < 0 || int(offset) > len(leaf.Text) {
		return abi.BadArgument
	}
	return give(buf, leaf.Text[offset:])
}

// LeafSplice replaces bytes of a leaf.
func (h functions) LeafSplice(index, start, end int32, text string) int32 {
	leaf, code := h.leaf("hookhost.leaf_splice", index)
	switch {
	case code < 0:
		return code
	case leaf.ReadOnly:
		return abi.WrongType
	case start < 0 || end < start || int(end) > len(leaf.Text) || !between(leaf.Text, start) || !between(leaf.Text, end) || !validText(text):
		return abi.BadArgument
	}
	for _, e := range h.Edits {
		if e.Op == abi.EditSplice && e.Pointer == leaf.Pointer && (int(start) == e.Start || int(start) < e.End && e.Start < int(end)) {
			return abi.BadArgument
		}
	}
	for _, held := range h.Holds {
		if held.Pointer == leaf.Pointer && int(end) > len(leaf.Text)-held.Bytes {
			return abi.BadArgument
		}
	}
	return h.edit(abi.Edit{Op: abi.EditSplice, Pointer: leaf.Pointer, Start: int(start), End: int(end), Text: text})
}

// LeafHold keeps the end of a leaf back.
func (h functions) LeafHold(index, bytes int32) int32 {
	leaf, code := h.leaf("hookhost.leaf_hold", index)
	if code < 0 {
		return code
	}
	begin := len(leaf.Text) - int(bytes)
	if bytes < 0 || begin < 0 || leaf.Final && bytes > 0 || !between(leaf.Text, int32(begin)) {
		return abi.BadArgument
	}
	for _, e := range h.Edits {
		if e.Op == abi.EditSplice && e.Pointer == leaf.Pointer && bytes > 0 && e.End > begin {
			return abi.BadArgument
		}
	}
	holds := h.Holds
	h.Host.Holds = nil
	for _, held := range holds {
		if held.Pointer != leaf.Pointer {
			h.Host.Holds = append(h.Holds, held)
		}
	}
	if bytes > 0 {
		h.Host.Holds = append(h.Holds, abi.Hold{Pointer: leaf.Pointer, Bytes: int(bytes)})
	}
	return abi.OK
}

// Get gives the JSON at a pointer.
func (h functions) Get(pointer string, buf []byte) int32 {
	if code := h.refused("hookhost.get"); code < 0 {
		return code
	}
	value, found := h.Documents[pointer]
	return find(buf, value, found)
}

// Edit changes the subject.
func (h functions) Edit(op int32, pointer, value string) int32 {
	if code := h.refused("hookhost.edit"); code < 0 {
		return code
	}
	e := abi.Edit{Op: abi.EditOp(op), Pointer: pointer}
	switch e.Op {
	case abi.EditAdd, abi.EditReplace:
		if !json.Valid([]byte(value)) {
			return abi.BadArgument
		}
		e.Value = []byte(value)
	case abi.EditRemove:
	default:
		return abi.BadArgument
	}
	return h.edit(e)
}

func (h functions) edit(e abi.Edit) int32 {
	if len(h.Edits) == abi.MaxEdits {
		return abi.OverLimit
	}
	h.Edits = append(h.Edits, e)
	return abi.OK
}

// Answer takes a text or JSON as the answer.
func (h functions) Answer(kind int32, value string) int32 {
	return h.answer("hookhost.answer", func() *abi.Answer {
		switch {
		case kind == abi.AnswerText && value != "" && validText(value):
			return &abi.Answer{Text: value}
		case kind == abi.AnswerJSON && json.Valid([]byte(value)):
			return &abi.Answer{JSON: []byte(value)}
		}
		return nil
	})
}

// Refuse takes a refusal as the answer.
func (h functions) Refuse(code, text string, retryMS int64) int32 {
	return h.answer("hookhost.refuse", func() *abi.Answer {
		if !abi.ValidCode(code) || text == "" || !validText(text) || retryMS < 0 {
			return nil
		}
		return &abi.Answer{Refusal: &abi.Refusal{Code: code, Text: text, Retry: time.Duration(retryMS) * time.Millisecond}}
	})
}

func (h functions) answer(function string, of func() *abi.Answer) int32 {
	if code := h.refused(function); code < 0 {
		return code
	}
	if !abi.Allowed(h.Event.Hook, abi.Respond) {
		return abi.NotAtThisHook
	}
	answer := of()
	if answer == nil {
		return abi.BadArgument
	}
	h.Host.Answer = answer
	return abi.OK
}

// state finds the state of a scope, or says why not.
func (h functions) state(function string, scope int32) (map[string]string, int32) {
	if code := h.refused(function); code < 0 {
		return nil, code
	}
	var of *map[string]string
	switch scope {
	case abi.ScopeOp:
		of = &h.Op
	case abi.ScopeRun:
		of = &h.Run
	default:
		return nil, abi.BadArgument
	}
	if *of == nil {
		*of = map[string]string{}
	}
	return *of, abi.OK
}

// StateGet gives a value.
func (h functions) StateGet(scope int32, key string, buf []byte) int32 {
	state, code := h.state("hookhost.state_get", scope)
	if code < 0 {
		return code
	}
	value, found := state[key]
	return find(buf, value, found)
}

// StateSet keeps a value.
func (h functions) StateSet(scope int32, key, value string) int32 {
	state, code := h.state("hookhost.state_set", scope)
	if code < 0 {
		return code
	}
	if len(value) > abi.MaxState || len(key) > abi.MaxKey {
		return abi.OverLimit
	}
	state[key] = value
	return abi.OK
}

// StateDel forgets a value.
func (h functions) StateDel(scope int32, key string) int32 {
	state, code := h.state("hookhost.state_del", scope)
	delete(state, key) // none when the code is not OK
	return code
}

// StateAdd adds to a counter, which is kept in decimal.
func (h functions) StateAdd(scope int32, key string, delta int64, out []byte) int32 {
	state, code := h.state("hookhost.state_add", scope)
	if code < 0 {
		return code
	}
	var n int64
	if was, found := state[key]; found {
		var err error
		if n, err = strconv.ParseInt(was, 10, 64); err != nil {
			return abi.WrongType
		}
	}
	state[key] = strconv.FormatInt(n+delta, 10)
	return giveInt64(out, n+delta)
}

// Config gives a value.
func (h functions) Config(key string, buf []byte) int32 {
	if code := h.refused("hookhost.config"); code < 0 {
		return code
	}
	value, found := h.Host.Config[key]
	return find(buf, value, found)
}

// ConfigKey gives one of the sorted keys.
func (h functions) ConfigKey(index int32, buf []byte) int32 {
	if code := h.refused("hookhost.config_key"); code < 0 {
		return code
	}
	keys := slices.Sorted(maps.Keys(h.Host.Config))
	if index < 0 || int(index) >= len(keys) {
		return abi.NotFound
	}
	return give(buf, keys[index])
}

// Note keeps a note.
func (h functions) Note(key, value string) int32 {
	switch code := h.refused("hookhost.note"); {
	case code < 0:
		return code
	case len(h.Notes) == abi.MaxNotes:
		return abi.OverLimit
	case !validText(key, value):
		return abi.BadArgument
	}
	h.Notes = append(h.Notes, abi.Note{Key: key, Value: value})
	return abi.OK
}

// Log keeps a line.
func (h functions) Log(level int32, text string) int32 {
	if code := h.refused("hookhost.log"); code < 0 {
		return code
	}
	if level < abi.LogDebug || level > abi.LogError {
		return abi.BadArgument
	}
	h.Logs = append(h.Logs, text)
	return abi.OK
}

// Reject keeps what is wrong with the configuration.
func (h functions) Reject(key, text string) int32 {
	if code := h.refused("hookhost.reject"); code < 0 {
		return code
	}
	h.Rejected = append(h.Rejected, abi.Note{Key: key, Value: text})
	return abi.OK
}

// ask keeps in words what a function was asked, or says why it does not work.
func (h functions) ask(function, format string, args ...any) int32 {
	code := h.refused(function)
	if code == abi.OK {
		h.Asked = append(h.Asked, fmt.Sprintf(format, args...))
	}
	return code
}

// LimitAdmit gives the next decision.
func (h functions) LimitAdmit(names string, out []byte) int32 {
	if code := h.ask("hookhost_limit.admit", "admit %s", strings.ReplaceAll(names, "\n", " ")); code < 0 {
		return code
	}
	return h.decide(out)
}

// LimitTake gives the next decision.
func (h functions) LimitTake(name string, cost int64, out []byte) int32 {
	if code := h.ask("hookhost_limit.take", "take %s %d", name, cost); code < 0 {
		return code
	}
	return h.decide(out)
}

// decide writes the next decision; when none is left, admitted with nothing
// taken, as for a limit that the plan does not have.
func (h functions) decide(out []byte) int32 {
	var d Decision
	if len(h.Decisions) > 0 {
		d, h.Decisions = h.Decisions[0], h.Decisions[1:]
	}
	r := binary.LittleEndian.AppendUint32(nil, uint32(d.Kind))
	r = binary.LittleEndian.AppendUint32(r, uint32(d.Limit))
	r = binary.LittleEndian.AppendUint64(r, uint64(d.Wait.Milliseconds()))
	r = binary.LittleEndian.AppendUint64(r, uint64(d.ID))
	return give(out, string(r))
}

// LimitSettle settles.
func (h functions) LimitSettle(id, actual int64) int32 {
	return h.end(id, h.ask("hookhost_limit.settle", "settle %d %d", id, actual))
}

// LimitRelease gives back.
func (h functions) LimitRelease(id int64) int32 {
	return h.end(id, h.ask("hookhost_limit.release", "release %d", id))
}

// end ends a reservation, once.
func (h functions) end(id int64, code int32) int32 {
	if code != abi.OK {
		return code
	}
	if h.ended[id] {
		return abi.NotFound
	}
	if h.ended == nil {
		h.Host.ended = map[int64]bool{}
	}
	h.ended[id] = true
	return abi.OK
}

// UsageRecord records.
func (h functions) UsageRecord() int32 {
	switch h.Event.Hook {
	case abi.AfterModel, abi.OnModelError:
	case abi.Close:
		if h.Event.Of != abi.OpModel {
			return abi.NotAtThisHook
		}
	default:
		return abi.NotAtThisHook
	}
	return h.ask("hookhost_usage.record", "record")
}

// UsageAdd adds to a counter.
func (h functions) UsageAdd(name string, delta int64) int32 {
	if !abi.ValidName(name) {
		return abi.BadArgument
	}
	code := h.ask("hookhost_usage.add", "add %s %d", name, delta)
	if code == abi.OK {
		if h.Counters == nil {
			h.Counters = map[string]int64{}
		}
		h.Counters[name] += delta
	}
	return code
}

// UsageSum gives a counter.
func (h functions) UsageSum(name string, out []byte) int32 {
	if code := h.ask("hookhost_usage.sum", "sum %s", name); code < 0 {
		return code
	}
	return giveInt64(out, h.Counters[name])
}

// KVGet gives a value.
func (h functions) KVGet(name, key string, buf []byte) int32 {
	if code := h.ask("hookhost_kv.get", "get %s %s", name, key); code < 0 {
		return code
	}
	value, found := h.Values[name+" "+key]
	return find(buf, value, found)
}

// KVPut keeps a value.
func (h functions) KVPut(name, key, value string, ttlMS int64) int32 {
	if ttlMS <= 0 {
		return abi.BadArgument
	}
	code := h.ask("hookhost_kv.put", "put %s %s %q %d", name, key, value, ttlMS)
	if code == abi.OK {
		h.keep(name, key, value)
	}
	return code
}

func (h functions) keep(name, key, value string) {
	if h.Values == nil {
		h.Values = map[string]string{}
	}
	h.Values[name+" "+key] = value
}

// Claim gives the next claim; when none is left, the caller's with token 1,
// unless it was completed.
func (h functions) Claim(name, key string, ttlMS int64, out []byte) int32 {
	if code := h.ask("hookhost_claim.claim", "claim %s %s %d", name, key, ttlMS); code < 0 {
		return code
	}
	c := Claim{State: abi.Claimed, Token: 1}
	if _, done := h.Values[name+" "+key]; done {
		c = Claim{State: abi.ClaimDone}
	}
	if len(h.Claims) > 0 {
		c, h.Claims = h.Claims[0], h.Claims[1:]
	}
	r := binary.LittleEndian.AppendUint64(nil, uint64(c.State))
	return give(out, string(binary.LittleEndian.AppendUint64(r, uint64(c.Token))))
}

// ClaimRenew prolongs a claim.
func (h functions) ClaimRenew(name, key string, token, ttlMS int64) int32 {
	return h.ask("hookhost_claim.renew", "renew %s %s %d %d", name, key, token, ttlMS)
}

// ClaimEnd ends a claim.
func (h functions) ClaimEnd(name, key string, token int64, result string, retentionMS int64) int32 {
	code := h.ask("hookhost_claim.end", "end %s %s %d %q %d", name, key, token, result, retentionMS)
	if code == abi.OK && retentionMS > 0 {
		h.keep(name, key, result)
	}
	return code
}

// ClaimResult gives what a claim came to.
func (h functions) ClaimResult(name, key string, buf []byte) int32 {
	if code := h.ask("hookhost_claim.result", "result %s %s", name, key); code < 0 {
		return code
	}
	value, found := h.Values[name+" "+key]
	return find(buf, value, found)
}

// HMACSHA256 signs with a secret.
func (h functions) HMACSHA256(name, data string, out []byte) int32 {
	if code := h.refused("hookhost_secret.hmac_sha256"); code < 0 {
		return code
	}
	secret, found := h.Secrets[name]
	if !found {
		return abi.NotGranted
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(data))
	return give(out, string(mac.Sum(nil)))
}
