package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Error is one fault of a file, at its place.
type Error struct {
	File  string `json:"file"`            // as it was given to Load
	Line  int    `json:"line"`            // from 1; 0 for a fault of no place, such as a file that cannot be read
	Col   int    `json:"col"`             // from 1, in characters
	Stage string `json:"stage,omitempty"` // empty unless the fault lies in a stage's table
	Key   string `json:"key,omitempty"`   // dotted, below the stage or the plan; empty if no key is at fault
	Msg   string `json:"msg"`             // what is wrong and what is allowed

	subject string // "stage[NAME]", "plan[NAME]", "override", or empty
	source  string // the line of the file, without what may be secret
	width   int    // characters to underline
	hidden  bool   // the line is not rendered
	cause   error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Col)
	}
	b.WriteString(": ")
	if e.subject != "" {
		b.WriteString(e.subject)
		if e.Key == "" {
			b.WriteByte(':')
		}
		b.WriteByte(' ')
	}
	if e.Key != "" {
		b.WriteString(e.Key)
		b.WriteString(": ")
	}
	b.WriteString(e.Msg)
	return b.String()
}

// Unwrap gives the error behind the fault, such as the one of a file that
// cannot be read.
func (e *Error) Unwrap() error { return e.cause }

// Render gives the error and below it the line with the place underlined, for
// a person who has the file. The line of plans that are no TOML is left out.
func (e *Error) Render() string {
	if e.Line == 0 || e.hidden {
		return e.Error() + "\n"
	}
	var b strings.Builder
	number := fmt.Sprint(e.Line)
	fmt.Fprintf(&b, "%s\n  %s | %s\n  %s | ", e.Error(), number, e.source, strings.Repeat(" ", len(number)))
	col := 1
	for _, r := range e.source {
		if col == e.Col {
			break
		}
		if r != '\t' {
			r = ' '
		}
		b.WriteRune(r)
		col++
	}
	b.WriteString(strings.Repeat("^", max(1, min(e.width, utf8.RuneCountInString(e.source)-col+1))))
	b.WriteByte('\n')
	return b.String()
}

// Errors are all faults that were found, in the order of their places.
type Errors struct{ All []*Error }

func (e *Errors) Error() string {
	lines := make([]string, len(e.All))
	for i, one := range e.All {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the faults one by one.
func (e *Errors) Unwrap() []error {
	all := make([]error, len(e.All))
	for i, one := range e.All {
		all[i] = one
	}
	return all
}

// Render gives every fault with its line and the place underlined.
func (e *Errors) Render() string {
	var b strings.Builder
	for _, one := range e.All {
		b.WriteString(one.Render())
	}
	return b.String()
}

// faults collects errors while a file is read.
type faults []*Error

// err gives what was collected, or nil. Files stand in the order in which they
// were first blamed, places within a file in theirs.
func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	var files []string
	for _, e := range f {
		if !slices.Contains(files, e.File) {
			files = append(files, e.File)
		}
	}
	slices.SortStableFunc(f, func(a, b *Error) int {
		return cmp.Or(
			cmp.Compare(slices.Index(files, a.File), slices.Index(files, b.File)),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Col, b.Col),
			strings.Compare(a.Error(), b.Error()),
		)
	})
	return &Errors{All: slices.CompactFunc(f, func(a, b *Error) bool { return a.Error() == b.Error() })}
}

// describe fills the parts of an error that do not depend on its place.
func (e *Error) describe(format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	e.Msg, e.cause = err.Error(), errors.Unwrap(err)
	return e
}
