package adk_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/demo"
)

// edits makes one edit, whatever comes of it.
func edits(op abi.EditOp, pointer, value string) does {
	return func(*abi.Event) (abi.Verdict, error) {
		return abi.Verdict{Kind: abi.Amend, Edits: []abi.Edit{{Op: op, Pointer: pointer, Value: []byte(value)}}}, nil
	}
}

// TestAVerdictThatADKCouldNotReadIsAFailureOfTheStage: the stage fails closed
// with its refusal, and ADK goes on.
func TestAVerdictThatADKCouldNotReadIsAFailureOfTheStage(t *testing.T) {
	doc := func(json string) does { return answers(abi.Answer{JSON: []byte(json)}) }
	for name, c := range map[string]struct {
		hook abi.Hook
		does does
	}{
		"null in a message":              {abi.OnUserMessage, edits(abi.EditReplace, "/parts/0", `null`)},
		"null in a request":              {abi.BeforeModel, edits(abi.EditReplace, "/contents", `[null]`)},
		"a request without config":       {abi.BeforeModel, edits(abi.EditRemove, "/config", "")},
		"null in a response":             {abi.AfterModel, edits(abi.EditAdd, "/content/parts/-", `null`)},
		"null for the content":           {abi.AfterModel, edits(abi.EditReplace, "/content", `null`)},
		"a response without content":     {abi.AfterModel, edits(abi.EditRemove, "/content", "")},
		"a response made partial":        {abi.AfterModel, edits(abi.EditAdd, "/partial", `true`)},
		"null in an event":               {abi.OnEvent, edits(abi.EditReplace, "/content/parts/0", `null`)},
		"an event of another author":     {abi.OnEvent, edits(abi.EditReplace, "/author", `"user"`)},
		"an empty event":                 {abi.OnEvent, edits(abi.EditReplace, "", `{}`)},
		"null for an agent":              {abi.BeforeAgent, doc(`null`)},
		"null in an agent's content":     {abi.BeforeAgent, doc(`{"parts":[null]}`)},
		"null in an answered call":       {abi.BeforeModel, doc(`{"content":{"parts":[null]}}`)},
		"an answer without parts":        {abi.BeforeModel, doc(`{"content":{}}`)},
		"a partial answer":               {abi.BeforeModel, doc(`{"partial":true,"content":{"parts":[{"text":"x"}]}}`)},
		"null in an answer to an answer": {abi.AfterModel, doc(`{"content":{"parts":[null]}}`)},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(name+map[bool]string{true: "/sse"}[stream], func(t *testing.T) {
				ch := newChained(t, demo.LLM, native{c.hook: c.does}, demo.Reply{Text: "never said"})

				out := ch.run(t.Context(), demo.Turn{Text: "hi", Stream: stream})

				require.NoError(t, out.Err())
				require.NotEmpty(t, out.Texts())
				assert.Equal(t, "not available", out.Texts()[len(out.Texts())-1])
				assert.NotContains(t, ch.storedTexts(), "never said")
				assert.Contains(t, ch.lines()[0], "bad_verdict")
			})
		}
	}
}
