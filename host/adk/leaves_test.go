package adk

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/abi"
)

// list writes each leaf in a line: kind, role, pointer, text, flags.
func list(s abi.Subject) []string {
	var lines []string
	for _, l := range s.Leaves() {
		line := []string{l.Kind.String()}
		switch l.Role {
		case abi.RoleUser:
			line = append(line, "user")
		case abi.RoleModel:
			line = append(line, "model")
		}
		line = append(line, l.Pointer, fmt.Sprintf("%q", l.Text))
		for _, flag := range []struct {
			set  bool
			name string
		}{{l.Number, "number"}, {l.Continues, "continues"}, {l.Final, "final"}, {l.ReadOnly, "read-only"}} {
			if flag.set {
				line = append(line, flag.name)
			}
		}
		lines = append(lines, strings.Join(line, " "))
	}
	return lines
}

// confirms is how ADK asks a human: the call that waits is a typed one inside
// the arguments.
func confirms() *genai.Part {
	return &genai.Part{FunctionCall: &genai.FunctionCall{Name: "adk_request_confirmation", Args: map[string]any{
		originalCall: &genai.FunctionCall{Name: "refund", Args: map[string]any{"card": "4111"}},
		"hint":       "Sure?",
	}}}
}

func protocol(name string) bool { return strings.HasPrefix(name, "adk_request_") }

// every has one of each part that is read.
func every() *genai.Content {
	return &genai.Content{Role: "user", Parts: []*genai.Part{
		{Text: "one "},
		{Text: "two", ThoughtSignature: []byte{1}},
		{Text: "why", Thought: true},
		{InlineData: &genai.Blob{Data: []byte("4111"), MIMEType: "image/png"}},
		nil,
		{FunctionCall: &genai.FunctionCall{Name: "pay", ID: "c1", Args: map[string]any{"to": map[string]any{"iban": "DE1"}, "amount": 12.5, "ok": true}}},
		{FunctionResponse: &genai.FunctionResponse{Name: "pay", ID: "c1", Response: map[string]any{"lines": []any{"a", 2.0}}}},
		{ExecutableCode: &genai.ExecutableCode{Code: "print(1)"}},
		{CodeExecutionResult: &genai.CodeExecutionResult{Output: "1"}},
		{AudioTranscription: &genai.Transcription{Text: "spoken"}},
		{ToolCall: &genai.ToolCall{Args: map[string]any{"q": "search"}}},
		{ToolResponse: &genai.ToolResponse{Response: map[string]any{"hit": "found"}}},
		{FileData: &genai.FileData{FileURI: "gs://x"}},
		confirms(),
	}}
}

func TestLeavesOfAContent(t *testing.T) {
	assert.Equal(t, []string{
		`text user /parts/0/text "one "`,
		`text user /parts/1/text "two" continues`,
		`thought user /parts/2/text "why"`,
		`argument user /parts/5/functionCall/args/amount "12.5" number`,
		`argument user /parts/5/functionCall/args/to/iban "DE1"`,
		`result user /parts/6/functionResponse/response/lines/0 "a"`,
		`result user /parts/6/functionResponse/response/lines/1 "2" number`,
		`code user /parts/7/executableCode/code "print(1)"`,
		`code_output user /parts/8/codeExecutionResult/output "1"`,
		`transcription user /parts/9/audioTranscription/text "spoken"`,
		`argument user /parts/10/toolCall/args/q "search"`,
		`result user /parts/11/toolResponse/response/hit "found"`,
		`argument user /parts/13/functionCall/args/hint "Sure?" read-only`,
		`argument user /parts/13/functionCall/args/originalFunctionCall/args/card "4111" read-only`,
		`argument user /parts/13/functionCall/args/originalFunctionCall/name "refund" read-only`,
	}, list(contentSubject(every(), protocol)))
	assert.Empty(t, list(contentSubject(nil, protocol)))
}

func TestLeavesOfARequest(t *testing.T) {
	req := &model.LLMRequest{
		Config: &genai.GenerateContentConfig{SystemInstruction: &genai.Content{Parts: []*genai.Part{{Text: "Be kind."}}}},
		Contents: []*genai.Content{
			genai.NewContentFromText("hello", genai.RoleUser), nil, genai.NewContentFromText("hi", genai.RoleModel),
		},
	}
	assert.Equal(t, []string{
		`system model /config/systemInstruction/parts/0/text "Be kind."`,
		`text user /contents/0/parts/0/text "hello"`,
		`text model /contents/2/parts/0/text "hi"`,
	}, list(requestSubject(req, protocol)))
	assert.Empty(t, list(requestSubject(&model.LLMRequest{}, protocol)))
}

