package main

import (
	"context"
	"fmt"
	"iter"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/demo"
)

// speaker is a model that always says the same and remembers nothing: calls of
// tools first, if it has any, then a text, in a stream piece by piece.
type speaker struct {
	text  []string
	calls []*genai.FunctionCall
}

func (s *speaker) Name() string { return "speaker" }

func (s *speaker) GenerateContent(_ context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		last := req.Contents[len(req.Contents)-1]
		if len(s.calls) > 0 && last.Parts[0].FunctionResponse == nil {
			parts := make([]*genai.Part, len(s.calls))
			for i, call := range s.calls {
				again := *call
				parts[i] = &genai.Part{FunctionCall: &again}
			}
			yield(s.response(parts, false), nil)
			return
		}
		whole := ""
		for _, piece := range s.text {
			whole += piece
			if stream && !yield(s.response([]*genai.Part{{Text: piece}}, true), nil) {
				return
			}
		}
		yield(s.response([]*genai.Part{{Text: whole}}, false), nil)
	}
}

func (s *speaker) response(parts []*genai.Part, partial bool) *model.LLMResponse {
	r := &model.LLMResponse{Content: &genai.Content{Role: genai.RoleModel, Parts: parts}, Partial: partial}
	if !partial {
		r.TurnComplete, r.FinishReason = true, genai.FinishReasonStop
		r.UsageMetadata = demo.Usage{Prompt: 20, Candidates: 2, Total: 22}.Metadata()
	}
	return r
}

// conversations are turns of an agent with this model, each in a session of its
// own, which is deleted after it.
type conversations struct {
	*lab
	runner   *runner.Runner
	sessions session.Service
	stream   bool
	turns    int
}

func newConversations(l *lab, m *speaker, tools []tool.Tool, plugins ...*plugin.Plugin) *conversations {
	root, err := llmagent.New(llmagent.Config{Name: "assistant", Description: "The agent.", Model: m, Tools: tools})
	require.NoError(l, err)
	c := &conversations{lab: l, sessions: session.InMemoryService()}
	c.runner, err = runner.New(runner.Config{
		AppName: app, Agent: root, SessionService: c.sessions, AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: plugins},
	})
	require.NoError(l, err)
	return c
}

// turn is one turn, and gives the final texts.
func (c *conversations) turn(text string) []string {
	c.turns++
	id := fmt.Sprint("session-", c.turns)
	out := demo.Run(c.ctx, c.runner, demo.Turn{User: "user-" + fmt.Sprint(c.turns%1000), Session: id, Text: text, Stream: c.stream})
	require.NoError(c, out.Err())
	require.NoError(c, c.sessions.Delete(c.ctx, &session.DeleteRequest{AppName: app, UserID: "user-" + fmt.Sprint(c.turns%1000), SessionID: id}))
	return out.Texts()
}

// beside wraps what is done at a model call before and after the plugin under
// measure: ADK calls plugins in their order.
func beside(l *lab, name string, before llmagent.BeforeModelCallback, after llmagent.AfterModelCallback) *plugin.Plugin {
	p, err := plugin.New(plugin.Config{Name: name, BeforeModelCallback: before, AfterModelCallback: after})
	require.NoError(l, err)
	return p
}

// measureMessages puts so many messages before the shipped meter at a model
// call, and takes the time that its two hooks need in the runner.
func measureMessages(l *lab, s settings) []figure {
	small, large := s.meterAt(l, 10), s.meterAt(l, 10_000)
	for _, warmUp := range []func() float64{small, large} {
		require.Positive(l, warmUp())
	}
	r := rounds{}
	for range s.rounds {
		var few, many []float64
		for i := range max(6, 4*int(s.budget/time.Millisecond)) {
			if i%2 == 0 { // who comes second finds other things in the caches
				few = append(few, small())
				many = append(many, large())
			} else {
				many = append(many, large())
				few = append(few, small())
			}
		}
		r.add(median(many), median(few))
	}
	return []figure{r.ratio("messages: meter in a conversation of 10000", "µs", "of 10").atMost(1.1)}
}

// meterAt gives the microseconds that the meter's stage takes of a turn with a
// model call that has n messages.
func (s settings) meterAt(l *lab, n int) func() float64 {
	path := writeManifest(l, fmt.Sprintf(meterManifest, shipped(l, s, "meter")), plenty)
	h := openManifest(l, path, host.Options{})
	messages := make([]*genai.Content, n)
	for i := range messages {
		messages[i] = genai.NewContentFromText(fmt.Sprint("message ", i), genai.RoleUser)
	}
	var began time.Time
	var took time.Duration
	enter := beside(l, "enter",
		func(_ agent.Context, req *model.LLMRequest) (*model.LLMResponse, error) {
			req.Contents = messages
			began = time.Now()
			return nil, nil
		},
		func(agent.Context, *model.LLMResponse, error) (*model.LLMResponse, error) {
			began = time.Now()
			return nil, nil
		})
	leave := beside(l, "leave",
		func(_ agent.Context, req *model.LLMRequest) (*model.LLMResponse, error) {
			took += time.Since(began)
			req.Contents = messages[:1] // what ADK does with many is none of the meter's
			return nil, nil
		},
		func(agent.Context, *model.LLMResponse, error) (*model.LLMResponse, error) {
			took += time.Since(began)
			return nil, nil
		})
	c := newConversations(l, &speaker{text: []string{"Hello."}}, nil, enter, h.Plugin(), leave)
	return func() float64 {
		took = 0
		require.Equal(l, []string{"Hello."}, c.turn("Hi"))
		return microseconds(took)
	}
}

const meterManifest = `
version = 1
order = ["meter"]
[store]
url = "memory://"
namespace = "bench"
[limits]
plans = "plans.toml"
[stage.meter]
module = %q
role = "observer"
grants = ["usage:write"]
`

// processorTime is what this process has used of the processors.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
