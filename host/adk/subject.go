package adk

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/subject"
)

// request is the part of ADK's request that stages see and may amend.
type request struct {
	Model    string                       `json:"model"`
	Contents []*genai.Content             `json:"contents"`
	Config   *genai.GenerateContentConfig `json:"config,omitempty"`
}

func requestSubject(req *model.LLMRequest, protocol func(string) bool) abi.Subject {
	return subject.NewChecked(&request{req.Model, req.Contents, req.Config}, func(v any, emit func(abi.Leaf)) {
		walkRequest(v.(*request), protocol, emit)
	}, checkRequest)
}

func responseSubject(resp *model.LLMResponse) abi.Subject {
	own := *resp
	return subject.NewChecked(&own, func(v any, emit func(abi.Leaf)) { walkResponse(v.(*model.LLMResponse), emit) }, checkResponse)
}

func eventSubject(ev *session.Event, protocol func(string) bool) abi.Subject {
	return subject.NewChecked(ev, func(v any, emit func(abi.Leaf)) { walkEvent(v.(*session.Event), protocol, emit) }, checkEvent)
}

func contentSubject(c *genai.Content, protocol func(string) bool) abi.Subject {
	return subject.NewChecked(c, func(v any, emit func(abi.Leaf)) {
		walkContent(v.(*genai.Content), "", parts{protocol: protocol}, emit)
	}, checkContent)
}

func argumentSubject(args map[string]any) abi.Subject { return mapSubject(args, abi.LeafArgument) }
func resultSubject(result map[string]any) abi.Subject { return mapSubject(result, abi.LeafResult) }

func mapSubject(m map[string]any, kind abi.LeafKind) abi.Subject {
	return subject.New(m, func(v any, emit func(abi.Leaf)) {
		walkScalars(v, "", abi.Leaf{Kind: kind}, emit)
	})
}

func errorSubject(err error) abi.Subject {
	return subject.New(map[string]any{"error": err.Error()}, func(v any, emit func(abi.Leaf)) {
		walkScalars(v, "", abi.Leaf{Kind: abi.LeafError, ReadOnly: true}, emit)
	})
}

// protocolCalls tells which function calls are ADK's own: confirmations,
// transfers and tasks. What they carry steers the run and is never amended.
func protocolCalls(c agent.InvocationContext) func(string) bool {
	return func(name string) bool {
		if strings.HasPrefix(name, "adk_request_") || name == "transfer_to_agent" || name == "finish_task" {
			return true
		}
		a := c.Agent()
		return a != nil && a.FindSubAgent(name) != nil
	}
}

var errAnswer = errors.New("not an answer of this hook")

// decodeContent makes the answer of before_run, before_agent and after_agent.
func decodeContent(a abi.Answer) (abi.Subject, error) {
	content, err := contentOf(a)
	if err != nil {
		return nil, err
	}
	return contentSubject(content, func(string) bool { return false }), nil
}

func contentOf(a abi.Answer) (*genai.Content, error) {
	switch {
	case a.Refusal != nil:
		return text(a.Refusal.Text), nil
	case a.JSON == nil:
		return text(a.Text), nil
	}
	content := new(genai.Content)
	if err := subject.Decode(a.JSON, content); err != nil {
		return nil, fmt.Errorf("%w: a content: %w", errAnswer, err)
	}
	if len(content.Parts) == 0 {
		return nil, fmt.Errorf("%w: a content without parts", errAnswer)
	}
	if content.Role == "" {
		content.Role = genai.RoleModel
	}
	return content, nil
}

// decodeResponse makes the answer of a model hook. In place of a response it
// keeps what the response said about the stream.
func decodeResponse(of *model.LLMResponse) func(abi.Answer) (abi.Subject, error) {
	return func(a abi.Answer) (abi.Subject, error) {
		resp := new(model.LLMResponse)
		if of != nil {
			resp.Partial, resp.TurnComplete = of.Partial, of.TurnComplete
			resp.FinishReason, resp.ModelVersion = of.FinishReason, of.ModelVersion
			resp.UsageMetadata = subject.Clone(of.UsageMetadata).(*genai.GenerateContentResponseUsageMetadata) // the answer may write to it
		}
		if a.JSON == nil {
			content, err := contentOf(a)
			if err != nil {
				return nil, err
			}
			resp.Content = content
			return responseSubject(resp), nil
		}
		partial := resp.Partial
		if err := subject.Decode(a.JSON, resp); err != nil {
			return nil, fmt.Errorf("%w: a response: %w", errAnswer, err)
		}
		if resp.Partial != partial {
			return nil, fmt.Errorf("%w: an answer does not set partial", errAnswer)
		}
		if resp.Content == nil || len(resp.Content.Parts) == 0 {
			return nil, fmt.Errorf("%w: a response without content", errAnswer)
		}
		if resp.Content.Role == "" {
			resp.Content.Role = genai.RoleModel
		}
		return responseSubject(resp), nil
	}
}

// decodeResult makes the answer of a tool hook.
func decodeResult(a abi.Answer) (abi.Subject, error) {
	switch {
	case a.Refusal != nil:
		result := failed(a.Refusal.Text)
		result["code"] = a.Refusal.Code
		if a.Refusal.Retry > 0 {
			result["retry_ms"] = a.Refusal.Retry.Milliseconds()
		}
		return resultSubject(result), nil
	case a.JSON == nil:
		return resultSubject(map[string]any{"result": a.Text}), nil
	}
	var result map[string]any
	if err := subject.Decode(a.JSON, &result); err != nil {
		return nil, fmt.Errorf("%w: a result: %w", errAnswer, err)
	}
	return resultSubject(result), nil
}
