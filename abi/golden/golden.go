// Package golden is what a guest sees of the host and the host of a guest, as
// cases: events with a script for the guest in folder guest, and the verdicts
// that have to come of them. They are run natively here, and by a host
// through the compiled guest.
package golden

import (
	"strings"
	"time"

	"github.com/hookhost/hookhost/abi"
)

// Case is one call of the golden guest.
type Case struct {
	Name   string
	Event  abi.Event // without Subject, Op and Run
	Script []string  // the text of leaf 0, at /script
	Leaves []abi.Leaf
	// Documents are the JSON that get finds, by pointer.
	Documents map[string]string
	Want      abi.Verdict // with Fail and notes of it, where a host makes a failure of the stage
	Bad       bool        // a bad verdict, whatever Want is
}

// Stage, OpID and RunID are who the guest is and what it is called in; Config
// and Secret are what its stage has.
const (
	Stage  = "golden"
	OpID   = "op-1"
	RunID  = "run-1"
	Secret = "key"
)

// Config is the stage's configuration.
func Config() map[string]string {
	return map[string]string{"mode": "loud", "words.0": "a", "words.1": "b"}
}

// Grants are what the stage needs.
func Grants() []string {
	return []string{
		"limit:turn", "limit:tokens", "limit:runs", "limit:absent", "usage:read", "usage:write", "kv:cache", "claim:job", "secret:pii",
	}
}

// Plans is the plan behind the limits. The store is new at the begin of a
// case and its clock stands still; the plan has no limit "absent".
const Plans = `
version = "golden"
default = "free"

[plan.free]
turn   = { rate = "1/min", burst = 1 }
tokens = { rate = "1000/s", burst = 1000, estimate = 600, max_wait = "2s" }
runs   = { max = 1, expires = "30s" }
`

// Text is the script as the first leaf has it.
func (c Case) Text() string { return strings.Join(c.Script, "\n") }

// AllLeaves are the script and the other leaves.
func (c Case) AllLeaves() []abi.Leaf {
	return append([]abi.Leaf{{Kind: abi.LeafText, Pointer: "/script", Text: c.Text()}}, c.Leaves...)
}

// notes makes the notes of "step", "result" and so on.
func notes(pairs ...string) []abi.Note {
	var notes []abi.Note
	for i := 0; i+1 < len(pairs); i += 2 {
		notes = append(notes, abi.Note{Key: pairs[i], Value: pairs[i+1]})
	}
	return notes
}

func at(hook abi.Hook) abi.Event {
	return abi.Event{Hook: hook, Of: hook.Operation(), App: "shop", User: "user 42"}
}

func splice(pointer string, start, end int, text string) abi.Edit {
	return abi.Edit{Op: abi.EditSplice, Pointer: pointer, Start: start, End: end, Text: text}
}

// full is an event with something in every field.
var full = abi.Event{
	Hook: abi.Close, Of: abi.OpModel, Reason: abi.ReasonCancelled, Source: abi.SourceAnswered,
	Flags: abi.Entered | abi.Recovered | abi.StreamEnd | abi.Cancelled,
	App:   "shop", User: "user 42", Session: "s-1", Agent: "support", Branch: "root.support", Invocation: "e-1",
	Model: "scripted", Tool: "refund", CallID: "c-1", Author: "support", FinishReason: "STOP", AnsweredBy: "cache",
	Usage: abi.Usage{
		Mask:   abi.HasPrompt | abi.HasCandidates | abi.HasCached | abi.HasTotal,
		Prompt: 20, Candidates: 12, Cached: 0, Total: 1 << 40,
	},
	Time: time.UnixMilli(1796000000123), Elapsed: 1500 * time.Microsecond, FirstChunk: 20 * time.Microsecond, ModelCalls: 3,
}

