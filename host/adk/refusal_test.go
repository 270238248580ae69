package adk_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/adk"
	"github.com/hookhost/hookhost/host/demo"
)

func TestRefusedRunIsReadByTheUserOnceAndCallsNoModel(t *testing.T) {
	everyRoad(t, func(t *testing.T, shape demo.Shape, stream bool) {
		c := newChained(t, shape, native{abi.BeforeRun: refuses("come back later")}, demo.Reply{Text: "never said"})

		out := c.run(t.Context(), demo.Turn{Text: "hi", Stream: stream})

		require.NoError(t, out.Err())
		assert.Equal(t, []string{"come back later"}, out.Texts())
		assert.Equal(t, []string{"come back later"}, c.storedTexts())
		assert.Equal(t, "user: hi", c.stored()[0], "the message stands once")
		assert.Empty(t, c.model.Requests(), "model calls")
	})
}

func TestRefusedRunTellsProgramsItsCodeAndTime(t *testing.T) {
	c := newChained(t, demo.LLM, native{abi.BeforeRun: refuses("no")})

	out := c.say("hi")

	require.NotEmpty(t, out.Events)
	assert.Equal(t, map[string]any{"code": "test.no", "retry_ms": int64(3000)}, out.Events[0].CustomMetadata[adk.RefusalKey])
}

// A run is denied with what the stage answered, and never without a word.
func TestDeniedRunSaysWhatTheStageAnswered(t *testing.T) {
	answers := func(a abi.Answer) native {
		return native{abi.BeforeRun: func(*abi.Event) (abi.Verdict, error) {
			return abi.Verdict{Kind: abi.Respond, Answer: a}, nil
		}}
	}
	const declined = "This request was declined."
	image := &genai.Part{InlineData: &genai.Blob{MIMEType: "image/png", Data: []byte{1, 2, 3}}}
	for name, tt := range map[string]struct {
		answer abi.Answer
		parts  []*genai.Part
	}{
		"an image":          {abi.Answer{JSON: []byte(`{"parts":[{"inlineData":{"mimeType":"image/png","data":"AQID"}}]}`)}, []*genai.Part{image}},
		"two texts":         {abi.Answer{JSON: []byte(`{"parts":[{"text":"Not"},{"text":"now"}]}`)}, []*genai.Part{{Text: "Not"}, {Text: "now"}}},
		"a text":            {abi.Answer{Text: "Not now"}, []*genai.Part{{Text: "Not now"}}},
		"no content":        {abi.Answer{JSON: []byte(`{}`)}, []*genai.Part{{Text: "not available"}}}, // no answer: the stage failed
		"a part of nothing": {abi.Answer{JSON: []byte(`{"parts":[{}]}`)}, []*genai.Part{{Text: declined}}},
		"blanks":            {abi.Answer{Text: " \n"}, []*genai.Part{{Text: declined}}},
		"a thought":         {abi.Answer{JSON: []byte(`{"parts":[{"text":"hm","thought":true}]}`)}, []*genai.Part{{Text: declined}}},
		"an empty refusal":  {abi.Answer{Refusal: &abi.Refusal{Code: "test.no"}}, []*genai.Part{{Text: declined}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChained(t, demo.LLM, answers(tt.answer), demo.Reply{Text: "never said"})

			out := c.say("hi")

			require.NoError(t, out.Err())
			require.Len(t, out.Events, 1)
			assert.Equal(t, tt.parts, out.Events[0].Content.Parts)
			assert.Equal(t, genai.RoleModel, out.Events[0].Content.Role)
			assert.Empty(t, c.model.Requests(), "model calls")
		})
	}
}

