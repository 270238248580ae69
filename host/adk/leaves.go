package adk

import (
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/subject"
)

// parts says how the leaves of a content are to be seen.
type parts struct {
	protocol     func(call string) bool // calls that nothing may amend
	readOnlyArgs bool                   // all calls are such
}

func walkRequest(q *request, protocol func(string) bool, emit func(abi.Leaf)) {
	if q.Config != nil && q.Config.SystemInstruction != nil {
		walkContent(q.Config.SystemInstruction, "/config/systemInstruction", parts{protocol: protocol}, func(l abi.Leaf) {
			l.Kind = abi.LeafSystem
			emit(l)
		})
	}
	for i, c := range q.Contents {
		walkContent(c, subject.JoinIndex("/contents", i), parts{protocol: protocol}, emit)
	}
}

func walkResponse(resp *model.LLMResponse, emit func(abi.Leaf)) {
	if resp.Partial {
		open, all := openText(resp), emit
		emit = func(l abi.Leaf) {
			l.Final = l.Pointer != open
			all(l)
		}
	}
	walkContent(resp.Content, "/content", parts{readOnlyArgs: true}, emit)
	walkRest(resp, emit)
}

func walkEvent(ev *session.Event, protocol func(string) bool, emit func(abi.Leaf)) {
	walkContent(ev.Content, "/content", parts{protocol: protocol}, emit)
	walkRest(&ev.LLMResponse, emit)
	if ev.Partial {
		return // ADK still writes to the state delta of a stream's call (fact 22)
	}
	walkScalars(ev.Actions.StateDelta, "/actions/stateDelta", abi.Leaf{Kind: abi.LeafState}, emit)
	walkScalars(ev.Output, "/output", abi.Leaf{Kind: abi.LeafOutput}, emit)
}

func walkRest(resp *model.LLMResponse, emit func(abi.Leaf)) {
	if t := resp.InputTranscription; t != nil {
		emit(abi.Leaf{Kind: abi.LeafTranscription, Role: abi.RoleUser, Pointer: "/inputTranscription/text", Text: t.Text})
	}
	if t := resp.OutputTranscription; t != nil {
		emit(abi.Leaf{Kind: abi.LeafTranscription, Role: abi.RoleModel, Pointer: "/outputTranscription/text", Text: t.Text})
	}
	if resp.ErrorMessage != "" {
		emit(abi.Leaf{Kind: abi.LeafError, Pointer: "/errorMessage", Text: resp.ErrorMessage})
	}
	walkSources(resp, emit)
}

// walkSources lists what the provider's own search was asked and what it
// cites. It is no text of the model: a chunk's text does not go on with it.
func walkSources(resp *model.LLMResponse, emit func(abi.Leaf)) {
	if g := resp.GroundingMetadata; g != nil {
		asked := abi.Leaf{Kind: abi.LeafArgument, Role: abi.RoleModel}
		walkScalars(g.ImageSearchQueries, "/groundingMetadata/imageSearchQueries", asked, emit)
		walkScalars(g.RetrievalQueries, "/groundingMetadata/retrievalQueries", asked, emit)
		walkScalars(g.WebSearchQueries, "/groundingMetadata/webSearchQueries", asked, emit)
	}
	if m := resp.CitationMetadata; m != nil {
		for i, c := range m.Citations {
			if c != nil && c.Title != "" {
				at := subject.JoinIndex("/citationMetadata/citations", i) + "/title"
				emit(abi.Leaf{Kind: abi.LeafResult, Role: abi.RoleModel, Pointer: at, Text: c.Title})
			}
		}
	}
}

// walkContent lists what is to be read in a content, part by part.
func walkContent(c *genai.Content, pointer string, how parts, emit func(abi.Leaf)) {
	if c == nil {
		return
	}
	role := abi.RoleModel
	if c.Role == genai.RoleUser {
		role = abi.RoleUser
	}
	for i, p := range c.Parts {
		if p == nil {
			continue
		}
		at := subject.JoinIndex(subject.Join(pointer, "parts"), i)
		if isText(p) {
			emit(abi.Leaf{
				Kind: textKind(p), Role: role, Pointer: at + "/text", Text: p.Text,
				Continues: continues(c, i),
			})
		}
		walkPart(p, at, role, how, emit)
	}
}