// Cases returns all of them.
func Cases() []Case {
	hello := abi.Leaf{Kind: abi.LeafText, Role: abi.RoleModel, Pointer: "/1", Text: "héllo world"}
	goesOn := abi.Leaf{Kind: abi.LeafThought, Role: abi.RoleUser, Pointer: "/2", Text: "", Continues: true, Final: true}
	fixed := abi.Leaf{Kind: abi.LeafArgument, Pointer: "/3/a~1b", Text: "12.50", Number: true, ReadOnly: true}
	long := strings.Repeat("é", 2000)

	return []Case{
		{
			Name: "head, all of it", Event: full,
			Script: []string{"head", "continue"},
			Want: abi.Verdict{Kind: abi.Continue, Notes: notes("head",
				"close model cancelled answered true false true false true false true false "+
					"39 20 12 0 0 0 1099511627776 1796000000123 1500 20 true 3")},
		},
		{
			Name: "head, next to nothing", Event: abi.Event{Hook: abi.AfterRun, Of: abi.OpRun, Flags: abi.Late | abi.Live | abi.Partial | abi.Resumed, Time: time.UnixMilli(0)},
			Script: []string{"head", "continue"},
			Want: abi.Verdict{Kind: abi.Continue, Notes: notes("head",
				"after_run run reason? ran false true false true false true false true 0 0 0 0 0 0 0 0 0 0 false 0")},
		},
		{
			Name: "texts", Event: full, Script: []string{"texts", "continue"},
			Want: abi.Verdict{Kind: abi.Continue, Notes: notes("texts",
				"golden shop user 42 s-1 support root.support e-1 run-1 op-1 scripted refund c-1 support STOP cache")},
		},
		{
			Name: "leaves", Event: at(abi.AfterModel), Leaves: []abi.Leaf{hello, goesOn, fixed},
			Script: []string{"leaf|1", "leaf|2", "leaf|3", "done"},
			Want: abi.Verdict{Kind: abi.Continue, Notes: notes(
				"leaf", "text 2 /1 héllo world 12 false false false false",
				"leaf", "thought 1 /2  0 false true true false",
				"leaf", "argument 0 /3/a~1b 12.50 5 true false false true",
			)},
		},
		{
			Name: "splices", Event: at(abi.AfterModel), Leaves: []abi.Leaf{hello},
			Script: []string{"splice|1|7|12|you", "splice|1|0|6|Salut", "done"},
			Want: abi.Verdict{
				Kind: abi.Amend, Notes: notes("splice", "ok", "splice", "ok"),
				Edits: []abi.Edit{splice("/1", 7, 12, "you"), splice("/1", 0, 6, "Salut")},
			},
		},
		{
			Name: "a leaf that is read-only", Event: at(abi.AfterModel), Leaves: []abi.Leaf{fixed},
			Script: []string{"splice|1|0|1|x", "done"},
			Want:   abi.Verdict{Kind: abi.Continue, Notes: notes("splice", "wrong type")},
		},
		{
			Name: "a splice beyond the end", Event: at(abi.AfterModel), Leaves: []abi.Leaf{hello},
			Script: []string{"splice|1|0|13|x", "done"},
			Want:   abi.Verdict{Kind: abi.Fail, Notes: notes("splice", "bad argument")},
		},
		{
			Name: "a splice through a character", Event: at(abi.AfterModel), Leaves: []abi.Leaf{hello},
			Script: []string{"splice|1|0|2|x", "done"},
			Want:   abi.Verdict{Kind: abi.Fail, Notes: notes("splice", "bad argument")},
		},
		{
			Name: "splices that overlap", Event: at(abi.AfterModel), Leaves: []abi.Leaf{hello},
			Script: []string{"splice|1|0|6|x", "splice|1|5|7|y", "done"},
			Want:   abi.Verdict{Kind: abi.Fail, Notes: notes("splice", "ok", "splice", "bad argument")},
		},
		{
			Name: "a hold", Event: at(abi.OnModelChunk), Leaves: []abi.Leaf{hello},
			Script: []string{"splice|1|0|6|Salut", "hold|1|5", "done"},
			Want: abi.Verdict{
				Kind: abi.Amend, Notes: notes("splice", "ok", "hold", "ok"),
				Edits: []abi.Edit{splice("/1", 0, 6, "Salut")}, Holds: []abi.Hold{{Pointer: "/1", Bytes: 5}},
			},
		},
		{
			Name: "a hold without a change", Event: at(abi.OnModelChunk), Leaves: []abi.Leaf{hello},
			Script: []string{"hold|1|5", "done"},
			Want:   abi.Verdict{Kind: abi.Continue, Notes: notes("hold", "ok"), Holds: []abi.Hold{{Pointer: "/1", Bytes: 5}}},
		},
		{
			Name: "a splice that reaches into what is held", Event: at(abi.OnModelChunk), Leaves: []abi.Leaf{hello},
			Script: []string{"hold|1|5", "splice|1|6|8|x", "done"},
			Want:   abi.Verdict{Kind: abi.Fail, Notes: notes("hold", "ok", "splice", "bad argument")},
		},
		{
			Name: "a hold that is taken back", Event: at(abi.OnModelChunk), Leaves: []abi.Leaf{hello},
			Script: []string{"hold|1|5", "hold|1|0", "done"},
			Want:   abi.Verdict{Kind: abi.Continue, Notes: notes("hold", "ok", "hold", "ok")},
		},
		{
			Name: "a hold of more than there is", Event: at(abi.OnModelChunk), Leaves: []abi.Leaf{hello},
			Script: []string{"hold|1|13", "done"},
			Want:   abi.Verdict{Kind: abi.Fail, Notes: notes("hold", "bad argument")},
		},
		{
			Name: "a hold of what is whole", Event: at(abi.AfterModel), Leaves: []abi.Leaf{hello},
			Script: []string{"hold|1|5", "done"},
			Want:   abi.Verdict{Kind: abi.Fail, Notes: notes("hold", "not at this hook")},
		},
		{
			Name: "documents", Event: at(abi.BeforeModel), Documents: map[string]string{"/config": `{"topK":4}`, "/model": `"` + long + `"`},
			Script: []string{
				"get|/config", "get|/none", "add|/config/topP|0.5", "set|/model|\"small\"", "remove|/config/topK", "done",
			},
			Want: abi.Verdict{
				Kind:  abi.Amend,
				Notes: notes("get", `{"topK":4}`, "get", "not found", "add", "ok", "set", "ok", "remove", "ok"),
				Edits: []abi.Edit{
					{Op: abi.EditAdd, Pointer: "/config/topP", Value: []byte("0.5")},
					{Op: abi.EditReplace, Pointer: "/model", Value: []byte(`"small"`)},
					{Op: abi.EditRemove, Pointer: "/config/topK"},
				},
			},
		},
		{
			Name: "an edit that is no JSON", Event: at(abi.BeforeModel), Script: []string{"set|/model|small", "done"},
			Want: abi.Verdict{Kind: abi.Fail, Notes: notes("set", "bad argument")},
		},
		{
			Name: "a text as the answer", Event: at(abi.BeforeModel), Script: []string{"answer|" + long},
			Want: abi.Verdict{Kind: abi.Respond, Answer: abi.Answer{Text: long}},
		},
		{
			Name: "JSON as the answer", Event: at(abi.BeforeTool), Script: []string{`answer_json|{"n":1}`},
			Want: abi.Verdict{Kind: abi.Respond, Answer: abi.Answer{JSON: []byte(`{"n":1}`)}},
		},
		{
			Name: "a refusal", Event: at(abi.BeforeRun), Script: []string{"refuse|limit.turn|Not now.|2100"},
			Want: abi.Verdict{Kind: abi.Respond, Answer: abi.Answer{Refusal: &abi.Refusal{
				Code: "limit.turn", Text: "Not now.", Retry: 2100 * time.Millisecond,
			}}},
		},
		{
			Name: "a refusal without a code", Event: at(abi.BeforeRun), Script: []string{"refuse|Limit|Not now.|0"},
			Want: abi.Verdict{Kind: abi.Fail},
		},
		{
			Name: "an answer where none is possible", Event: at(abi.Close), Script: []string{"answer|yes"},
			Want: abi.Verdict{Kind: abi.Fail},
		},
		{
			Name: "a wait", Event: at(abi.BeforeModel), Script: []string{"wait|1500"},
			Want: abi.Verdict{Kind: abi.Wait, Wait: 1500 * time.Millisecond},
		},
		{Name: "a wait that is too long", Event: at(abi.BeforeModel), Script: []string{"wait|3600001"}, Want: abi.Verdict{Kind: abi.Fail}},
		{Name: "a failure", Event: at(abi.BeforeModel), Script: []string{"fail"}, Want: abi.Verdict{Kind: abi.Fail}},
		{Name: "no verdict", Event: at(abi.BeforeModel), Script: []string{"log|forgot"}, Bad: true},
		{
			Name: "state", Event: at(abi.BeforeModel),
			Script: []string{
				"state_get|op|k", "state_set|op|k|", "state_get|op|k", "state_get|run|k", "state_del|op|k", "state_get|op|k",
				"state_add|run|n|5", "state_add|run|n|-7", "state_get|run|n", "state_set|op|t|text", "state_add|op|t|1", "continue",
			},
			Want: abi.Verdict{Kind: abi.Continue, Notes: notes(
				"state_get", "not found", "state_set", "ok", "state_get", "", "state_get", "not found", "state_del", "ok",
				"state_get", "not found", "state_add", "5", "state_add", "-2", "state_get", "-2", "state_set", "ok", "state_add", "wrong type",
			)},
		},
		{
			Name: "configuration", Event: at(abi.BeforeModel), Script: []string{"config|mode", "config|none", "config_keys", "continue"},
			Want: abi.Verdict{Kind: abi.Continue, Notes: notes("config", "loud", "config", "", "config_keys", "mode words.0 words.1")},
		},
		{
			Name: "limits", Event: at(abi.BeforeModel),
			Script: []string{
				"admit|turn|runs", "admit|runs|turn", "take|tokens|-1", "settle|10", "settle|10", "take|tokens|5000", "take|tokens|2000",
				"release", "take|absent|1", "continue",
			},
			Want: abi.Verdict{Kind: abi.Continue, Notes: notes(
				"admit", "admitted open", "admit", "denied turn 60000 closed", "take", "admitted open", "settle", "ok",
				"settle", "not found", "take", "never tokens closed", "take", "delayed tokens 1010 open",
				"release", "ok", "take", "admitted closed",
			)},
		},
		{
			Name: "usage", Event: at(abi.AfterModel),
			Script: []string{"usage_record", "usage_record", "usage_sum|calls", "usage_add|calls|2", "usage_add|calls|3", "usage_sum|calls", "continue"},
			Want: abi.Verdict{Kind: abi.Continue, Notes: notes(
				"usage_record", "ok", "usage_record", "ok", "usage_sum", "0", "usage_add", "ok", "usage_add", "ok", "usage_sum", "5")},
		},
		{
			Name: "usage of a call that is not over", Event: at(abi.BeforeModel), Script: []string{"usage_record", "continue"},
			Want: abi.Verdict{Kind: abi.Continue, Notes: notes("usage_record", "not at this hook")},
		},
		{
			Name: "values", Event: at(abi.BeforeTool),
			Script: []string{"kv_get|cache|k", "kv_put|cache|k|v|1000", "kv_get|cache|k", "kv_put|cache|k|v|0", "continue"},
			Want: abi.Verdict{Kind: abi.Continue, Notes: notes(
				"kv_get", "not found", "kv_put", "ok", "kv_get", "v", "kv_put", "bad argument")},
		},
		{
			Name: "claims", Event: at(abi.BeforeTool),
			Script: []string{
				"claim|job|k|1000", "claim_renew|job|k|1000", "claim_result|job|k", "claim_end|job|k|result|1000",
				"claim_result|job|k", "claim|job|k|1000", "continue",
			},
			Want: abi.Verdict{Kind: abi.Continue, Notes: notes(
				"claim", "1", "claim_renew", "ok", "claim_result", "not found", "claim_end", "ok", "claim_result", "result", "claim", "3")},
		},
		{
			Name: "a keyed hash", Event: at(abi.BeforeModel), Script: []string{"hmac|pii|The quick brown fox jumps over the lazy dog", "continue"},
			Want: abi.Verdict{Kind: abi.Continue, Notes: notes("hmac", "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8")},
		},
	}
}
