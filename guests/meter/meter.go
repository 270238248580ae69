package main

import (
	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/guest"
)

// hooks are the points at which a model call is over: its response, its error
// or its close. The numbers are the host's, and whichever comes first writes
// the record. The meter has to see the call begin, or it would not be told of
// the end of one that was cut off in its stream.
func hooks() guest.Hooks {
	return guest.Hooks{
		BeforeModel:  enter,
		AfterModel:   record,
		OnModelError: record,
		Close:        closed,
		AfterTool:    count,
	}
}

func enter(*guest.Call) guest.Verdict { return guest.Continue }

func record(c *guest.Call) guest.Verdict {
	if !c.Late() && c.RecordUsage() != nil {
		return guest.Fail
	}
	return guest.Continue
}

// closed records a call that the model began to answer. One that a stage
// answered or refused never reached a model.
func closed(c *guest.Call) guest.Verdict {
	began := c.Reason() != abi.ReasonAnswered && c.Reason() != abi.ReasonRefused
	if c.Operation() == abi.OpModel && began {
		return record(c)
	}
	return guest.Continue
}

// toolCalls is the counter of the tools that ran.
const toolCalls = "tool_calls"

func count(c *guest.Call) guest.Verdict {
	if c.Source() == abi.SourceRan && c.AddUsage(toolCalls, 1) != nil {
		return guest.Fail
	}
	return guest.Continue
}
