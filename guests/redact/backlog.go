package main

import (
	"strings"

	"github.com/hookhost/hookhost/abi/guest"
)

// A backlog is what the next passage of a stream has to know of those before
// it: the end of what went out, and what was taken out of a leaf and has to go
// out with the next one. What the host holds comes between the two and the
// new text by itself.
type backlog struct{ before, carried string }

func backlogOf(c *guest.Call, kind string) backlog {
	before, _ := c.Op().Get("before " + kind)
	carried, _ := c.Op().Get("carried " + kind)
	return backlog{before, carried}
}

func (b backlog) keep(c *guest.Call, kind string) error {
	if err := c.Op().Set("before "+kind, b.before); err != nil {
		return err
	}
	return c.Op().Set("carried "+kind, b.carried)
}

// inFront makes spans of the passage out of those of the whole text: what was
// carried is put in front, as far as no span takes it away, in one piece with
// the spans that reach it.
func (b backlog) inFront(spans []span, text string) []span {
	at, begin := len(b.before), len(b.before)+len(b.carried)
	var placed []span
	if b.carried != "" {
		front := ""
		for len(spans) > 0 && spans[0].start <= begin {
			front += text[at:spans[0].start] + spans[0].with
			at, spans = spans[0].end, spans[1:]
		}
		if at < begin {
			front += text[at:begin]
			at = begin
		}
		if front != "" || at > begin {
			// The end of a character that was cut may be in the passage.
			placed = append(placed, span{end: at - begin, with: strings.ToValidUTF8(front, "\ufffd")})
		}
	}
	for _, s := range spans {
		placed = append(placed, span{s.start - begin, s.end - begin, s.with})
	}
	return placed
}
