package main

import (
	"strconv"
	"time"
)

// What users read.
const (
	tooMuch      = "This needs more than your plan allows at once."
	stoppedEarly = "You have reached your usage limit, so the work stopped early and this answer is not complete."
)

// atOnce says which limit refused a run.
var atOnce = map[string]string{
	turn:   "You are sending messages faster than your plan allows.",
	tokens: "You have reached your usage limit.",
	runs:   "You have as many conversations going on at once as your plan allows.",
}

// comeBack says when to try again, in whole seconds or, from two minutes on,
// in whole minutes, rounded up.
func comeBack(wait time.Duration) string {
	n, unit := up(wait, time.Second), "second"
	switch {
	case n <= 0:
		return "Please try again later."
	case n >= 120:
		n, unit = up(wait, time.Minute), "minute"
	}
	if n != 1 {
		unit += "s"
	}
	return "Please try again in " + strconv.FormatInt(n, 10) + " " + unit + "."
}

func up(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }
