package store

// Average is a moving average in integers: Units of Calls, the calls at most
// AverageOver.
type Average struct{ Units, Calls int64 }

// Add counts calls in, and lets the old ones fade. The numbers are those that
// Validate lets pass, of which the sum stays below 2^53.
func (a Average) Add(calls, units int64) Average {
	a.Units, a.Calls = a.Units+units, a.Calls+calls
	if a.Calls > AverageOver {
		whole, rest := a.Units/a.Calls, a.Units%a.Calls
		a.Units, a.Calls = whole*AverageOver+rest*AverageOver/a.Calls, AverageOver
	}
	return a
}

// Mean is what a call uses, rounded up; 0 where nothing is known.
func (a Average) Mean() int64 {
	if a.Calls == 0 {
		return 0
	}
	return (a.Units + a.Calls - 1) / a.Calls
}
