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

// event masks what the session keeps. The texts of a stream that were seen as
// chunks stay: what stands before them decides what they are, and it is not
// there any more. The pieces of an agent that calls no model nobody has seen.
func (r *redactor) event(c *guest.Call) guest.Verdict {
	_, streams := c.Run().Get(chunksOf + c.Agent())
	for p := range passages(c) {
		if c.Partial() && streams && p.streams() {
			continue
		}
		p.mask(findAll(r.rules, p.text, 0))
	}
	return c.Done()
}

// chunksOf and the name of an agent are the key in the state of the run which
// says that the agent's chunks are seen.
const chunksOf = "chunks of "

// chunk masks a piece of a stream. The end that may become a match with what
// follows is held back, and the end of what goes out is remembered: what
// stands before a number decides whether it is one.
func (r *redactor) chunk(c *guest.Call) guest.Verdict {
	c.Run().Set(chunksOf+c.Agent(), "") // where it is not kept the event is masked once more
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