func TestLeavesOfAResponse(t *testing.T) {
	resp := &model.LLMResponse{
		Content: &genai.Content{Role: "model", Parts: []*genai.Part{
			{Text: "sure"}, {FunctionCall: &genai.FunctionCall{Name: "pay", Args: map[string]any{"card": "4111"}}},
		}},
		InputTranscription: &genai.Transcription{Text: "heard"}, OutputTranscription: &genai.Transcription{Text: "said"},
		ErrorMessage:      "went wrong",
		GroundingMetadata: &genai.GroundingMetadata{WebSearchQueries: []string{"who is jo"}, RetrievalQueries: []string{"jo"}},
		CitationMetadata:  &genai.CitationMetadata{Citations: []*genai.Citation{nil, {Title: "On Jo", URI: "https://example.com"}, {}}},
	}
	assert.Equal(t, []string{
		`text model /content/parts/0/text "sure"`,
		`argument model /content/parts/1/functionCall/args/card "4111" read-only`,
		`transcription user /inputTranscription/text "heard"`,
		`transcription model /outputTranscription/text "said"`,
		`error /errorMessage "went wrong"`,
		`argument model /groundingMetadata/retrievalQueries/0 "jo"`,
		`argument model /groundingMetadata/webSearchQueries/0 "who is jo"`,
		`result model /citationMetadata/citations/1/title "On Jo"`,
	}, list(responseSubject(resp)), "the tool gets what the response holds, so arguments are read-only")
}

func TestOnlyTheEndOfAChunkCanBeHeld(t *testing.T) {
	chunk := func(reason genai.FinishReason, parts ...*genai.Part) []string {
		return list(responseSubject(&model.LLMResponse{
			Partial: true, TurnComplete: true, FinishReason: reason, Content: &genai.Content{Role: "model", Parts: parts},
		}))
	}
	thought, said := &genai.Part{Text: "hm", Thought: true}, &genai.Part{Text: "hi"}
	assert.Equal(t, []string{`thought model /content/parts/0/text "hm" final`, `text model /content/parts/1/text "hi"`}, chunk("", thought, said))
	assert.Equal(t, []string{`text model /content/parts/0/text "hi" final`}, chunk("", said, &genai.Part{FunctionCall: &genai.FunctionCall{}}), "a call follows")
	assert.Equal(t, []string{`text model /content/parts/0/text "hi" final`}, chunk(genai.FinishReasonStop, said), "a real finish reason")
	assert.Equal(t, []string{`text model /content/parts/0/text "hi"`}, chunk(genai.FinishReasonUnspecified, said), "which this is not, nor TurnComplete")
	assert.Equal(t, []string{`text model /content/parts/0/text "hi"`, `text model /content/parts/1/text "" continues final`},
		chunk("", said, &genai.Part{ThoughtSignature: []byte{1}}), "an empty text holds nothing, so the one before it does")
	assert.Equal(t, []string{`thought model /content/parts/0/text "hm" final`, `text model /content/parts/1/text ""`}, chunk("", thought, &genai.Part{}))
	assert.Equal(t, []string{`code model /content/parts/0/executableCode/code "1" final`, `transcription model /outputTranscription/text "said" final`},
		list(responseSubject(&model.LLMResponse{
			Partial:             true,
			Content:             &genai.Content{Role: "model", Parts: []*genai.Part{{ExecutableCode: &genai.ExecutableCode{Code: "1"}}}},
			OutputTranscription: &genai.Transcription{Text: "said"},
		})), "nothing but texts of the model is held")
}

func TestArgumentsThatAreStreamed(t *testing.T) {
	resp := model.LLMResponse{Partial: true, Content: &genai.Content{Role: "model", Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{
		Name: "pay", WillContinue: genai.Ptr(true),
		PartialArgs: []*genai.PartialArg{{JsonPath: "$.ok", BoolValue: genai.Ptr(true)}, nil, {JsonPath: "$.card", StringValue: "4111"}},
	}}}}}
	const arg = "/content/parts/0/functionCall/partialArgs/2/stringValue"
	assert.Equal(t, []string{`argument model ` + arg + ` "4111" final read-only`}, list(responseSubject(&resp)))

	ev := eventSubject(&session.Event{LLMResponse: resp}, protocol)
	require.Equal(t, []string{`argument model ` + arg + ` "4111"`}, list(ev), "in the event it can be amended")
	amended, err := ev.Apply([]abi.Edit{{Op: abi.EditSplice, Pointer: arg, End: 4, Text: "[CARD]"}})
	require.NoError(t, err)
	got := amended.Value().(*session.Event).Content.Parts[0].FunctionCall.PartialArgs[2]
	assert.Equal(t, &genai.PartialArg{JsonPath: "$.card", StringValue: "[CARD]"}, got)
	assert.Equal(t, "4111", resp.Content.Parts[0].FunctionCall.PartialArgs[2].StringValue)
}

