package demo

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"
)

// Turn is one message to the agent. Empty User and Session stand for "user"
// and "session".
type Turn struct {
	User, Session string
	Text          string
	Content       *genai.Content // in place of Text
	Stream        bool
	Options       []runner.RunOption

	// Each sees every event as it comes and goes on while it returns true;
	// false breaks the loop over the run. nil sees the run to its end.
	Each func(*session.Event) bool
}

// Outcome is what a run gave its caller.
type Outcome struct {
	Events []*session.Event // partial ones included
	Errs   []error
}

// Run sends one turn through the runner.
func Run(ctx context.Context, r *runner.Runner, t Turn) Outcome {
	msg := t.Content
	if msg == nil {
		msg = genai.NewContentFromText(t.Text, genai.RoleUser)
	}
	cfg := agent.RunConfig{StreamingMode: agent.StreamingModeNone}
	if t.Stream {
		cfg.StreamingMode = agent.StreamingModeSSE
	}
	var out Outcome
	for ev, err := range r.Run(ctx, or(t.User, "user"), or(t.Session, "session"), msg, cfg, t.Options...) {
		if err != nil {
			out.Errs = append(out.Errs, err)
		}
		if ev == nil {
			continue
		}
		out.Events = append(out.Events, ev)
		if t.Each != nil && !t.Each(ev) {
			break
		}
	}
	return out
}

// Err joins the errors of the run.
func (o Outcome) Err() error { return errors.Join(o.Errs...) }

// Texts are the texts of the whole events, in order, without thoughts. Events
// that have none are left out.
func (o Outcome) Texts() []string { return texts(o.Events, false) }

// Chunks are the texts of the partial events.
func (o Outcome) Chunks() []string { return texts(o.Events, true) }

func texts(events []*session.Event, partial bool) []string {
	var out []string
	for _, ev := range events {
		if text := Text(ev.Content); ev.Partial == partial && text != "" {
			out = append(out, text)
		}
	}
	return out
}

// Text joins the text parts of a content, without thoughts; a nil content has none.
func Text(c *genai.Content) string {
	if c == nil {
		return ""
	}
	var b strings.Builder
	for _, p := range c.Parts {
		if p != nil && !p.Thought {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

func or(s, empty string) string {
	if s == "" {
		return empty
	}
	return s
}
