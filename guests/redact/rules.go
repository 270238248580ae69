package main

import (
	"strconv"
	"strings"

	"github.com/hookhost/hookhost/abi/guest"
)

// An entity is a kind of thing that is found in a text. What it finds depends
// on the match, on up to lookBehind bytes before it and on one character
// behind it, and on nothing else: that is what lets a stream be cut.
type entity interface {
	// find finds what there is. Spans may overlap.
	find(text string) []span
	// open returns where the end of the text begins that may become a match,
	// or a longer one, with what follows; len(text) if there is none.
	open(text string) int
}

// lookBehind is how much of what stands before a match matters: an address
// has to know that no more than 64 bytes go before its @.
const lookBehind = 128

// A rule is an entity and what becomes of it.
type rule struct {
	name    string
	entity  entity
	replace func(found string) string
}

// entities are what there is, in the order of their names.
var entities = []rule{
	{name: "card", entity: card{}},
	{name: "email", entity: email{}},
	{name: "iban", entity: iban{}},
}

// strategies make the replacement for what a rule finds.
var strategies = []struct {
	name string
	of   func(rule) func(found string) string
}{
	{"mask", func(rule) func(string) string { return lastFour }},
	{"redact", label},
}

// label is the strategy that leaves nothing but what it was: [CARD].
func label(r rule) func(string) string {
	text := "[" + strings.ToUpper(r.name) + "]"
	return func(string) string { return text }
}

// lastFour keeps the last four letters or digits: ****1111.
func lastFour(found string) string {
	kept := ""
	for i := len(found) - 1; i >= 0 && len(kept) < 4; i-- {
		if isAlnum(found[i]) {
			kept = found[i:i+1] + kept
		}
	}
	return "****" + kept
}

// defaultRules redact every entity.
func defaultRules() []rule {
	rules := make([]rule, 0, len(entities))
	for _, r := range entities {
		r.replace = label(r)
		rules = append(rules, r)
	}
	return rules
}

// configure reads
//
//	entities = ["card", "email"]   # all, if absent
//	strategy = "redact"            # or "mask"
//	strategies.card = "mask"       # for one entity
func (r *redactor) configure(c *guest.Config) {
	for _, key := range c.Keys() {
		top, name, _ := strings.Cut(key, ".")
		switch {
		case key == "entities":
			c.Reject(key, "a list of entities is wanted: there are "+strings.Join(entityNames(), ", "))
		case top == "entities", key == "strategy":
		case top == "strategies" && name != "":
			if !hasEntity(name) {
				c.Reject(key, noSuch("entity", name, entityNames()))
			}
		default:
			c.Reject(key, noSuch("key", key, []string{"entities", "strategies", "strategy"}))
		}
	}
	r.rules = nil
	for _, e := range entities {
		e.replace = strategyOf(c, e)
		if wanted(c, e.name) {
			r.rules = append(r.rules, e)
		}
	}
	names, _ := c.List("entities")
	for i, name := range names {
		if !hasEntity(name) {
			c.Reject("entities."+strconv.Itoa(i), noSuch("entity", name, entityNames()))
		}
	}
}

// strategyOf finds what becomes of an entity.
func strategyOf(c *guest.Config, e rule) func(string) string {
	key := "strategies." + e.name
	name, found := c.Get(key)
	if !found {
		key = "strategy"
		name, found = c.Get(key)
	}
	if !found {
		return label(e)
	}
	var names []string
	for _, s := range strategies {
		if s.name == name {
			return s.of(e)
		}
		names = append(names, s.name)
	}
	c.Reject(key, noSuch("strategy", name, names))
	return label(e)
}

// wanted reports whether the configuration asks for an entity.
func wanted(c *guest.Config, name string) bool {
	names, found := c.List("entities")
	if !found {
		return true
	}
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

func hasEntity(name string) bool {
	for _, e := range entities {
		if e.name == name {
			return true
		}
	}
	return false
}

func entityNames() []string {
	var names []string
	for _, e := range entities {
		names = append(names, e.name)
	}
	return names
}

func noSuch(what, name string, there []string) string {
	return "no " + what + " " + guest.Quote(name) + ": there are " + strings.Join(there, ", ")
}
