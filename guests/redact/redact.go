package main

import "github.com/hookhost/hookhost/abi/guest"

// hooks are the targets. What they have in common is that a person or a model
// reads it; what a tool is called with stays whole, so before_tool is none.
// The arguments of a call are masked in the history that the model reads and
// in the event that the session keeps, and are read-only at after_model.
func hooks() guest.Hooks {
	r := &redactor{rules: defaultRules()}
	return guest.Hooks{
		Configure:     r.configure,
		OnUserMessage: r.whole,
		BeforeModel:   r.whole,
		OnModelChunk:  r.chunk,
		AfterModel:    r.whole,
		OnEvent:       r.whole,
		AfterTool:     r.whole,
	}
}

type redactor struct{ rules []rule }

// whole masks a value that is all there.
func (r *redactor) whole(c *guest.Call) guest.Verdict {
	for p := range passages(c) {
		p.mask(findAll(r.rules, p.text, 0), 0)
	}
	return c.Done()
}

// chunk masks a piece of a stream. The end that may become a match with what
// follows is held back, and the end of what goes out is remembered: what
// stands before a number decides whether it is one.
func (r *redactor) chunk(c *guest.Call) guest.Verdict {
	for p := range passages(c) {
		key := "before " + p.kind()
		before, _ := c.Op().Get(key)
		text := before + p.text
		spans := findAll(r.rules, text, len(before))
		cut := len(text)
		if !p.final() {
			cut = max(judged(r.rules, text, spans), len(before))
		}
		p.mask(upTo(spans, cut), len(before))
		p.hold(len(text) - cut)
		if err := c.Op().Set(key, p.lookBehind(text[:cut])); err != nil {
			return guest.Fail
		}
	}
	return c.Done()
}
