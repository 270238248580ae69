package chaintest

import (
	"encoding/json"
	"strings"

	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"
)

// lines says what stands in a content, a line for each text, call and result:
//
//	user: Where is my order?
//	assistant: call lookup {"order":"A-1"}
//	assistant: result lookup {"status":"shipped"}
//
// Texts in a row are one text. Thoughts are marked as such.
func lines(who string, c *genai.Content) []string {
	if c == nil {
		return nil
	}
	var out []string
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			out = append(out, who+": "+text.String())
		}
		text.Reset()
	}
	for _, p := range c.Parts {
		switch {
		case p == nil:
		case p.FunctionCall != nil:
			flush()
			out = append(out, who+": call "+p.FunctionCall.Name+" "+compact(p.FunctionCall.Args))
		case p.FunctionResponse != nil:
			flush()
			out = append(out, who+": result "+p.FunctionResponse.Name+" "+compact(p.FunctionResponse.Response))
		case p.Thought:
			flush()
			out = append(out, who+": thought "+p.Text)
		default:
			text.WriteString(p.Text)
		}
	}
	flush()
	return out
}

func contentLines(contents []*genai.Content) []string {
	var out []string
	for _, c := range contents {
		out = append(out, lines(c.Role, c)...)
	}
	return out
}

func eventLines(events []*session.Event) []string {
	var out []string
	for _, ev := range events {
		out = append(out, lines(ev.Author, ev.Content)...)
	}
	return out
}

// compact is a value as JSON on one line.
func compact(v any) string {
	doc, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(doc)
}
