package adk

import (
	"reflect"
	"slices"
	"strings"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
)

// beforeAgent answers for a denied run: the first time with the refusal, then
// silently, escalating so that an unbounded loop ends (facts 18, 38). It never
// returns an error, on which some agents go on as if nothing was (fact 19).
func (a *adapter) beforeAgent(c agent.Context) (answer *genai.Content, _ error) {
	defer func() {
		if p := recover(); p != nil {
			a.caught("before_agent", p)
			answer = text(unavailable)
		}
	}()
	u := bare(c)
	r := a.find(u)
	if d, denied, first := r.Denied(); denied {
		return r.refuse(u, d, first), nil
	}
	op := a.openAgent(u)
	if !op.Run().Chain().Wants(abi.BeforeAgent) {
		return nil, nil
	}
	out := op.Dispatch(c, abi.BeforeAgent, &abi.Event{Decode: decodeContent})
	switch {
	case out.Cancelled:
		return silence(), nil
	case out.Denial != nil:
		r.refused(u.Actions(), *out.Denial)
		u.Actions().Escalate = true
	case out.Answer == nil:
		return nil, nil
	}
	return out.Answer.Value().(*genai.Content), nil
}

func (r *run) refuse(u agent.Context, d chain.Denial, first bool) *genai.Content {
	r.refused(u.Actions(), d)
	u.Actions().Escalate = true
	if !first {
		return silence()
	}
	return spoken(d)
}

// spoken is what a denied run says: what the stage answered, if a person sees
// anything of it, or else the text.
func spoken(d chain.Denial) *genai.Content {
	if d.Answer != nil {
		if c := d.Answer.Value().(*genai.Content); slices.ContainsFunc(c.Parts, shows) {
			return c
		}
	}
	if d.Text == "" {
		return silence()
	}
	return text(d.Text)
}

// shows reports whether a part has more than blanks and thoughts.
func shows(p *genai.Part) bool {
	return p != nil && !p.Thought &&
		(strings.TrimSpace(p.Text) != "" || !reflect.DeepEqual(p, &genai.Part{Text: p.Text}))
}

// afterAgent appends what a stage answers as a second event.
func (a *adapter) afterAgent(c agent.Context) (answer *genai.Content, _ error) {
	defer func() {
		if p := recover(); p != nil {
			a.caught("after_agent", p)
			answer = text(unavailable)
		}
	}()
	u := bare(c)
	out := a.find(u).closeAgent(u).Dispatch(c, abi.AfterAgent, &abi.Event{Decode: decodeContent})
	if out.Answer == nil {
		return nil, nil
	}
	return out.Answer.Value().(*genai.Content), nil
}

func text(s string) *genai.Content { return genai.NewContentFromText(s, genai.RoleModel) }

// silence is an answer that nobody reads. ADK fails a run whose last content
// is nil, and not one whose content is empty (fact 41).
func silence() *genai.Content { return &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{}} }
