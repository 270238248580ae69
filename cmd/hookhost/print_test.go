package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
)

// shown is what a person sees of a conversation.
func shown(trace bool, talk func(*printer)) string {
	var b strings.Builder
	talk(newPrinter(&b, false, trace))
	return b.String()
}

func says(author, text string, partial bool) *session.Event {
	return &session.Event{Author: author, LLMResponse: model.LLMResponse{
		Content: genai.NewContentFromText(text, genai.RoleModel), Partial: partial,
	}}
}

func chunk(author, text string) *session.Event { return says(author, text, true) }
func whole(author, text string) *session.Event { return says(author, text, false) }

func TestAReplyGoesOnBehindItsChunks(t *testing.T) {
	for name, c := range map[string]struct {
		events []*session.Event
		want   string
	}{
		"all said": {
			[]*session.Event{chunk("a", "one "), chunk("a", "two"), whole("a", "one two")},
			"  a: one |two\n",
		},
		"more to say": {
			[]*session.Event{chunk("a", "one"), whole("a", "one two")},
			"  a: one two\n",
		},
		"something else": {
			[]*session.Event{chunk("a", "one"), whole("a", "The service is busy.")},
			"  a: one\n  a: The service is busy.\n",
		},
		"two at once": {
			[]*session.Event{chunk("a", "one "), chunk("b", "eins"), chunk("a", "two"), whole("b", "eins"), whole("a", "one two")},
			"  a: one \n  b: eins\n  a: two\n  b: eins\n  a: one two\n",
		},
		"one after the other": {
			[]*session.Event{chunk("a", "one"), whole("a", "one"), chunk("a", "two"), whole("a", "two")},
			"  a: one\n  a: two\n",
		},
		"what moves the cursor": {
			[]*session.Event{chunk("a", "\x1b[2J"), whole("a", "\x1b[2J\n  refused: x")},
			"  a: \\x1b[2J\\n  refused: x\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, shown(false, func(p *printer) {
				for _, ev := range c.events {
					p.event(ev)
				}
				p.endTurn()
			}))
		})
	}
}

func step(h abi.Hook, stage string, v abi.Kind) chain.Step {
	return chain.Step{Op: "op", Hook: h, Stage: stage, Verdict: v, Took: time.Millisecond}
}

func TestStepsOfAStreamAreCountedBetweenOtherHooks(t *testing.T) {
	got := shown(true, func(p *printer) {
		for _, s := range []chain.Step{
			step(abi.OnModelChunk, "x", abi.Continue),
			step(abi.OnEvent, "x", abi.Continue),
			step(abi.OnModelChunk, "x", abi.Continue),
			step(abi.OnEvent, "x", abi.Continue),
			step(abi.OnModelChunk, "x", abi.Amend),
			step(abi.AfterModel, "x", abi.Continue),
			step(abi.AfterModel, "x", abi.Continue),
			step(abi.OnEvent, "x", abi.Continue),
			{Op: "op", Hook: abi.OnEvent, Stage: "x", Cause: chain.CauseTrap, Policy: chain.Open, Took: time.Millisecond},
			{Op: "op", Hook: abi.OnEvent, Stage: "x", Cause: chain.CauseDeadline, Policy: chain.Open, Took: time.Millisecond},
		} {
			p.step(s)
		}
		p.endTurn()
	})
	assert.Equal(t, `    on_model_chunk  x          continue     2.00 ms x2
    on_event        x          continue     2.00 ms x2
    on_model_chunk  x          amend        1.00 ms
    after_model     x          continue     1.00 ms
    after_model     x          continue     1.00 ms
    on_event        x          continue     1.00 ms
    on_event        x          failed       1.00 ms  trap open
    on_event        x          failed       1.00 ms  deadline open

`, got)
}
