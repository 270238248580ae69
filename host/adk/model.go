package adk

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/abi"
)

func (a *adapter) beforeModel(c agent.Context, req *model.LLMRequest) (answer *model.LLMResponse, _ error) {
	defer func() {
		if p := recover(); p != nil {
			a.caught("before_model", p)
			answer = &model.LLMResponse{Content: text(unavailable)}
		}
	}()
	u := bare(c)
	r := a.find(u)
	if d, denied, first := r.Denied(); denied {
		return &model.LLMResponse{Content: r.refuse(u, d, first)}, nil
	}
	r, op := a.openModel(u, req.Model)
	out := op.Dispatch(c, abi.BeforeModel, &abi.Event{
		Subject: requestSubject(req, protocolCalls(u)), Decode: decodeResponse(nil), SetState: u.State().Set,
	})
	switch {
	case out.Cancelled:
		return nil, cmp.Or(c.Err(), context.Canceled) // the caller is gone: this ends the agent, and nothing is called
	case out.Answer != nil:
		if out.Denial != nil {
			r.refused(u.Actions(), *out.Denial)
		}
		return out.Answer.Value().(*model.LLMResponse), nil
	case out.Subject != nil:
		out.Subject.Value().(*request).into(req)
	}
	return nil, nil
}

// into swaps the amended parts into ADK's own request, so that later plugins
// and the agent's callbacks go on with it. A tool whose declaration is gone
// cannot be called either.
func (q *request) into(req *model.LLMRequest) {
	dropped := declared(req.Config)
	for name := range declared(q.Config) {
		delete(dropped, name)
	}
	if len(dropped) > 0 {
		req.Tools = maps.Clone(req.Tools)
		for name := range dropped {
			delete(req.Tools, name)
		}
	}
	req.Model, req.Contents, req.Config = q.Model, q.Contents, q.Config
}

func declared(cfg *genai.GenerateContentConfig) map[string]bool {
	names := make(map[string]bool)
	if cfg == nil {
		return names
	}
	for _, t := range cfg.Tools {
		if t == nil {
			continue
		}
		for _, f := range t.FunctionDeclarations {
			if f != nil {
				names[f.Name] = true
			}
		}
	}
	return names
}

// afterModel sees every chunk and the final response.
func (a *adapter) afterModel(c agent.Context, resp *model.LLMResponse, _ error) (answer *model.LLMResponse, _ error) {
	if resp == nil {
		return nil, nil
	}
	defer func() {
		if p := recover(); p != nil {
			a.caught("after_model", p)
			answer = refusedResponse(resp)
		}
	}()
	if a.ledger.Closed() {
		return refusedResponse(resp), nil // there is nobody left to look at it
	}
	u := bare(c)
	r := a.find(u)
	if resp.Partial {
		return r.chunk(c, u, resp), nil
	}
	a.finals.restore(resp)
	out := r.model(u).Dispatch(c, abi.AfterModel, responseEvent(resp))
	switch {
	case out.Answer != nil:
		if out.Denial != nil {
			r.refused(u.Actions(), *out.Denial)
		}
		return out.Answer.Value().(*model.LLMResponse), nil
	case out.Subject != nil:
		a.finals.swap(resp, out.Subject.Value().(*model.LLMResponse))
	}
	return nil, nil
}

// chunk answers with what became of a chunk. It is never swapped: with the
// tail of this stream in it it is nobody else's, and a model may hand out one
// chunk to many.
func (r *run) chunk(c, u agent.Context, resp *model.LLMResponse) *model.LLMResponse {
	out := r.model(u).Dispatch(c, abi.OnModelChunk, responseEvent(resp))
	chunk := *resp
	switch {
	case out.Hold:
		chunk.Content = nil // which ADK drops silently (fact 9)
	case out.Subject != nil:
		chunk = *out.Subject.Value().(*model.LLMResponse)
		if blank(chunk.Content) {
			chunk.Content = nil
		}
	default:
		r.streamed(resp.Content)
		return nil
	}
	r.streamed(chunk.Content)
	return &chunk
}

// streamed notes a chunk as it goes out, so that its event can be told from
// one that somebody changed.
func (r *run) streamed(c *genai.Content) {
	if c == nil || !r.Chain().Wants(abi.OnEvent) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.chunks[c] = texts(c)
}

