package store

import (
	"maps"
	"slices"
)

// Histogram counts minutes by what they came to, rounded up to two
// significant digits.
type Histogram map[int64]int64

// Step rounds up to two significant digits: 1 to 99 stay, 101 is 110.
func Step(n int64) int64 {
	unit := int64(1)
	for n > 99*unit {
		unit *= 10
	}
	return (n + unit - 1) / unit * unit
}

// Merge adds the counts of another histogram.
func (h Histogram) Merge(other Histogram) {
	for step, minutes := range other {
		h[step] += minutes
	}
}

// Percentile is the smallest step that p hundredths of the minutes do not go
// over, from 1 to 100; 0 of none.
func (h Histogram) Percentile(p int64) int64 {
	var all, seen int64
	for _, minutes := range h {
		all += minutes
	}
	for _, step := range slices.Sorted(maps.Keys(h)) {
		seen += h[step]
		if seen*100 >= all*p {
			return step
		}
	}
	return 0
}