func TestCitationsOfAnEventAreAmended(t *testing.T) {
	shared := &genai.CitationMetadata{Citations: []*genai.Citation{{Title: "On Jo"}}}
	ev := eventSubject(&session.Event{LLMResponse: model.LLMResponse{CitationMetadata: shared}}, protocol)
	amended, err := ev.Apply([]abi.Edit{{Op: abi.EditSplice, Pointer: "/citationMetadata/citations/0/title", Start: 3, End: 5, Text: "X"}})
	require.NoError(t, err)
	assert.Equal(t, "On X", amended.Value().(*session.Event).CitationMetadata.Citations[0].Title)
	assert.Equal(t, "On Jo", shared.Citations[0].Title)
}

func TestLeavesOfAnEvent(t *testing.T) {
	ev := &session.Event{
		LLMResponse: model.LLMResponse{Content: genai.NewContentFromText("hi", genai.RoleModel)},
		Actions:     session.EventActions{StateDelta: map[string]any{"answer": "hi", "n": 4111}},
		Output:      struct{ Card string }{"4111"},
	}
	assert.Equal(t, []string{
		`text model /content/parts/0/text "hi"`,
		`state /actions/stateDelta/answer "hi"`,
		`state /actions/stateDelta/n "4111" number`,
		`output /output/Card "4111"`,
	}, list(eventSubject(ev, protocol)))
	ev.Partial = true
	assert.Equal(t, []string{`text model /content/parts/0/text "hi"`}, list(eventSubject(ev, protocol)), "ADK still writes to the rest of a partial one")
}

func TestLeavesOfToolValues(t *testing.T) {
	value := map[string]any{"card": "4111"}
	assert.Equal(t, []string{`argument /card "4111"`}, list(argumentSubject(value)))
	assert.Equal(t, []string{`result /card "4111"`}, list(resultSubject(value)))
	assert.Equal(t, []string{`error /error "boom" read-only`}, list(errorSubject(errors.New("boom"))))
}

func TestEveryLeafCanBeReadAndSpliced(t *testing.T) {
	shared := every()
	s := contentSubject(shared, func(string) bool { return false })
	var edits []abi.Edit
	for _, l := range s.Leaves() {
		_, err := s.Get(l.Pointer, abi.MaxValue)
		require.NoError(t, err, l.Pointer)
		edits = append(edits, abi.Edit{Op: abi.EditSplice, Pointer: l.Pointer, End: len(l.Text), Text: "x"})
	}
	amended, err := s.Apply(edits)
	require.NoError(t, err)
	for _, l := range amended.Leaves() {
		assert.Equal(t, "x", l.Text, l.Pointer)
	}
	assert.Equal(t, every(), shared, "nothing that ADK shares is written, typed calls inside maps neither")

	got := amended.Value().(*genai.Content)
	assert.Equal(t, []byte{1}, got.Parts[1].ThoughtSignature, "a signature survives")
	assert.Same(t, shared.Parts[3], got.Parts[3], "so does binary data, as it is")
	assert.Equal(t, "c1", got.Parts[5].FunctionCall.ID)
	assert.Equal(t, true, got.Parts[5].FunctionCall.Args["ok"])
	assert.IsType(t, &genai.FunctionCall{}, got.Parts[13].FunctionCall.Args[originalCall], "and the type of a call in a map")
}

func TestAnAmendedResponseKeepsWhatItSaysOfItsStream(t *testing.T) {
	resp := &model.LLMResponse{
		Content: genai.NewContentFromText("card 4111", genai.RoleModel), Partial: true, TurnComplete: true, FinishReason: genai.FinishReasonStop,
		UsageMetadata: &genai.GenerateContentResponseUsageMetadata{TotalTokenCount: 3}, ModelVersion: "m1", AvgLogprobs: 0.5,
	}
	amended, err := responseSubject(resp).Apply([]abi.Edit{{Op: abi.EditSplice, Pointer: "/content/parts/0/text", Start: 5, End: 9, Text: "****"}})
	require.NoError(t, err)
	want := *resp
	want.Content = genai.NewContentFromText("card ****", genai.RoleModel)
	assert.Equal(t, &want, amended.Value())
	assert.Equal(t, "card 4111", resp.Content.Parts[0].Text)
}

