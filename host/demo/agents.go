package demo

import (
	"fmt"
	"iter"
	"strings"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/agent/workflowagent"
	"google.golang.org/adk/v2/agent/workflowagents/loopagent"
	"google.golang.org/adk/v2/agent/workflowagents/parallelagent"
	"google.golang.org/adk/v2/agent/workflowagents/sequentialagent"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/workflow"
)

// Shape is the kind of tree that the agents stand in. The names in it are what
// `agent` in a script refers to.
type Shape string

// The shapes.
const (
	LLM        Shape = "llm"        // one LLM agent, "assistant"
	Transfer   Shape = "transfer"   // the LLM agent "front", which can transfer to "specialist"
	Sequential Shape = "sequential" // "sequence" runs "first", then "second"
	Parallel   Shape = "parallel"   // "panel" runs "left" beside "right"
	Loop       Shape = "loop"       // "loop" runs "worker" until it escalates
	Custom     Shape = "custom"     // "custom", whose own code runs "assistant"
	Workflow   Shape = "workflow"   // "flow", a graph with the agent nodes "first" and then "second"
)

// Shapes are all of them.
var Shapes = []Shape{LLM, Transfer, Sequential, Parallel, Loop, Custom, Workflow}

// UnmarshalText reads a shape by its name.
func (s *Shape) UnmarshalText(text []byte) error {
	names := make([]string, len(Shapes))
	for i, known := range Shapes {
		if names[i] = string(known); names[i] == string(text) {
			*s = known
			return nil
		}
	}
	return fmt.Errorf("unknown shape %q: want %s", text, strings.Join(names, ", "))
}

// Tree says how the agents are made.
type Tree struct {
	Shape Shape
	Model *Model
	Tools []tool.Tool // of every LLM agent

	Iterations uint                   // of the loop; 0 is unbounded
	Each       func(*llmagent.Config) // may change an LLM agent before it is made; nil leaves them as they are
}

// Agent is the root of a tree of this shape, whose LLM agents all have the tools.
func Agent(shape Shape, m *Model, tools ...tool.Tool) (agent.Agent, error) {
	return Tree{Shape: shape, Model: m, Tools: tools}.Agent()
}

// Agent makes the tree and returns its root.
func (t Tree) Agent() (agent.Agent, error) {
	switch t.Shape {
	case LLM:
		return t.llm("assistant")
	case Transfer:
		specialist, err := t.llm("specialist")
		if err != nil {
			return nil, err
		}
		return t.llm("front", specialist)
	case Sequential:
		return t.over("sequence", func(c agent.Config) (agent.Agent, error) {
			return sequentialagent.New(sequentialagent.Config{AgentConfig: c})
		}, "first", "second")
	case Parallel:
		return t.over("panel", func(c agent.Config) (agent.Agent, error) {
			return parallelagent.New(parallelagent.Config{AgentConfig: c})
		}, "left", "right")
	case Loop:
		return t.over("loop", func(c agent.Config) (agent.Agent, error) {
			return loopagent.New(loopagent.Config{AgentConfig: c, MaxIterations: t.Iterations})
		}, "worker")
	case Custom:
		return t.over("custom", func(c agent.Config) (agent.Agent, error) {
			c.Run = runSubAgents
			return agent.New(c)
		}, "assistant")
	case Workflow:
		return t.over("flow", flow, "first", "second")
	default:
		return nil, fmt.Errorf("demo: unknown shape %q", t.Shape)
	}
}

func (t Tree) llm(name string, subAgents ...agent.Agent) (agent.Agent, error) {
	cfg := llmagent.Config{
		Name:        name,
		Description: "The " + name + " of the demo.",
		Model:       t.Model.For(name),
		Tools:       t.Tools,
		SubAgents:   subAgents,
	}
	if t.Each != nil {
		t.Each(&cfg)
	}
	a, err := llmagent.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("agent[%s]: %w", name, err)
	}
	return a, nil
}

// over makes an agent that has LLM agents under it.
func (t Tree) over(root string, build func(agent.Config) (agent.Agent, error), names ...string) (agent.Agent, error) {
	cfg := agent.Config{Name: root, Description: "The " + root + " of the demo."}
	for _, name := range names {
		sub, err := t.llm(name)
		if err != nil {
			return nil, err
		}
		cfg.SubAgents = append(cfg.SubAgents, sub)
	}
	a, err := build(cfg)
	if err != nil {
		return nil, fmt.Errorf("agent[%s]: %w", root, err)
	}
	return a, nil
}

func runSubAgents(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
	return func(yield func(*session.Event, error) bool) {
		for _, sub := range ctx.Agent().SubAgents() {
			for ev, err := range sub.Run(ctx) {
				if !yield(ev, err) {
					return
				}
			}
		}
	}
}

// flow chains the sub-agents as nodes of a graph.
func flow(c agent.Config) (agent.Agent, error) {
	from := workflow.Start
	var edges []workflow.Edge
	for _, sub := range c.SubAgents {
		node, err := workflow.NewAgentNode(sub, workflow.NodeConfig{})
		if err != nil {
			return nil, err
		}
		edges = append(edges, workflow.Edge{From: from, To: node})
		from = node
	}
	return workflowagent.New(workflowagent.Config{
		Name: c.Name, Description: c.Description, SubAgents: c.SubAgents, Edges: edges,
	})
}