func TestRefusedModelCallIsReadOnceAndStopsTheRun(t *testing.T) {
	// Of parallel branches each may show it: TestRefusedParallelBranches.
	shapes := []demo.Shape{demo.LLM, demo.Transfer, demo.Sequential, demo.Loop, demo.Custom, demo.Workflow}
	onRoads(t, shapes, func(t *testing.T, shape demo.Shape, stream bool) {
		c := newChained(t, shape, native{abi.BeforeModel: refuses("the work stopped early")}, demo.Reply{Text: "never said"})

		out := c.run(t.Context(), demo.Turn{Text: "hi", Stream: stream})

		require.NoError(t, out.Err())
		assert.Equal(t, []string{"the work stopped early"}, out.Texts())
		assert.Equal(t, []string{"the work stopped early"}, c.storedTexts())
		assert.Empty(t, c.model.Requests(), "model calls")
	})
}

func TestRefusedAgentStopsTheRun(t *testing.T) {
	everyRoad(t, func(t *testing.T, shape demo.Shape, stream bool) {
		c := newChained(t, shape, native{abi.BeforeAgent: refuses("not this agent")}, demo.Reply{Text: "never said"})

		out := c.run(t.Context(), demo.Turn{Text: "hi", Stream: stream})

		require.NoError(t, out.Err())
		assert.Equal(t, []string{"not this agent"}, out.Texts())
		assert.Empty(t, c.model.Requests(), "model calls")
	})
}

func TestRefusedRunAfterATransferIsReadToo(t *testing.T) {
	refused := false
	gate := func(ev *abi.Event) (abi.Verdict, error) {
		if refused {
			return refuses("come back later")(ev)
		}
		return abi.Verdict{Kind: abi.Continue}, nil
	}
	c := newChained(t, demo.Transfer, native{abi.BeforeRun: gate},
		transferTo("specialist"), demo.Reply{Text: "specialist here"}, demo.Reply{Text: "never said"})
	require.Equal(t, []string{"specialist here"}, c.say("help").Texts())

	refused = true
	out := c.say("more")

	require.NoError(t, out.Err())
	assert.Equal(t, []string{"come back later"}, out.Texts())
	assert.Equal(t, "specialist", out.Events[0].Author, "the turn starts where the transfer ended")
	assert.Len(t, c.model.Requests(), 2)
}

func TestRefusedResumeRunsNoTool(t *testing.T) {
	refused := false
	gate := func(ev *abi.Event) (abi.Verdict, error) {
		if !refused {
			return abi.Verdict{Kind: abi.Continue}, nil
		}
		assert.True(t, ev.Flags.Has(abi.Resumed), "the stage sees that the run goes on")
		return refuses("come back later")(ev)
	}
	c := newChained(t, demo.LLM, native{abi.BeforeRun: gate}, calls("cancel_order"), demo.Reply{Text: "cancelled"})
	paused := c.say("cancel it")
	confirmation := confirmed(t, paused.Events)

	refused = true
	out := c.run(t.Context(), demo.Turn{Content: confirmation})

	require.NoError(t, out.Err())
	assert.Equal(t, []string{"come back later"}, out.Texts())
	assert.Equal(t, []string{"come back later"}, c.storedTexts(), "the refusal stands once in the session")
	assert.Empty(t, c.desk.Cancelled(), "orders cancelled by a refused run")

	refused = false
	c.run(t.Context(), demo.Turn{Content: confirmation})
	assert.Len(t, c.desk.Cancelled(), 1, "the same confirmation sent again")
}

// confirmed is a human's yes to the confirmation that the events ask for.
func confirmed(t *testing.T, events []*session.Event) *genai.Content {
	t.Helper()
	for _, ev := range events {
		if ev.Content == nil {
			continue
		}
		for _, p := range ev.Content.Parts {
			if p.FunctionCall != nil && p.FunctionCall.Name == "adk_request_confirmation" {
				return genai.NewContentFromParts([]*genai.Part{{FunctionResponse: &genai.FunctionResponse{
					ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Response: map[string]any{"confirmed": true},
				}}}, genai.RoleUser)
			}
		}
	}
	require.Fail(t, "no confirmation was asked for")
	return nil
}

