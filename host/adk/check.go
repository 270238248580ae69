package adk

import (
	"errors"
	"slices"

	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"
)

// ADK reads a response without content as a turn without an answer, and finds
// its way through a run and its history by what it wrote itself. Edits leave
// both as they are.

func checkRequest(before, after any) error {
	if before.(*request).Config != nil && after.(*request).Config == nil {
		return errors.New("a request keeps its config")
	}
	return nil
}

func checkContent(before, after any) error {
	return contentStays(before.(*genai.Content), after.(*genai.Content))
}

func contentStays(before, after *genai.Content) error {
	if before == nil {
		return nil
	}
	if after == nil {
		return errors.New("the content stays")
	}
	if before.Role != "" && after.Role == "" {
		return errors.New("a content keeps a role")
	}
	return nil
}

func checkResponse(before, after any) error {
	return responseStays(before.(*model.LLMResponse), after.(*model.LLMResponse))
}

func responseStays(before, after *model.LLMResponse) error {
	if before.Partial != after.Partial || before.TurnComplete != after.TurnComplete || before.Interrupted != after.Interrupted {
		return errors.New("partial, turnComplete and interrupted stay as they are")
	}
	return contentStays(before.Content, after.Content)
}

func checkEvent(b, a any) error {
	before, after := b.(*session.Event), a.(*session.Event)
	switch {
	case before.Author != after.Author, before.ID != after.ID, before.InvocationID != after.InvocationID, before.Branch != after.Branch:
		return errors.New("author, id, invocationId and branch stay as they are")
	case !slices.Equal(before.LongRunningToolIDs, after.LongRunningToolIDs):
		return errors.New("longRunningToolIds stay as they are")
	}
	return responseStays(&before.LLMResponse, &after.LLMResponse)
}
