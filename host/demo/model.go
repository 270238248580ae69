package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"google.golang.org/adk/v2/model"
)

// ErrScriptDone is what a call gets when no reply is left for it.
var ErrScriptDone = errors.New("script is done")

// Model is a model.LLM that replies from a script. Each call takes the first
// unused reply that is meant for its agent or for any; a call that finds none
// fails with [ErrScriptDone]. The exported fields are set before the first
// call; the calls themselves may run at once.
type Model struct {
	Label   string // the model's name; "scripted" if empty
	Replies []Reply
	Repeat  bool // the last reply that fits an agent is given again and again, instead of ErrScriptDone

	// Sleep lets the time of Reply.Delay pass, or returns the context's error.
	// The real clock, if nil.
	Sleep func(context.Context, time.Duration) error

	mu    sync.Mutex
	used  []bool
	calls []Request
}

// Request is one call as the model read it. The request is a copy in the form
// it has on the wire: numbers are float64, and its Tools are not in it.
type Request struct {
	Agent  string // empty if the call came through the model itself
	Stream bool
	*model.LLMRequest
}

// Name is the model's name.
func (m *Model) Name() string {
	if m.Label == "" {
		return "scripted"
	}
	return m.Label
}

// GenerateContent replies to a caller that does not say who it is, with the
// replies that are for any agent.
func (m *Model) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return m.generate(ctx, "", req, stream)
}

// For is the model as one agent calls it.
func (m *Model) For(agent string) model.LLM { return &view{Model: m, agent: agent} }

// Requests are the calls so far, in the order they began.
func (m *Model) Requests() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Request(nil), m.calls...)
}

// Left is the number of replies that no call has taken.
func (m *Model) Left() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := len(m.Replies)
	for _, u := range m.used {
		if u {
			left--
		}
	}
	return left
}

type view struct {
	*Model
	agent string
}

func (v *view) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return v.generate(ctx, v.agent, req, stream)
}

func (m *Model) generate(ctx context.Context, agent string, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		reply, err := m.take(agent, req, stream)
		if err == nil {
			err = m.sleep(ctx, time.Duration(reply.Delay))
		}
		if err != nil {
			yield(nil, err)
			return
		}
		for _, resp := range reply.responses(stream) {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			if !yield(resp, nil) {
				return
			}
		}
		if reply.Hang {
			<-ctx.Done()
			yield(nil, ctx.Err())
			return
		}
		if err := reply.failure(); err != nil {
			yield(nil, err)
		}
	}
}

// take records the call and marks its reply as used.
func (m *Model) take(agent string, req *model.LLMRequest, stream bool) (*Reply, error) {
	seen, err := wireCopy(req)
	if err != nil {
		return nil, fmt.Errorf("model[%s]: %w", m.Name(), err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, Request{Agent: agent, Stream: stream, LLMRequest: seen})
	if m.used == nil {
		m.used = make([]bool, len(m.Replies))
	}
	last := -1
	for i := range m.Replies {
		if to := m.Replies[i].Agent; to != "" && to != agent {
			continue
		}
		if !m.used[i] {
			m.used[i] = true
			return &m.Replies[i], nil
		}
		last = i
	}
	if m.Repeat && last >= 0 {
		return &m.Replies[last], nil
	}
	return nil, fmt.Errorf("model[%s]: %w: call %d, of agent[%s], finds no reply", m.Name(), ErrScriptDone, len(m.calls), agent)
}

func (m *Model) sleep(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	if m.Sleep != nil {
		return m.Sleep(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func wireCopy(req *model.LLMRequest) (*model.LLMRequest, error) {
	data, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("request is not JSON: %w", err)
	}
	out := new(model.LLMRequest)
	if err := json.Unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("request does not come back from JSON: %w", err)
	}
	return out, nil
}