func walkPart(p *genai.Part, at string, role abi.LeafRole, how parts, emit func(abi.Leaf)) {
	if call := p.FunctionCall; call != nil {
		leaf := abi.Leaf{Kind: abi.LeafArgument, Role: role}
		leaf.ReadOnly = how.readOnlyArgs || how.protocol != nil && how.protocol(call.Name)
		walkScalars(call.Args, at+"/functionCall/args", leaf, emit)
		for i, arg := range call.PartialArgs { // of a call that is streamed
			if arg != nil && arg.StringValue != "" {
				leaf.Pointer, leaf.Text = subject.JoinIndex(at+"/functionCall/partialArgs", i)+"/stringValue", arg.StringValue
				emit(leaf)
			}
		}
	}
	if result := p.FunctionResponse; result != nil {
		leaf := abi.Leaf{Kind: abi.LeafResult, Role: role}
		leaf.ReadOnly = how.protocol != nil && how.protocol(result.Name)
		walkScalars(result.Response, at+"/functionResponse/response", leaf, emit)
	}
	if call := p.ToolCall; call != nil { // of the provider's own tools
		walkScalars(call.Args, at+"/toolCall/args", abi.Leaf{Kind: abi.LeafArgument, Role: role, ReadOnly: how.readOnlyArgs}, emit)
	}
	if result := p.ToolResponse; result != nil {
		walkScalars(result.Response, at+"/toolResponse/response", abi.Leaf{Kind: abi.LeafResult, Role: role}, emit)
	}
	if code := p.ExecutableCode; code != nil {
		emit(abi.Leaf{Kind: abi.LeafCode, Role: role, Pointer: at + "/executableCode/code", Text: code.Code})
	}
	if out := p.CodeExecutionResult; out != nil {
		emit(abi.Leaf{Kind: abi.LeafCodeOutput, Role: role, Pointer: at + "/codeExecutionResult/output", Text: out.Output})
	}
	if t := p.AudioTranscription; t != nil {
		emit(abi.Leaf{Kind: abi.LeafTranscription, Role: role, Pointer: at + "/audioTranscription/text", Text: t.Text})
	}
}

func walkScalars(v any, pointer string, like abi.Leaf, emit func(abi.Leaf)) {
	subject.Scalars(v, pointer, func(at, text string, number bool) {
		leaf := like
		leaf.Pointer, leaf.Text, leaf.Number = at, text, number
		emit(leaf)
	})
}

// isText reports whether a part is a text and nothing else. A part that holds
// nothing at all is an empty text.
func isText(p *genai.Part) bool {
	return p.Text != "" || p.FunctionCall == nil && p.FunctionResponse == nil && p.InlineData == nil && p.FileData == nil &&
		p.ExecutableCode == nil && p.CodeExecutionResult == nil && p.ToolCall == nil && p.ToolResponse == nil && p.AudioTranscription == nil
}

func textKind(p *genai.Part) abi.LeafKind {
	if p.Thought {
		return abi.LeafThought
	}
	return abi.LeafText
}

// continues reports whether a text goes on with the part before it.
func continues(c *genai.Content, i int) bool {
	return i > 0 && c.Parts[i-1] != nil && isText(c.Parts[i-1]) && c.Parts[i-1].Thought == c.Parts[i].Thought
}

// openText is the pointer of the text that the next chunk can go on with,
// empty if there is none: the last part, or where that is an empty text the
// one that it goes on with.
func openText(resp *model.LLMResponse) string {
	if ends(resp) || resp.Content == nil {
		return ""
	}
	c := resp.Content
	i := len(c.Parts) - 1
	if i < 0 || c.Parts[i] == nil || !isText(c.Parts[i]) {
		return ""
	}
	for c.Parts[i].Text == "" && continues(c, i) {
		i--
	}
	return subject.JoinIndex("/content/parts", i) + "/text"
}