func TestRefusalInMidRunEndsAnUnboundedLoop(t *testing.T) {
	calls := 0
	gate := func(ev *abi.Event) (abi.Verdict, error) {
		if calls++; calls > 3 {
			return refuses("the work stopped early")(ev)
		}
		return abi.Verdict{Kind: abi.Continue}, nil
	}
	c := newChained(t, demo.Loop, native{abi.BeforeModel: gate},
		demo.Reply{Text: "one"}, demo.Reply{Text: "two"}, demo.Reply{Text: "three"})

	out := c.run(t.Context(), demo.Turn{Text: "go", Each: atMost(t, 20)})

	assert.Equal(t, []string{"one", "two", "three", "the work stopped early"}, out.Texts())
}

// atMost fails the test and breaks the run at the event after the last one
// that is allowed, so that a loop that does not end does not fill the memory.
func atMost(t *testing.T, n int) func(*session.Event) bool {
	return func(*session.Event) bool {
		n--
		return assert.GreaterOrEqual(t, n, 0, "the run goes on and on")
	}
}

func TestAnUnboundedLoopEndsWhenTheHostCloses(t *testing.T) {
	c := newChained(t, demo.Loop, native{abi.BeforeModel: swaps("", "")}, demo.Reply{Text: "again"})
	c.model.Repeat = true
	seen := 0

	out := c.run(t.Context(), demo.Turn{Text: "go", Each: func(ev *session.Event) bool {
		if seen++; seen == 3 {
			c.ledger.Close(context.Background())
		}
		return atMost(t, 20-seen)(ev)
	}})

	require.NoError(t, out.Err())
	assert.Equal(t, "The service is shutting down. Please try again shortly.", out.Texts()[len(out.Texts())-1])
}

func TestRefusedParallelBranches(t *testing.T) {
	c := newChained(t, demo.Parallel, native{abi.BeforeModel: refuses("the work stopped early")})

	out := c.say("hi")

	require.NoError(t, out.Err())
	for _, text := range out.Texts() {
		assert.Equal(t, "the work stopped early", text)
	}
	assert.Contains(t, []int{1, 2}, len(out.Texts()), "each branch may show the refusal, none shows anything else")
	assert.Empty(t, c.model.Requests(), "model calls")
}

func TestRefusalStaysOutOfTheOutputKey(t *testing.T) {
	c := newChained(t, demo.LLM, native{abi.BeforeModel: refuses("no")})
	c.each(func(cfg *llmagent.Config) { cfg.OutputKey = "report" })

	c.say("hi")

	assert.Nil(t, c.state("report"))
}

func TestMaxModelCallsRefusesWithThatReason(t *testing.T) {
	replies := make([]demo.Reply, 0, 501)
	for range 501 {
		replies = append(replies, calls("lookup"))
	}
	c := newChained(t, demo.LLM, native{}, replies...)

	out := c.say("go")

	last := out.Events[len(out.Events)-1]
	assert.Equal(t, map[string]any{"code": "max_model_calls"}, last.CustomMetadata[adk.RefusalKey])
	assert.Len(t, c.model.Requests(), 500)
}

func TestPanicOfAStageFailsClosedEverywhere(t *testing.T) {
	for _, h := range []abi.Hook{abi.OnUserMessage, abi.BeforeRun, abi.BeforeAgent, abi.BeforeModel, abi.AfterModel, abi.OnEvent} {
		t.Run(h.String(), func(t *testing.T) {
			c := newChained(t, demo.LLM, native{h: panics}, demo.Reply{Text: "secret"})

			out := c.say("hi")

			require.NoError(t, out.Err())
			assert.Equal(t, []string{"not available"}, out.Texts())
			assert.Equal(t, []string{"not available"}, c.storedTexts())
		})
	}
}

func TestPanicOfAStageAtAToolReachesTheModelAsAFixedText(t *testing.T) {
	for _, h := range []abi.Hook{abi.BeforeTool, abi.AfterTool} {
		t.Run(h.String(), func(t *testing.T) {
			c := newChained(t, demo.LLM, native{h: panics}, calls("lookup"), demo.Reply{Text: "done"})

			require.Equal(t, []string{"done"}, c.say("hi").Texts())

			assert.Equal(t, map[string]any{"error": "not available", "code": "stage_failed"}, c.result("lookup"))
		})
	}
}

