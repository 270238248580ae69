package main

import (
	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/guest"
)

// hooks are the points at which a model call is over: its response, its error
// or its close. The numbers are the host's, and whichever comes first writes
// the record. Being there when the call begins is what makes the host tell of
// its end in every case, as when the caller stops reading.
func hooks() guest.Hooks {
	return guest.Hooks{
		BeforeModel:  begin,
		AfterModel:   record,
		OnModelError: record,
		Close:        closed,
		AfterTool:    count,
	}
}

func begin(*guest.Call) guest.Verdict { return guest.Continue }

func record(c *guest.Call) guest.Verdict {
	if !c.Late() && c.RecordUsage() != nil {
		return guest.Fail
	}
	return guest.Continue
}

// closed records a call that got neither a response nor an error. One that was
// answered or refused in the model's place was none.
func closed(c *guest.Call) guest.Verdict {
	if c.Operation() != abi.OpModel || c.Reason() == abi.ReasonAnswered || c.Reason() == abi.ReasonRefused {
		return guest.Continue
	}
	return record(c)
}

// toolCalls is the counter of the tools that ran.
const toolCalls = "tool_calls"

func count(c *guest.Call) guest.Verdict {
	if c.Source() == abi.SourceRan && c.AddUsage(toolCalls, 1) != nil {
		return guest.Fail
	}
	return guest.Continue
}
