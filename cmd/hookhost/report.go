package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/hookhost/hookhost/chain/manifest"
)

// report writes an error, and the faults of a file with the lines at fault.
func report(w io.Writer, err error) {
	for _, one := range each(err) {
		if fault, is := one.(*manifest.Error); is {
			fmt.Fprint(w, fault.Render())
		} else {
			fmt.Fprintln(w, "hookhost:", one)
		}
	}
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
