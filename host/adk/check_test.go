package adk

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/subject"
)

func none(string) bool { return false }

func aResponse() *model.LLMResponse {
	return &model.LLMResponse{
		Content: genai.NewContentFromText("hi", genai.RoleModel), TurnComplete: true,
		UsageMetadata: &genai.GenerateContentResponseUsageMetadata{TotalTokenCount: 3},
	}
}

func anEvent() *session.Event {
	return &session.Event{
		LLMResponse: *aResponse(), ID: "e1", InvocationID: "i1", Branch: "root", Author: "assistant", LongRunningToolIDs: []string{"c1"},
	}
}

func aRequest() *model.LLMRequest {
	return &model.LLMRequest{
		Contents: []*genai.Content{genai.NewContentFromText("hi", genai.RoleUser)},
		Config:   &genai.GenerateContentConfig{Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{Name: "pay"}}}}},
	}
}

func set(pointer, value string) abi.Edit {
	return abi.Edit{Op: abi.EditAdd, Pointer: pointer, Value: []byte(value)}
}

func drop(pointer string) abi.Edit { return abi.Edit{Op: abi.EditRemove, Pointer: pointer} }

func TestEditsThatADKCouldNotReadAreRefused(t *testing.T) {
	content := genai.NewContentFromText("hi", genai.RoleUser)
	for name, c := range map[string]struct {
		subject abi.Subject
		edits   []abi.Edit
	}{
		"content": {contentSubject(content, none), []abi.Edit{
			set("", `null`), set("", `{"parts":[{"text":"no role"}]}`), set("/parts/-", `null`), set("/parts", `[null]`), drop("/role"),
			set("/parts/-", `{"functionResponse":{"parts":[null]}}`),
		}},
		"response": {responseSubject(aResponse()), []abi.Edit{
			set("", `null`), set("", `{}`), set("/content", `null`), drop("/content"), set("/content/parts/0", `null`), set("/content", `{}`),
			set("/partial", `true`), set("/turnComplete", `false`), drop("/turnComplete"), set("/interrupted", `true`),
		}},
		"event": {eventSubject(anEvent(), none), []abi.Edit{
			set("/content", `null`), drop("/content"), set("/content/parts/-", `null`), set("/partial", `true`), drop("/turnComplete"),
			set("/author", `"user"`), set("/id", `"e2"`), set("/invocationId", `"i2"`), drop("/branch"),
			drop("/longRunningToolIds"), set("/longRunningToolIds/0", `"c2"`),
			set("", `{"author":"assistant","content":{"role":"model","parts":[{"text":"x"}]}}`),
		}},
		"request": {requestSubject(aRequest(), none), []abi.Edit{
			set("/contents/-", `null`), set("/contents", `[null]`), set("/contents/0/parts/-", `null`),
			set("/config", `null`), drop("/config"), set("/config/tools", `[null]`), set("/config/tools/0/functionDeclarations/-", `null`),
		}},
		"arguments": {argumentSubject(map[string]any{"x": 1}), []abi.Edit{set("", `null`), set("", `[]`), set("", `"x"`)}},
		"result":    {resultSubject(map[string]any{"x": 1}), []abi.Edit{set("", `null`), set("", `[]`), set("", `"x"`)}},
	} {
		for _, e := range c.edits {
			_, err := c.subject.Apply([]abi.Edit{e})
			assert.ErrorIs(t, err, abi.ErrBadEdit, "%s: %v %s %s", name, e.Op, e.Pointer, e.Value)
		}
	}
}

func TestEditsThatLeaveADKItsOwnGoIn(t *testing.T) {
	for name, c := range map[string]struct {
		subject abi.Subject
		edits   []abi.Edit
	}{
		"content":  {contentSubject(&genai.Content{}, none), []abi.Edit{set("", `{"parts":[{"text":"it had no role"}]}`)}},
		"response": {responseSubject(aResponse()), []abi.Edit{drop("/content/parts/0"), set("/content", `{"role":"model","parts":[]}`), set("/turnComplete", `true`)}},
		"silent":   {responseSubject(&model.LLMResponse{Partial: true}), []abi.Edit{set("/content", `{"role":"model","parts":[{"text":"held"}]}`)}},
		"event":    {eventSubject(anEvent(), none), []abi.Edit{set("/content/parts/0/text", `"x"`), set("/author", `"assistant"`), set("/output", `null`)}},
		"request":  {requestSubject(aRequest(), none), []abi.Edit{drop("/contents/0"), set("/contents", `[]`), drop("/config/tools/0")}},
		"result":   {resultSubject(map[string]any{"x": 1}), []abi.Edit{set("", `{}`), set("/x", `null`)}},
	} {
		for _, e := range c.edits {
			_, err := c.subject.Apply([]abi.Edit{e})
			assert.NoError(t, err, "%s: %v %s %s", name, e.Op, e.Pointer, e.Value)
		}
	}
}

func TestAnswersThatADKCouldNotReadAreRefused(t *testing.T) {
	of := aResponse()
	for name, c := range map[string]struct {
		decode func(abi.Answer) (abi.Subject, error)
		docs   []string
	}{
		"content": {decodeContent, []string{`null`, `{}`, `{"parts":[]}`, `{"parts":null}`, `{"parts":[null]}`, `{"role":"model","parts":[{"text":"x"},null]}`}},
		"response": {decodeResponse(of), []string{
			`null`, `{"content":null}`, `{"content":{}}`, `{"content":{"role":"model"}}`, `{"content":{"parts":[null]}}`,
			`{"partial":true,"content":{"parts":[{"text":"x"}]}}`,
		}},
		"result": {decodeResult, []string{`null`, ` null`, `[null]`}},
	} {
		for _, doc := range c.docs {
			_, err := c.decode(abi.Answer{JSON: []byte(doc)})
			assert.ErrorIs(t, err, errAnswer, "%s: %s", name, doc)
		}
	}
}

func TestAnAnswerWritesToNothingOfTheResponse(t *testing.T) {
	of := aResponse()
	of.UsageMetadata.PromptTokensDetails = []*genai.ModalityTokenCount{{TokenCount: 3}}
	before := subject.Clone(of)

	answer, err := decodeResponse(of)(abi.Answer{JSON: []byte(
		`{"content":{"parts":[{"text":"x"}]},"usageMetadata":{"totalTokenCount":9,"promptTokensDetails":[{"tokenCount":9}]}}`)})

	require.NoError(t, err)
	assert.Equal(t, before, of)
	got := answer.Value().(*model.LLMResponse)
	assert.Equal(t, int32(9), got.UsageMetadata.TotalTokenCount)
	assert.Equal(t, genai.NewContentFromText("x", genai.RoleModel), got.Content, "the role is the model's unless it is given")
}
