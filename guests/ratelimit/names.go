package main

import (
	"strings"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/guest"
)

// The kinds of limit: their keys in the configuration, their names in the
// plans unless it has others, and the ends of the reason codes.
const (
	turn   = "turn"
	tokens = "tokens"
	runs   = "runs"
)

// names are what the plans call the limits. An empty one is not asked for.
type names struct{ turn, tokens, runs string }

var defaultNames = names{turn: turn, tokens: tokens, runs: runs}

// used lists the names that are asked for, in the order of the questions: is
// it too soon, is there enough left, is there too much going on.
func (n names) used() []string {
	var used []string
	for _, name := range []string{n.turn, n.tokens, n.runs} {
		if name != "" {
			used = append(used, name)
		}
	}
	return used
}

// of returns the kind of limit with this name.
func (n names) of(name string) string {
	switch name {
	case n.tokens:
		return tokens
	case n.runs:
		return runs
	}
	return turn
}

// shared reports whether a limit is one of many users: NAME:app or
// NAME:global.
func shared(name string) bool { return strings.Contains(name, ":") }

// configure reads the names: runs = "sessions", tokens = "quota:global". An
// empty text leaves a limit out.
func (l *limiter) configure(c *guest.Config) {
	l.names = defaultNames
	for _, key := range c.Keys() {
		name, _ := c.Get(key)
		switch key {
		case turn:
			l.names.turn = name
		case tokens:
			l.names.tokens = name
		case runs:
			l.names.runs = name
		default:
			c.Reject(key, "no key "+guest.Quote(key)+": there are runs, tokens, turn")
			continue
		}
		if _, ok := abi.ParseGrant("limit:" + name); name != "" && !ok {
			c.Reject(key, "no name of a limit: "+guest.Quote(name))
		}
	}
}
