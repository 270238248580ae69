// Package script is a guest that does what it is told: the text of the first
// leaf holds one step a line, its words separated by "|". What a step comes to
// is left as a note, and the last one is the verdict. Together the steps use
// every function of the ABI.
package script

import (
	"strconv"
	"strings"
	"time"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/guest"
)

// Hooks are all of them, and a configuration that is rejected when it has the
// key "reject".
func Hooks() guest.Hooks {
	return guest.Hooks{
		Configure: func(c *guest.Config) {
			if text, found := c.Get("reject"); found {
				c.Reject("reject", text)
			}
		},
		OnUserMessage: run, BeforeRun: run, AfterRun: run, OnEvent: run, BeforeAgent: run, AfterAgent: run,
		BeforeModel: run, OnModelChunk: run, AfterModel: run, OnModelError: run,
		BeforeTool: run, AfterTool: run, OnToolError: run, Close: run,
	}
}

func run(c *guest.Call) guest.Verdict {
	var s *script
	for leaf := range c.Leaves() {
		if s == nil {
			s = &script{Call: c, steps: strings.Split(leaf.Text(), "\n")}
		}
		s.leaves = append(s.leaves, leaf)
	}
	if s == nil {
		return guest.Continue
	}
	for _, step := range s.steps {
		s.words = strings.Split(step, "|")
		if v, last := s.verdict(); last {
			return v
		}
		c.Note(s.words[0], s.step())
	}
	return 0
}

type script struct {
	*guest.Call
	leaves []guest.Leaf
	steps  []string
	words  []string // of the step
	last   int64    // the reservation or the token that a step came to
}

func (s *script) word(i int) string {
	if i < len(s.words) {
		return s.words[i]
	}
	return ""
}

func (s *script) number(i int) int64 {
	n, _ := strconv.ParseInt(s.word(i), 10, 64)
	return n
}

func (s *script) duration(i int) time.Duration {
	return time.Duration(s.number(i)) * time.Millisecond
}

func (s *script) verdict() (v guest.Verdict, last bool) {
	switch s.words[0] {
	case "continue":
		return guest.Continue, true
	case "done":
		return s.Done(), true
	case "fail":
		return guest.Fail, true
	case "wait":
		return s.Wait(s.duration(1)), true
	case "answer":
		return s.Answer(s.word(1)), true
	case "answer_json":
		return s.AnswerJSON(s.word(1)), true
	case "refuse":
		return s.Refuse(s.word(1), s.word(2), s.duration(3)), true
	}
	return 0, false
}

func (s *script) step() string {
	state := s.Op()
	if s.word(1) == "run" {
		state = s.Run()
	}
	switch s.words[0] {
	case "head":
		return s.head()
	case "texts":
		return s.texts()
	case "leaf":
		return s.leaf(s.leaves[s.number(1)])
	case "splice":
		return done(s.leaves[s.number(1)].Splice(int(s.number(2)), int(s.number(3)), s.word(4)))
	case "hold":
		return done(s.leaves[s.number(1)].Hold(int(s.number(2))))
	case "get":
		return value(s.Get(s.word(1)))
	case "set":
		return done(s.Set(s.word(1), s.word(2)))
	case "add":
		return done(s.Add(s.word(1), s.word(2)))
	case "remove":
		return done(s.Remove(s.word(1)))
	case "state_get":
		return found(state.Get(s.word(2)))
	case "state_set":
		return done(state.Set(s.word(2), s.word(3)))
	case "state_del":
		return done(state.Delete(s.word(2)))
	case "state_add":
		return number(state.Add(s.word(2), s.number(3)))
	case "config":
		return s.Config(s.word(1))
	case "config_keys":
		return strings.Join(s.ConfigKeys(), " ")
	case "log":
		s.Log(abi.LogInfo, s.word(1))
		return "ok"
	case "admit":
		return s.decision(s.Admit(s.words[1:]...))
	case "take":
		return s.decision(s.Take(s.word(1), s.number(2)))
	case "settle":
		return done(s.Settle(s.last, s.number(1)))
	case "release":
		return done(s.Release(s.last))
	case "usage_record":
		return done(s.RecordUsage())
	case "usage_add":
		return done(s.AddUsage(s.word(1), s.number(2)))
	case "usage_sum":
		return number(s.SumUsage(s.word(1)))
	case "kv_get":
		return value(s.KVGet(s.word(1), s.word(2)))
	case "kv_put":
		return done(s.KVPut(s.word(1), s.word(2), s.word(3), s.duration(4)))
	case "claim":
		return s.claim(s.Claim(s.word(1), s.word(2), s.duration(3)))
	case "claim_renew":
		return done(s.RenewClaim(s.word(1), s.word(2), s.last, s.duration(3)))
	case "claim_end":
		return done(s.EndClaim(s.word(1), s.word(2), s.last, s.word(3), s.duration(4)))
	case "claim_result":
		return value(s.ClaimResult(s.word(1), s.word(2)))
	case "hmac":
		return hex(s.HMAC(s.word(1), s.word(2)))
	}
	return "no such step"
}

