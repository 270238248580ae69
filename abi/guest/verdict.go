package guest

import (
	"time"

	"github.com/hookhost/hookhost/abi"
)

// Verdict is what a hook comes to, packed as the ABI has it. The zero Verdict
// is none: forgetting to decide never means yes.
type Verdict uint64

// The verdicts that need nothing else.
const (
	Continue = Verdict(abi.Continue) // go on, nothing changed
	Fail     = Verdict(abi.Fail)     // this hook could not decide; the stage's policy does
)

// Done is the verdict of a hook that goes on: amend when it changed something,
// else continue. When a change did not take, the value would go on unchanged
// although it should not, so Done fails.
func (c *Call) Done() Verdict {
	switch {
	case c.broken != nil:
		return Fail
	case c.changed:
		return Verdict(abi.Amend)
	}
	return Continue
}

// Answer responds with a text: a content of one part, or {"result": text} at
// tool hooks.
func (c *Call) Answer(text string) Verdict {
	return respond(c.border.Answer(abi.AnswerText, text))
}

// AnswerJSON responds with a value of the hook's own answer type.
func (c *Call) AnswerJSON(json string) Verdict {
	return respond(c.border.Answer(abi.AnswerJSON, json))
}

// Refuse responds with a no: a code of [a-z0-9_.]{1,64} for programs, a text
// for the user or the model, and when to come back, 0 if that is not known.
func (c *Call) Refuse(code, text string, retry time.Duration) Verdict {
	return respond(c.border.Refuse(code, text, milliseconds(retry)))
}

// Wait goes on after a pause that the host makes, up to abi.MaxWait. This
// hook is not called again after it.
func (c *Call) Wait(d time.Duration) Verdict {
	switch ms := milliseconds(d); {
	case ms <= 0:
		return c.Done()
	case ms > abi.MaxWait.Milliseconds():
		return Fail
	default:
		return Verdict(abi.Pack(abi.Wait, time.Duration(ms)*time.Millisecond))
	}
}

// respond is the verdict of an answer that the host took, or did not.
func respond(code int32) Verdict {
	if code < 0 {
		return Fail
	}
	return Verdict(abi.Respond)
}

// milliseconds rounds up: coming back too early is being refused again.
func milliseconds(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return ms
}
