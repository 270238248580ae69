package main

import "github.com/hookhost/hookhost/abi/guest"

// hooks are the targets. What they have in common is that a person or a model
// reads it; what a tool is called with stays whole, so before_tool is none.
// The arguments of a call are masked in the history that the model reads and
// in the event that the session keeps, and are read-only at after_model.
// Where they are streamed each piece is masked for itself: a value that is cut
// shows. The keys of arguments, results and state are names, not texts, and
// stay as they are.
func hooks() guest.Hooks {
	r := &redactor{rules: defaultRules()}
	return guest.Hooks{
		Configure:     r.configure,
		OnUserMessage: r.whole,
		BeforeModel:   r.whole,
		OnModelChunk:  r.chunk,
		AfterModel:    r.whole,
		OnEvent:       r.event,
		AfterTool:     r.whole,
	}
}

type redactor struct{ rules []rule }

// whole masks a value that is all there.
func (r *redactor) whole(c *guest.Call) guest.Verdict {
	for p := range passages(c) {
		p.mask(findAll(r.rules, p.text, 0))
	}
	return c.Done()
}

// event masks what the session keeps. The texts of a stream that are as they
// left the chunk hook stay: what stood before them decided what they are, and
// it is not there any more.
func (r *redactor) event(c *guest.Call) guest.Verdict {
	for p := range passages(c) {
		if c.Streamed() && p.streams() {
			continue
		}
		p.mask(findAll(r.rules, p.text, 0))
	}
	return c.Done()
}

// chunk masks a piece of a stream. The end that may become a match with what
// follows is held back, and the end of what goes out is remembered: what
// stands before a number decides whether it is one.
func (r *redactor) chunk(c *guest.Call) guest.Verdict {
	for p := range passages(c) {
		b := backlogOf(c, p.kind())
		text := b.before + b.carried + p.text
		spans := findAll(r.rules, text, len(b.before))
		cut := len(text)
		if !p.final() {
			cut = max(judged(r.rules, text, spans), len(b.before))
		}
		spans = upTo(spans, cut)
		// The host holds the end of one leaf: what has to be held of those
		// before it is taken out and carried.
		held := len(text) - p.holdable()
		next := backlog{before: p.lookBehind(text[:cut])}
		if cut < held {
			next.carried = text[cut:held]
			spans = append(spans, span{start: cut, end: held})
		}
		p.mask(b.inFront(spans, text))
		p.hold(len(text) - max(cut, held))
		if next.keep(c, p.kind()) != nil {
			return guest.Fail
		}
	}
	return c.Done()
}
