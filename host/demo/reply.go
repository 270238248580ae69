package demo

import (
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/adk/v2/model"
	"google.golang.org/genai"
)

// Reply is what the model says to one call. It is the `[[reply]]` table of a
// script; what has no key there is for Go tests.
type Reply struct {
	Agent   string   `toml:"agent"`   // only a call of this agent takes the reply; empty: any call
	Thought string   `toml:"thought"` // a thought part before all others
	Text    string   `toml:"text"`    // the answer in one piece
	Chunks  []string `toml:"chunks"`  // the answer in pieces: a partial each in a stream, joined in the final response
	Calls   []Call   `toml:"calls"`   // function calls after the text
	Usage   *Usage   `toml:"usage"`   // on the last partial and again on the final response, as Gemini does
	Error   string   `toml:"error"`   // the model fails with this text, in a stream after the chunks
	Delay   Duration `toml:"delay"`   // time that passes before the reply, on the model's clock
	Hang    bool     `toml:"hang"`    // after the chunks of a stream, or in place of the reply, nothing comes until the caller goes away

	ChunkUsage []Usage `toml:"chunk_usage"` // running totals on the last partials before the one that has Usage

	Err error                `toml:"-"` // the model fails with this very error; goes before Error
	Raw []*model.LLMResponse `toml:"-"` // sent as they are, in place of all the above but Agent, Delay and the error
}

// Call is a function call that the model makes. Without an id ADK gives it one.
type Call struct {
	ID   string         `toml:"id"`
	Name string         `toml:"name"`
	Args map[string]any `toml:"args"`
}

// Usage is the tokens of a model call, as a provider's running totals. Prompt
// has the cached ones in it; candidates leaves out thoughts and tool use.
type Usage struct {
	Prompt     int32 `toml:"prompt"`
	Candidates int32 `toml:"candidates"`
	Cached     int32 `toml:"cached"`
	Thoughts   int32 `toml:"thoughts"`
	ToolUse    int32 `toml:"tool_use"`
	Total      int32 `toml:"total"`
}

// Metadata is the usage as the model reports it.
func (u Usage) Metadata() *genai.GenerateContentResponseUsageMetadata {
	return &genai.GenerateContentResponseUsageMetadata{
		PromptTokenCount:        u.Prompt,
		CandidatesTokenCount:    u.Candidates,
		CachedContentTokenCount: u.Cached,
		ThoughtsTokenCount:      u.Thoughts,
		ToolUsePromptTokenCount: u.ToolUse,
		TotalTokenCount:         u.Total,
	}
}

// Duration is a time.Duration that a script writes as "1.5s".
type Duration time.Duration

// UnmarshalText reads a duration that is not negative.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is no duration: want one like 1.5s", text)
	}
	if parsed < 0 {
		return fmt.Errorf("duration %s is negative", parsed)
	}
	*d = Duration(parsed)
	return nil
}

// Check says what is wrong with the reply, all faults at once.
func (r *Reply) Check() error {
	var faults []error
	if r.empty() {
		faults = append(faults, errors.New("says nothing: want one of text, chunks, thought, calls, usage, error, hang"))
	}
	if r.Text != "" && len(r.Chunks) > 0 {
		faults = append(faults, errors.New("has both text and chunks: want one of them"))
	}
	for i, c := range r.Calls {
		if c.Name == "" {
			faults = append(faults, fmt.Errorf("call %d has no name", i+1))
		}
	}
	for _, u := range append(r.ChunkUsage, r.usage()) {
		if min(u.Prompt, u.Candidates, u.Cached, u.Thoughts, u.ToolUse, u.Total) < 0 {
			faults = append(faults, fmt.Errorf("usage has a negative number: want 0 to %d", math.MaxInt32))
		}
	}
	return errors.Join(faults...)
}

func (r *Reply) empty() bool {
	return r.Thought == "" && r.Text == "" && len(r.Chunks) == 0 && len(r.Calls) == 0 && r.Usage == nil &&
		r.failure() == nil && len(r.Raw) == 0 && !r.Hang
}

func (r *Reply) usage() Usage {
	if r.Usage == nil {
		return Usage{}
	}
	return *r.Usage
}

// failure is the error that the reply ends with, or nil.
func (r *Reply) failure() error {
	if r.Err != nil {
		return r.Err
	}
	if r.Error != "" {
		return errors.New(r.Error)
	}
	return nil
}

// responses are what the model yields before the failure, if there is one.
// They are made anew for each call: ADK writes into them.
func (r *Reply) responses(stream bool) []*model.LLMResponse {
	if r.Raw != nil {
		return r.Raw
	}
	pieces := r.pieces()
	if !stream {
		if r.failure() != nil || r.Hang {
			return nil
		}
		return []*model.LLMResponse{r.final(pieces)}
	}
	partials := make([]*model.LLMResponse, len(pieces))
	for i, p := range pieces {
		partials[i] = &model.LLMResponse{Content: content(p), Partial: true}
	}
	for i := range min(len(r.ChunkUsage), len(partials)-1) {
		at := len(partials) - 1 - min(len(r.ChunkUsage), len(partials)-1) + i
		partials[at].UsageMetadata = r.ChunkUsage[i].Metadata()
	}
	if r.failure() != nil || r.Hang {
		return partials
	}
	final := r.final(pieces)
	if n := len(partials); n > 0 {
		last := partials[n-1]
		last.FinishReason, last.TurnComplete, last.UsageMetadata = final.FinishReason, true, final.UsageMetadata
	}
	return append(partials, final)
}

// pieces are the parts as they are streamed: a thought, the chunks, the calls.
func (r *Reply) pieces() []*genai.Part {
	var parts []*genai.Part
	if r.Thought != "" {
		parts = append(parts, &genai.Part{Text: r.Thought, Thought: true})
	}
	chunks := r.Chunks
	if r.Text != "" {
		chunks = []string{r.Text}
	}
	for _, c := range chunks {
		parts = append(parts, &genai.Part{Text: c})
	}
	for _, c := range r.Calls {
		parts = append(parts, &genai.Part{FunctionCall: &genai.FunctionCall{ID: c.ID, Name: c.Name, Args: cloneMap(c.Args)}})
	}
	return parts
}

// final joins the texts of one kind and shares the call parts with the
// partials, as ADK's aggregator for Gemini does.
func (r *Reply) final(pieces []*genai.Part) *model.LLMResponse {
	joined := []*genai.Part{}
	for _, p := range pieces {
		last := len(joined) - 1
		switch {
		case p.FunctionCall != nil:
			joined = append(joined, p)
		case last >= 0 && joined[last].Thought == p.Thought:
			joined[last].Text += p.Text
		default:
			joined = append(joined, &genai.Part{Text: p.Text, Thought: p.Thought})
		}
	}
	resp := &model.LLMResponse{Content: content(joined...), FinishReason: genai.FinishReasonStop}
	if r.Usage != nil {
		resp.UsageMetadata = r.Usage.Metadata()
	}
	return resp
}

func content(parts ...*genai.Part) *genai.Content {
	return &genai.Content{Role: genai.RoleModel, Parts: parts}
}

// cloneMap copies what a TOML value or a JSON value is made of.
func cloneMap(m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = cloneValue(v)
	}
	return out
}

func cloneValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return cloneMap(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = cloneValue(v[i])
		}
		return out
	default:
		return v
	}
}
