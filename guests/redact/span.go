package main

import (
	"cmp"
	"slices"
)

// span is a match: the bytes from start to end, and what is put there.
type span struct {
	start, end int
	with       string
}

// findAll finds what the rules find from a byte on; what stands before it is
// only looked at. The spans are sorted and do not overlap: the union is taken
// of those that do, so that no end of one is left, with the replacement of the
// widest.
func findAll(rules []rule, text string, from int) []span {
	var all []span
	for _, r := range rules {
		for _, s := range r.entity.find(text) {
			if s.start >= from {
				s.with = r.replace(text[s.start:s.end])
				all = append(all, s)
			}
		}
	}
	return union(all)
}

func union(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	merged := spans[:0]
	widest := 0
	for _, s := range spans {
		if n := len(merged); n > 0 && s.start < merged[n-1].end {
			last := &merged[n-1]
			if s.end-s.start > widest {
				last.with, widest = s.with, s.end-s.start
			}
			last.end = max(last.end, s.end)
			continue
		}
		merged = append(merged, s)
		widest = s.end - s.start
	}
	return merged
}

// judged returns how far the text can go out now: up to where a match may
// still come or grow, and never through the middle of one.
func judged(rules []rule, text string, spans []span) int {
	cut := openUUID(text)
	for _, r := range rules {
		cut = min(cut, r.entity.open(text))
	}
	for _, s := range spans {
		if s.start < cut && cut < s.end {
			return s.start
		}
	}
	return cut
}

// upTo returns the spans that end at a byte or before.
func upTo(spans []span, end int) []span {
	for i, s := range spans {
		if s.end > end {
			return spans[:i]
		}
	}
	return spans
}
