package main

import (
	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/guest"
)

// hooks are the points at which a model call is over: its response, its error
// or its close. The numbers are the host's, and whichever comes first writes
// the record.
func hooks() guest.Hooks {
	return guest.Hooks{
		AfterModel:   record,
		OnModelError: record,
		Close:        closed,
		AfterTool:    count,
	}
}

func record(c *guest.Call) guest.Verdict {
	if !c.Late() && c.RecordUsage() != nil {
		return guest.Fail
	}
	return guest.Continue
}

func closed(c *guest.Call) guest.Verdict {
	if c.Operation() != abi.OpModel {
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