// The right branch has its model's call in hand when the left one is refused.
func TestAStoppedRunRunsNoTool(t *testing.T) {
	refuseLeft := func(ev *abi.Event) (abi.Verdict, error) {
		if ev.Agent == "left" {
			return refuses("the work stopped early")(ev)
		}
		return continues(ev)
	}
	lookup := calls("lookup")
	lookup.Agent = "right"
	c := newChained(t, demo.Parallel, native{abi.BeforeModel: refuseLeft}, lookup)
	called, refused := make(chan struct{}), make(chan struct{})
	c.each(func(cfg *llmagent.Config) {
		switch cfg.Name {
		case "left":
			cfg.BeforeAgentCallbacks = append(cfg.BeforeAgentCallbacks, func(agent.Context) (*genai.Content, error) {
				<-called
				return nil, nil
			})
		case "right":
			cfg.AfterModelCallbacks = append(cfg.AfterModelCallbacks, func(agent.Context, *model.LLMResponse, error) (*model.LLMResponse, error) {
				close(called)
				<-refused
				return nil, nil
			})
		}
	})

	out := c.run(t.Context(), demo.Turn{Text: "hi", Each: func(ev *session.Event) bool {
		if ev.Author == "left" {
			close(refused)
		}
		return true
	}})

	require.NoError(t, out.Err())
	assert.Empty(t, c.desk.Lookups(), "tools that ran")
	assert.Contains(t, c.stored(), "right: result lookup", "the call is answered all the same")
	assert.Len(t, c.model.Requests(), 1, "model calls")
}

func TestAStreamThatFailedClosedShowsNothingMore(t *testing.T) {
	chunks := 0
	boom := func(ev *abi.Event) (abi.Verdict, error) {
		if chunks++; chunks > 1 {
			return panics(ev)
		}
		return abi.Verdict{Kind: abi.Continue}, nil
	}
	c := newChained(t, demo.LLM, native{abi.OnModelChunk: boom, abi.AfterModel: swaps("", "")},
		demo.Reply{Chunks: []string{"one ", "two ", "three"}})

	out := c.stream("hi")

	assert.Equal(t, []string{"one "}, out.Chunks())
	assert.Equal(t, []string{"not available"}, out.Texts())
}

func TestALeaseIsReleasedAfterADisconnect(t *testing.T) {
	for _, end := range []string{"cancel", "break"} {
		t.Run(end, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			released := make(chan abi.Ending, 1)
			own := func(ev *abi.Event) (abi.Verdict, error) {
				ev.Run.Own("lease", func(ctx context.Context, end abi.Ending) {
					assert.NoError(t, ctx.Err(), "the release has a context of its own")
					released <- end
				})
				return abi.Verdict{Kind: abi.Continue}, nil
			}
			c := newChained(t, demo.LLM, native{abi.BeforeRun: own}, demo.Reply{Chunks: []string{"one ", "two ", "three"}})

			c.run(ctx, demo.Turn{Text: "hi", Stream: true, Each: func(*session.Event) bool {
				if end == "cancel" {
					cancel()
					return true
				}
				return false
			}})

			reason := within(t, released, "the release").Reason
			assert.Contains(t, []abi.Reason{abi.ReasonCancelled, abi.ReasonEnded}, reason, "the model may have been faster than the break")
		})
	}
}

func TestAgentsOwnCallbacksStillRunBehindAnAmend(t *testing.T) {
	c := newChained(t, demo.LLM, native{abi.AfterModel: swaps("raw", "masked")}, demo.Reply{Text: "raw"})
	var seen []string
	c.each(func(cfg *llmagent.Config) {
		cfg.AfterModelCallbacks = append(cfg.AfterModelCallbacks, sees(&seen))
	})

	assert.Equal(t, []string{"masked"}, c.say("hi").Texts())

	assert.Equal(t, []string{"masked"}, seen)
	assert.Contains(t, c.trace(), "after_model[assistant]", "later plugins run too")
}

