// Package demo is what stands in for the real thing when a chain is tried out:
// a model that replies from a script, tools that keep a record of what they
// did, and agents in every shape that ADK offers, with a small driver for a
// runner. `hookhost run` and the scenario files use it.
package demo
