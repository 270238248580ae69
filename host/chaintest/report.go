package chaintest

import (
	"fmt"
	"strings"
	"time"
)

// Report is what came of one scenario.
type Report struct {
	File     string        `json:"file"`
	Name     string        `json:"name"`
	About    string        `json:"about,omitempty"`
	Failures []Failure     `json:"failures,omitempty"`
	Trace    []string      `json:"trace,omitempty"` // of all turns
	Took     time.Duration `json:"took_ns"`
}

// OK reports whether everything was as expected.
func (r *Report) OK() bool { return len(r.Failures) == 0 }

// Failure is one expectation that was not met.
type Failure struct {
	Place string   `json:"place"` // FILE:LINE:COL of the expectation
	Of    string   `json:"of"`    // the turn, or the end
	What  string   `json:"what"`  // the key of the expectation
	Words string   `json:"words,omitempty"`
	Want  []string `json:"want"`
	Got   []string `json:"got"`

	at []string
}

// String says where, what, and how what came differs from what was expected.
func (f Failure) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s %s", f.Place, f.Of, f.What)
	if f.Words != "" {
		b.WriteString(": " + f.Words)
	}
	b.WriteString("\n")
	b.WriteString(diff(f.Want, f.Got))
	return b.String()
}