func (s *script) head() string {
	u := s.Usage()
	first, came := s.FirstChunk()
	return join(s.Hook().String(), s.Operation().String(), s.Reason().String(), s.Source().String(),
		strconv.FormatBool(s.Entered()), strconv.FormatBool(s.Late()), strconv.FormatBool(s.Recovered()),
		strconv.FormatBool(s.Live()), strconv.FormatBool(s.StreamEnd()), strconv.FormatBool(s.Partial()),
		strconv.FormatBool(s.Cancelled()), strconv.FormatBool(s.Resumed()),
		itoa(int64(u.Mask)), itoa(u.Prompt), itoa(u.Candidates), itoa(u.Cached), itoa(u.Thoughts), itoa(u.ToolUse), itoa(u.Total),
		itoa(s.Time().UnixMilli()), itoa(s.Elapsed().Microseconds()),
		itoa(first.Microseconds()), strconv.FormatBool(came), itoa(s.ModelCalls()))
}

func (s *script) texts() string {
	return join(s.Stage(), s.App(), s.User(), s.Session(), s.Agent(), s.Branch(), s.Invocation(), s.RunID(), s.OpID(),
		s.Model(), s.Tool(), s.CallID(), s.Author(), s.FinishReason(), s.AnsweredBy())
}

func (s *script) leaf(l guest.Leaf) string {
	return join(l.Kind.String(), itoa(int64(l.Role)), l.Path(), l.Text(), itoa(int64(l.Len)), strconv.FormatBool(l.Number),
		strconv.FormatBool(l.Continues), strconv.FormatBool(l.Final), strconv.FormatBool(l.ReadOnly))
}

// decision says what was decided, and whether there is something to settle.
func (s *script) decision(d guest.Decision, err error) string {
	if err != nil {
		return err.Error()
	}
	open := "closed"
	if d.Reservation != 0 {
		s.last, open = d.Reservation, "open"
	}
	switch d.Kind {
	case abi.Admitted:
		return "admitted " + open
	case abi.Delayed:
		return join("delayed", d.Limit, itoa(d.Wait.Milliseconds()), open)
	case abi.Denied:
		return join("denied", d.Limit, itoa(d.Wait.Milliseconds()), open)
	}
	return join("never", d.Limit, open)
}

func (s *script) claim(c guest.Claim, err error) string {
	if err != nil {
		return err.Error()
	}
	if c.State == abi.Claimed {
		s.last = c.Token
	}
	return itoa(int64(c.State))
}

func done(err error) string {
	if err != nil {
		return err.Error()
	}
	return "ok"
}

func value(text string, err error) string {
	if err != nil {
		return err.Error()
	}
	return text
}

func number(n int64, err error) string { return value(itoa(n), err) }

func found(text string, found bool) string {
	if !found {
		return "not found"
	}
	return text
}

func hex(sum [32]byte, err error) string {
	if err != nil {
		return err.Error()
	}
	const digits = "0123456789abcdef"
	text := ""
	for _, b := range sum {
		text += digits[b>>4:b>>4+1] + digits[b&15:b&15+1]
	}
	return text
}

func join(words ...string) string { return strings.Join(words, " ") }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
