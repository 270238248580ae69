package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/hookhost/hookhost/chain/manifest"
)

// report writes an error, and the faults of a file with the lines at fault.
// Paths and keys among it are written as they would be in a text of Go: they
// cannot begin a line or move the cursor.
func report(w io.Writer, err error) {
	for _, one := range each(err) {
		if fault, is := one.(*manifest.Error); is {
			seen := *fault
			seen.File, seen.Key, seen.Msg = visible(fault.File), visible(fault.Key), indented(fault.Msg)
			fmt.Fprint(w, visibleLines(seen.Render()))
		} else {
			fmt.Fprintln(w, "hookhost:", indented(one.Error()))
		}
	}
}

// indented is visible for the text of an error, of which only the first line
// begins one.
func indented(text string) string { return strings.ReplaceAll(visibleLines(text), "\n", "\n  ") }

// visibleLines is visible for a text of several lines, with tabs.
func visibleLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		parts := strings.Split(line, "\t")
		for j, part := range parts {
			parts[j] = visible(part)
		}
		lines[i] = strings.Join(parts, "\t")
	}
	return strings.Join(lines, "\n")
}

// reportJSON is report for programs. What is no fault of a file has no place.
func reportJSON(c *command, err error) {
	var out struct {
		Faults []*manifest.Error `json:"faults"`
	}
	for _, one := range each(err) {
		fault, is := one.(*manifest.Error)
		if !is {
			fault = &manifest.Error{Msg: one.Error()}
		}
		out.Faults = append(out.Faults, fault)
	}
	if err := writeJSON(c, out); err != nil {
		report(c.stderr, err)
	}
}

// each takes joined errors apart.
func each(err error) []error {
	joined, is := err.(interface{ Unwrap() []error })
	if !is {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, each(one)...)
	}
	return all
}

func writeJSON(c *command, v any) error {
	enc := json.NewEncoder(c.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