func TestOneStreamIsNotShownInAnother(t *testing.T) {
	last := &model.LLMResponse{Partial: true, FinishReason: genai.FinishReasonStop, Content: modelSays("!")} // of every stream
	hold := func(ev *abi.Event) (abi.Verdict, error) {
		leaf := ev.Subject.Leaves()[0]
		return abi.Verdict{Kind: abi.Continue, Holds: []abi.Hold{{Pointer: leaf.Pointer, Bytes: len(leaf.Text)}}}, nil
	}
	c := newChained(t, demo.LLM, native{abi.OnModelChunk: hold})
	name := "ann"
	c.each(func(cfg *llmagent.Config) {
		cfg.Model = llm(func(_ context.Context, yield func(*model.LLMResponse, error) bool) {
			_ = yield(partial(name), nil) && yield(last, nil) && yield(answer(name+"!"), nil)
		})
	})

	assert.Equal(t, []string{"ann!"}, c.stream("hi").Chunks())
	name = "bob"
	assert.Equal(t, []string{"bob!"}, c.run(t.Context(), demo.Turn{User: "bob", Text: "hi", Stream: true}).Chunks())
	assert.Equal(t, "!", demo.Text(last.Content), "the model's own chunk")
}

func TestAFinalResponseThatComesAgainIsWhatItWas(t *testing.T) {
	final := answer("hello") // of every call, as from a cache
	cite := func(ev *abi.Event) (abi.Verdict, error) {
		if ev.User == "eve" {
			return abi.Verdict{Kind: abi.Continue}, nil
		}
		leaf := ev.Subject.Leaves()[0]
		edit := abi.Edit{Op: abi.EditSplice, Pointer: leaf.Pointer, Start: len(leaf.Text), End: len(leaf.Text), Text: " " + ev.User}
		return abi.Verdict{Kind: abi.Amend, Edits: []abi.Edit{edit}}, nil
	}
	c := newChained(t, demo.LLM, native{abi.AfterModel: cite})
	c.each(func(cfg *llmagent.Config) {
		cfg.Model = llm(func(_ context.Context, yield func(*model.LLMResponse, error) bool) { yield(final, nil) })
	})

	for user, want := range map[string]string{"ann": "hello ann", "bob": "hello bob", "eve": "hello"} {
		assert.Equal(t, []string{want}, c.run(t.Context(), demo.Turn{User: user, Text: "hi"}).Texts())
	}
}

func TestAnEventSaysWhetherItsChunkWasChangedSince(t *testing.T) {
	for name, change := range map[string]bool{"as it was": false, "changed": true} {
		t.Run(name, func(t *testing.T) {
			var streamed []bool
			c := newChained(t, demo.LLM, native{abi.OnModelChunk: swaps("", ""), abi.OnEvent: func(ev *abi.Event) (abi.Verdict, error) {
				if ev.Flags.Has(abi.Partial) {
					streamed = append(streamed, ev.Flags.Has(abi.Streamed))
				}
				return abi.Verdict{Kind: abi.Continue}, nil
			}}, demo.Reply{Chunks: []string{"one"}})
			c.each(func(cfg *llmagent.Config) {
				cfg.AfterModelCallbacks = append(cfg.AfterModelCallbacks, func(_ agent.Context, resp *model.LLMResponse, _ error) (*model.LLMResponse, error) {
					if change && resp.Partial {
						resp.Content.Parts[0].Text = "another"
					}
					return nil, nil
				})
			})

			c.stream("hi")

			assert.Equal(t, []bool{!change}, streamed)
		})
	}
}

func TestUnchangedValuesLeaveADKAlone(t *testing.T) {
	c := newChained(t, demo.LLM, native{abi.AfterModel: swaps("other", "x"), abi.OnEvent: swaps("other", "x")}, demo.Reply{Text: "raw"})
	var passed *session.Event
	c.on.OnEventCallback = func(_ agent.InvocationContext, ev *session.Event) (*session.Event, error) {
		passed = ev
		return nil, nil
	}

	out := c.say("hi")

	assert.Same(t, passed, out.Events[0], "no copy was made")
}