// isStreamed reports whether a partial event is a chunk as it went out.
func (r *run) isStreamed(c *genai.Content) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	text, ok := r.chunks[c]
	delete(r.chunks, c)
	return ok && text == texts(c)
}

// texts are all texts of a content, each with its length before it, so that
// no two contents have the same by accident.
func texts(c *genai.Content) string {
	var b strings.Builder
	for _, p := range c.Parts {
		if p != nil {
			fmt.Fprintf(&b, "%d %t %s", len(p.Text), p.Thought, p.Text)
		}
	}
	return b.String()
}

func refusedResponse(resp *model.LLMResponse) *model.LLMResponse {
	refused := *resp
	refused.Content = text(unavailable)
	if resp.Partial {
		refused.Content = nil
	}
	return &refused
}

// blank reports whether nothing but empty texts is left.
func blank(c *genai.Content) bool {
	if c == nil {
		return true
	}
	for _, p := range c.Parts {
		if p != nil && (!isText(p) || p.Text != "") {
			return false
		}
	}
	return true
}

// responseEvent is what a chunk or a final response says about its call.
func responseEvent(resp *model.LLMResponse) *abi.Event {
	ev := &abi.Event{
		Subject: responseSubject(resp), Decode: decodeResponse(resp),
		Usage: usage(resp.UsageMetadata), FinishReason: string(resp.FinishReason),
	}
	if resp.Partial {
		ev.Flags |= abi.Partial
	}
	if ends(resp) {
		ev.Flags |= abi.StreamEnd
	}
	return ev
}

// ends reports whether no more text follows: a real finish reason says so,
// TurnComplete does not (fact 40).
func ends(resp *model.LLMResponse) bool {
	if !resp.Partial {
		return true
	}
	return resp.FinishReason != "" && resp.FinishReason != genai.FinishReasonUnspecified
}

// usage reads the provider's numbers. The type that ADK uses cannot tell an
// explicit zero from a missing value, so a zero counts as sent where the
// others add up to the total without it. Zeros alone say nothing: no call is
// free of tokens, and ADK's model for OpenAI sends them where the provider
// sent no usage at all (fact 33).
func usage(m *genai.GenerateContentResponseUsageMetadata) abi.Usage {
	if m == nil {
		return abi.Usage{}
	}
	u := abi.Usage{
		Prompt: int64(m.PromptTokenCount), Candidates: int64(m.CandidatesTokenCount), Cached: int64(m.CachedContentTokenCount),
		Thoughts: int64(m.ThoughtsTokenCount), ToolUse: int64(m.ToolUsePromptTokenCount), Total: int64(m.TotalTokenCount),
	}
	if u == (abi.Usage{}) {
		return u
	}
	addsUp := u.Total == u.Prompt+u.Candidates+u.Thoughts+u.ToolUse
	for _, n := range []struct {
		bit   abi.UsageMask
		value int64
		main  bool
	}{
		{abi.HasPrompt, u.Prompt, true},
		{abi.HasCandidates, u.Candidates, true},
		{abi.HasCached, u.Cached, false},
		{abi.HasThoughts, u.Thoughts, false},
		{abi.HasToolUse, u.ToolUse, false},
		{abi.HasTotal, u.Total, true},
	} {
		if n.value != 0 || n.main && addsUp {
			u.Mask |= n.bit
		}
	}
	return u
}

func (a *adapter) onModelError(c agent.Context, req *model.LLMRequest, failed error) (answer *model.LLMResponse, _ error) {
	defer func() {
		if p := recover(); p != nil {
			a.caught("on_model_error", p)
			answer = nil // the model's own error goes on
		}
	}()
	u := bare(c)
	r := a.find(u)
	op := r.model(u)
	ev := &abi.Event{Subject: errorSubject(failed), Decode: decodeResponse(nil), Model: req.Model}
	if cancels(failed) {
		ev.Flags |= abi.Cancelled
	}
	out := op.Dispatch(c, abi.OnModelError, ev)
	if out.Answer == nil {
		return nil, nil
	}
	if out.Denial != nil {
		r.refused(u.Actions(), *out.Denial)
	}
	return out.Answer.Value().(*model.LLMResponse), nil
}
