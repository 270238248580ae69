package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/hookhost/hookhost/chain/manifest"
)

// writeTable lines up rows. What stands in them cannot move the cursor.
func writeTable(w io.Writer, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = visible(cell)
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	_ = t.Flush() // what the writer does is not ours to judge
}

// longestID is how many characters of an id stand in a table: every row is as
// wide as the widest one.
const longestID = 40

// shortID is an id in a table. Of a long one the beginning stands there, and a
// mark that no other has which begins like it.
func shortID(id string) string {
	shown := visible(id)
	if len(shown) <= longestID || utf8.RuneCountInString(shown) <= longestID {
		return shown
	}
	mark := fmt.Sprintf("...#%x", sha256.Sum256([]byte(id)))[:len("...#")+12]
	kept := 0
	for i := range shown {
		if kept == longestID-len(mark) {
			return shown[:i] + mark
		}
		kept++
	}
	return shown
}

// shortens reports whether a table says less than all of an id.
func shortens(ids ...string) bool {
	return slices.ContainsFunc(ids, func(id string) bool { return shortID(id) != visible(id) })
}

// shortSays is what stands below a table with such ids.
const shortSays = "...# long ids are shortened, --json has them whole"

// limitTOML writes a limit as plans.toml has it.
func limitTOML(l manifest.Limit) string {
	var keys []string
	add := func(format string, value any) { keys = append(keys, fmt.Sprintf(format, value)) }
	if c := l.Lease; c != nil {
		add("max = %d", c.Max)
		add("expires = %q", c.Expires.String())
	}
	if b := l.Bucket; b != nil {
		add("rate = %q", perMinute(b.Rate))
		add("burst = %d", b.Burst)
		switch e := b.Estimate; {
		case e.By == manifest.EstimateSize:
			add(`estimate = { by = "size", output = %d }`, e.Units)
		case e.By == manifest.EstimateLearned:
			add(`estimate = { by = "learned", initial = %d }`, e.Units)
		case e.Units > 0:
			add("estimate = %d", e.Units)
		}
		if b.TurnEstimate > 0 {
			add("turn_estimate = %d", b.TurnEstimate)
		}
		if b.MaxWait > 0 {
			add("max_wait = %q", b.MaxWait.String())
		}
		if b.Slice > 0 {
			add("slice = %d", b.Slice)
		}
	}
	return "{ " + strings.Join(keys, ", ") + " }"
}

// perMinute writes a rate by the minute where that is a whole number, since
// users are counted by the minute.
func perMinute(r manifest.Rate) string {
	minute, period := time.Minute.Milliseconds(), r.Per.Milliseconds()
	if r.Units <= 1e12 && r.Units*minute%period == 0 {
		return fmt.Sprintf("%d/min", r.Units*minute/period)
	}
	return r.String()
}