func TestAToolTakenFromTheRequestCannotBeCalled(t *testing.T) {
	req := &model.LLMRequest{
		Config: &genai.GenerateContentConfig{Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{Name: "lookup"}, {Name: "refund"}}}}},
		Tools:  map[string]any{"lookup": 1, "refund": 2},
	}
	shared, config := req.Tools, req.Config
	amended, err := requestSubject(req, protocol).Apply([]abi.Edit{
		{Op: abi.EditRemove, Pointer: "/config/tools/0/functionDeclarations/1"},
		{Op: abi.EditAdd, Pointer: "/config/maxOutputTokens", Value: []byte(`100`)},
	})
	require.NoError(t, err)
	amended.Value().(*request).into(req)
	assert.Equal(t, map[string]any{"lookup": 1}, req.Tools)
	assert.Equal(t, int32(100), req.Config.MaxOutputTokens)
	assert.Len(t, shared, 2, "the shared map is not written")
	assert.Len(t, config.Tools[0].FunctionDeclarations, 2)
	assert.Zero(t, config.MaxOutputTokens)
}

func TestUsageTellsMissingFromZero(t *testing.T) {
	const all = abi.HasPrompt | abi.HasCandidates | abi.HasTotal
	for name, c := range map[string]struct {
		sent *genai.GenerateContentResponseUsageMetadata
		want abi.Usage
	}{
		"nothing": {nil, abi.Usage{}},
		"all that there is": {
			&genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 10, CandidatesTokenCount: 5, CachedContentTokenCount: 4, ThoughtsTokenCount: 3, ToolUsePromptTokenCount: 2, TotalTokenCount: 20},
			abi.Usage{Mask: all | abi.HasCached | abi.HasThoughts | abi.HasToolUse, Prompt: 10, Candidates: 5, Cached: 4, Thoughts: 3, ToolUse: 2, Total: 20},
		},
		"a zero that adds up was sent": {
			&genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 10, TotalTokenCount: 10},
			abi.Usage{Mask: all, Prompt: 10, Total: 10},
		},
		"one that does not is missing": {
			&genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 10, TotalTokenCount: 12},
			abi.Usage{Mask: abi.HasPrompt | abi.HasTotal, Prompt: 10, Total: 12},
		},
		"no total": {
			&genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 10, CandidatesTokenCount: 5},
			abi.Usage{Mask: abi.HasPrompt | abi.HasCandidates, Prompt: 10, Candidates: 5},
		},
	} {
		assert.Equal(t, c.want, usage(c.sent), name)
	}
}

func TestAnswersBecomeADKsValues(t *testing.T) {
	refusal := abi.Answer{Refusal: &abi.Refusal{Code: "limit.turn", Text: "Not now.", Retry: 2e9}}
	content, err := decodeContent(refusal)
	require.NoError(t, err)
	assert.Equal(t, genai.NewContentFromText("Not now.", genai.RoleModel), content.Value())
	content, err = decodeContent(abi.Answer{JSON: []byte(`{"parts":[{"text":"hi"}]}`)})
	require.NoError(t, err)
	assert.Equal(t, genai.NewContentFromText("hi", genai.RoleModel), content.Value(), "the role is the model's unless it is given")

	result, err := decodeResult(refusal)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"error": "Not now.", "code": "limit.turn", "retry_ms": int64(2000)}, result.Value())
	result, err = decodeResult(abi.Answer{Text: "done"})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"result": "done"}, result.Value())
	result, err = decodeResult(abi.Answer{JSON: []byte(`{}`)})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{}, result.Value(), "an empty object is an answer")

	of := &model.LLMResponse{Partial: false, TurnComplete: true, FinishReason: genai.FinishReasonStop, ModelVersion: "m1"}
	for _, answer := range []abi.Answer{{Text: "hi"}, {JSON: []byte(`{"content":{"role":"model","parts":[{"text":"hi"}]}}`)}} {
		resp, err := decodeResponse(of)(answer)
		require.NoError(t, err)
		want := *of
		want.Content = genai.NewContentFromText("hi", genai.RoleModel)
		assert.Equal(t, &want, resp.Value(), "an answer stands in the place of the response")
	}
	for name, decode := range map[string]func(abi.Answer) (abi.Subject, error){"content": decodeContent, "response": decodeResponse(nil), "result": decodeResult} {
		for _, doc := range []string{``, `[]`, `"x"`, `{`, `null x`} {
			_, err := decode(abi.Answer{JSON: []byte(doc)})
			assert.ErrorIs(t, err, errAnswer, "%s: %q", name, doc)
		}
	}
	_, err = decodeResponse(nil)(abi.Answer{JSON: []byte(`{}`)})
	assert.ErrorIs(t, err, errAnswer, "a response without content would be dropped silently")
	_, err = decodeResult(abi.Answer{JSON: []byte(`null`)})
	assert.ErrorIs(t, err, errAnswer, "no result is no answer")
}
