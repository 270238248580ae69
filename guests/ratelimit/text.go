package main

import (
	"strconv"
	"time"
)

// What users read of a limit of their own, or of one that they share with
// others: then it is not their plan that is used up.
const (
	tooMuch       = "This needs more than your plan allows at once."
	tooMuchForAll = "This needs more than the service allows at once."

	usedUp   = "You have reached your usage limit"
	busy     = "The service is busy"
	cutShort = ", so the work stopped early and this answer is not complete."
)

// atOnce says which limit refused a run.
var atOnce = map[string]string{
	turn:   "You are sending messages faster than your plan allows.",
	tokens: usedUp + ".",
	runs:   "You have as many conversations going on at once as your plan allows.",
}

// refused says why a run cannot begin.
func (n names) refused(limit string) string {
	if shared(limit) {
		return busy + "."
	}
	return atOnce[n.of(limit)]
}

// stopped says why a run that goes on ends early.
func stopped(limit string) string {
	if shared(limit) {
		return busy + cutShort
	}
	return usedUp + cutShort
}

// never says that no waiting helps.
func never(limit string) string {
	if shared(limit) {
		return tooMuchForAll
	}
	return tooMuch
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
