package hostfn

import (
	"github.com/hookhost/hookhost/abi"
)

// Answer drafts the value to respond with. The last one counts.
func (c *Call) Answer(kind int32, value string) int32 {
	if code := firstOf(c.here("hookhost.answer"), c.canRespond(), checkText(value, abi.MaxValue)); code != abi.OK {
		return code
	}
	var answer abi.Answer
	switch {
	case kind == abi.AnswerText && value != "":
		answer.Text = value
	case kind == abi.AnswerJSON:
		if code := c.checkJSON(value); code != abi.OK {
			return code
		}
		answer.JSON = []byte(value)
	default:
		return abi.BadArgument
	}
	if c.ev.Decode != nil {
		if _, err := c.ev.Decode(answer); err != nil {
			return abi.BadArgument
		}
	}
	c.draft.answer = &answer
	return abi.OK
}

// Refuse drafts an answer that says no. The last one counts.
func (c *Call) Refuse(code, text string, retryMS int64) int32 {
	if code := firstOf(c.here("hookhost.refuse"), c.canRespond(), checkText(text, abi.MaxState)); code != abi.OK {
		return code
	}
	retry, wrong := milliseconds(retryMS, 0)
	if wrong != abi.OK || text == "" || !abi.ValidCode(code) {
		return abi.BadArgument
	}
	c.draft.answer = &abi.Answer{Refusal: &abi.Refusal{Code: code, Text: text, Retry: retry}}
	return abi.OK
}

// canRespond keeps answers away from hooks where none is read.
func (c *Call) canRespond() abi.Code {
	if !abi.Allowed(c.Hook(), abi.Respond) {
		return abi.NotAtThisHook
	}
	return abi.OK
}

// Note leaves a key and a value in the trace.
func (c *Call) Note(key, value string) int32 {
	if code := firstOf(c.here("hookhost.note"), checkKey(key), checkText(key, abi.MaxKey), checkText(value, abi.MaxKey)); code != abi.OK {
		return code
	}
	return c.note(key, value)
}

func (c *Call) note(key, value string) abi.Code {
	if len(c.draft.notes) >= abi.MaxNotes {
		return abi.OverLimit
	}
	c.draft.notes = append(c.draft.notes, abi.Note{Key: key, Value: value})
	return abi.OK
}
