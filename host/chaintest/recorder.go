package chaintest

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
)

// Agent is the name under which an agent's own callbacks stand in a trace.
const Agent = "<agent>"

// Recorder keeps what a chain did: which stages were called, in which order,
// with which texts, and whether the agent's own callbacks ran. Its zero value
// is ready; its methods may be called by many goroutines at once.
//
//	var rec chaintest.Recorder
//	host.Options{Trace: chain.Tracer{Step: rec.Step}, Wrap: rec.Wrap}
//	demo.Tree{Each: rec.Watch}
type Recorder struct {
	mu       sync.Mutex
	steps    []recorded
	reads    []read
	requests []request
	runs     map[string]who // whose a run is
}

// who tells turns apart that go on at once.
type who struct{ user, session string }

type whoKey struct{}

type recorded struct {
	line, hook, stage string
	notes             []string // as scenarios write them
	run               string   // of a stage's step
	who               who      // of a callback
}

type read struct {
	stage, line string
	who         who
}

type request struct {
	lines []string
	whole string
	who   who
}

// Step is for chain.Tracer.
func (r *Recorder) Step(s chain.Step) {
	stage := s.Stage
	if stage == "" {
		stage = "host"
	}
	step := recorded{line: s.Line(), hook: s.Hook.String(), stage: stage, run: s.Run}
	for _, note := range s.Notes {
		step.notes = append(step.notes, stage+" "+note.Key+": "+note.Value)
	}
	r.add(step)
}

func (r *Recorder) add(step recorded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, step)
}

// Trace gives the lines so far, as chain.Step.Line writes them, of all hooks or
// of these.
func (r *Recorder) Trace(hooks ...string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return trace(r.steps, nil, hooks)
}

func trace(steps []recorded, stages, hooks []string) []string {
	lines := []string{}
	for _, s := range narrowed(steps, stages, hooks) {
		lines = append(lines, s.line)
	}
	return lines
}

func narrowed(steps []recorded, stages, hooks []string) (some []recorded) {
	for _, s := range steps {
		if (stages == nil || slices.Contains(stages, s.stage)) && (len(hooks) == 0 || slices.Contains(hooks, s.hook)) {
			some = append(some, s)
		}
	}
	return some
}

// Wrap is for host.Options: it records the texts that each stage is given.
func (r *Recorder) Wrap(name string, s chain.Stage) chain.Stage {
	return &recordedStage{Stage: s, name: name, by: r}
}

// Reads gives what a stage was given so far: "HOOK TEXT" for each call that
// had a text, the texts of one value joined by " | ".
func (r *Recorder) Reads(stage string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := []string{}
	for _, got := range r.reads {
		if got.stage == stage {
			lines = append(lines, got.line)
		}
	}
	return lines
}

type recordedStage struct {
	chain.Stage
	name string
	by   *Recorder
}

func (s *recordedStage) Call(ctx context.Context, ev *abi.Event) (abi.Verdict, error) {
	s.by.call(s.name, ev)
	return s.Stage.Call(ctx, ev)
}

func (r *Recorder) call(stage string, ev *abi.Event) {
	var texts []string
	if ev.Subject != nil {
		for _, leaf := range ev.Subject.Leaves() {
			if leaf.Kind != abi.LeafSystem {
				texts = append(texts, leaf.Text)
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	from := who{ev.User, ev.Session}
	if r.runs == nil {
		r.runs = map[string]who{}
	}
	r.runs[ev.Run.ID()] = from
	if texts != nil {
		r.reads = append(r.reads, read{stage, ev.Hook.String() + " " + strings.Join(texts, " | "), from})
	}
}

// Watch is for demo.Tree: it puts callbacks of its own into an LLM agent,
// which record that they ran, and records what its model is asked.
func (r *Recorder) Watch(c *llmagent.Config) {
	r.callbacks(c)
	r.model(c)
}

func (r *Recorder) callback(c agent.Context, h abi.Hook) {
	r.add(recorded{line: h.String() + " " + Agent, hook: h.String(), stage: Agent, who: who{c.UserID(), c.SessionID()}})
}

func (r *Recorder) callbacks(c *llmagent.Config) {
	c.BeforeAgentCallbacks = append(c.BeforeAgentCallbacks, func(c agent.Context) (*genai.Content, error) {
		r.callback(c, abi.BeforeAgent)
		return nil, nil
	})
	c.AfterAgentCallbacks = append(c.AfterAgentCallbacks, func(c agent.Context) (*genai.Content, error) {
		r.callback(c, abi.AfterAgent)
		return nil, nil
	})
	c.BeforeModelCallbacks = append(c.BeforeModelCallbacks, func(c agent.Context, _ *model.LLMRequest) (*model.LLMResponse, error) {
		r.callback(c, abi.BeforeModel)
		return nil, nil
	})
	c.AfterModelCallbacks = append(c.AfterModelCallbacks, func(c agent.Context, _ *model.LLMResponse, _ error) (*model.LLMResponse, error) {
		r.callback(c, abi.AfterModel)
		return nil, nil
	})
	c.BeforeToolCallbacks = append(c.BeforeToolCallbacks, func(c agent.Context, _ tool.Tool, _ map[string]any) (map[string]any, error) {
		r.callback(c, abi.BeforeTool)
		return nil, nil
	})
	c.AfterToolCallbacks = append(c.AfterToolCallbacks, func(c agent.Context, _ tool.Tool, _, _ map[string]any, _ error) (map[string]any, error) {
		r.callback(c, abi.AfterTool)
		return nil, nil
	})
}

func (r *Recorder) model(c *llmagent.Config) { c.Model = &recordedModel{c.Model, r} }

type recordedModel struct {
	model.LLM
	by *Recorder
}

func (m *recordedModel) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	from, _ := ctx.Value(whoKey{}).(who)
	asked := request{lines: contentLines(req.Contents), whole: compact(req), who: from}
	m.by.mu.Lock()
	m.by.requests = append(m.by.requests, asked)
	m.by.mu.Unlock()
	return m.LLM.GenerateContent(ctx, req, stream)
}

// mark is how far a recorder had come.
type mark struct{ steps, reads, requests int }

func (r *Recorder) mark() mark {
	r.mu.Lock()
	defer r.mu.Unlock()
	return mark{len(r.steps), len(r.reads), len(r.requests)}
}

// since gives what was recorded of one turn. A nil turn is all of them.
func (r *Recorder) since(m mark, of *who) (steps []recorded, reads []read, requests []request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.steps[m.steps:] {
		if s.run != "" {
			s.who = r.runs[s.run]
		}
		if of == nil || s.who == *of {
			steps = append(steps, s)
		}
	}
	for _, got := range r.reads[m.reads:] {
		if of == nil || got.who == *of {
			reads = append(reads, got)
		}
	}
	for _, asked := range r.requests[m.requests:] {
		if of == nil || asked.who == *of {
			requests = append(requests, asked)
		}
	}
	return steps, reads, requests
}
