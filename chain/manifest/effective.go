package manifest

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
)

// Effective is what a manifest comes to: which stages run at which hook, in
// which order, and what each failure does there.
type Effective struct {
	Manifest string     `json:"manifest"`
	Overlay  string     `json:"overlay,omitempty"` // what was laid over it
	Version  string     `json:"version"`           // see Manifest
	Store    StorePlan  `json:"store"`
	Limits   LimitsPlan `json:"limits"`
	Hooks    []HookPlan `json:"hooks"` // those at which a stage runs, in the order of the ABI
	Off      []string   `json:"off"`   // stages with mode off
	Idle     []string   `json:"idle"`  // stages that no hook is left for
}

// StorePlan is where shared state is, without what may be secret.
type StorePlan struct {
	URL       string `json:"url"`
	Namespace string `json:"namespace"`
	Timeout   string `json:"timeout"` // of one operation
	Replicas  int    `json:"replicas"`
}

// LimitsPlan is where the numbers of limits are.
type LimitsPlan struct {
	Plans  string `json:"plans,omitempty"`
	FanOut int64  `json:"fan_out"`
}

// HookPlan is one hook point.
type HookPlan struct {
	Hook   string      `json:"hook"`
	Stages []StagePlan `json:"stages"` // in the order in which they run
}

// StagePlan is one stage at one hook point.
type StagePlan struct {
	Stage   string   `json:"stage"`
	Role    string   `json:"role"`
	Mode    string   `json:"mode"`
	Apps    []string `json:"apps,omitempty"`
	Agents  []string `json:"agents,omitempty"`
	Tools   []string `json:"tools,omitempty"`
	Models  []string `json:"models,omitempty"`
	Outcome Outcomes `json:"outcome"`
}

// Outcomes say what follows from each failure.
type Outcomes struct {
	Load     string `json:"load_failure"`
	Trap     string `json:"trap"`
	Deadline string `json:"deadline"`
	PoolFull string `json:"full_pool"`
	Store    string `json:"store_outage"`
}

// NewEffective works the plan out. The hooks that a stage's module asks for
// come from the caller, who has loaded it.
func NewEffective(m *Manifest, wanted func(*Stage) abi.HookSet) *Effective {
	e := &Effective{
		Manifest: m.File, Overlay: m.Overlay, Version: m.Version,
		Store:  StorePlan{m.Store.Where(), m.Store.Namespace, short(m.Store.Timeout), m.Store.Replicas},
		Limits: LimitsPlan{m.Limits.Plans, m.Limits.FanOut},
		Hooks:  []HookPlan{}, Off: []string{}, Idle: []string{},
	}
	hooks := make([]abi.HookSet, len(m.Stages))
	for i := range m.Stages {
		s := &m.Stages[i]
		if s.Spec.Mode == chain.Off {
			e.Off = append(e.Off, s.Spec.Name)
			continue
		}
		hooks[i] = ranAt(s.Spec, wanted(s))
		if hooks[i] == 0 {
			e.Idle = append(e.Idle, s.Spec.Name)
		}
	}
	for _, h := range abi.Hooks() {
		p := HookPlan{Hook: h.String()}
		for i, s := range m.Stages {
			if hooks[i].Has(h) {
				p.Stages = append(p.Stages, stagePlan(s.Spec, h))
			}
		}
		if len(p.Stages) > 0 {
			e.Hooks = append(e.Hooks, p)
		}
	}
	return e
}

// ranAt narrows what a module asks for to what the manifest lets it see.
func ranAt(s chain.Spec, wanted abi.HookSet) abi.HookSet {
	if s.Hooks != 0 {
		wanted &= s.Hooks
	}
	return wanted & abi.AllHooks
}

func stagePlan(s chain.Spec, h abi.Hook) StagePlan {
	onError := outcome(s.Mode, s.OnError, h)
	return StagePlan{
		Stage: s.Name, Role: s.Role.String(), Mode: s.Mode.String(),
		Apps: s.Apps, Agents: s.Agents, Tools: s.Tools, Models: s.Models,
		Outcome: Outcomes{
			Load:     loadOutcome(s.Mode, s.OnLoadError, h),
			Trap:     onError,
			Deadline: onError,
			PoolFull: onError,
			Store:    outcome(s.Mode, s.OnStore, h),
		},
	}
}

// loadOutcome differs where the policy is closed: a stage that never started
// keeps the host from starting.
func loadOutcome(m chain.Mode, p chain.Policy, h abi.Hook) string {
	if m == chain.Enforce && p == chain.Closed {
		return "closed: the host does not start, and a reload is refused"
	}
	return outcome(m, p, h)
}

// outcome says in words what a failure does at a hook under a policy.
func outcome(m chain.Mode, p chain.Policy, h abi.Hook) string {
	switch {
	case m == chain.Shadow:
		return "shadow: counted and logged, nothing else changes"
	case p == chain.Open:
		return "open: this stage is skipped"
	case p == chain.Local:
		return "local: a share of the limit in this process, else the stage is skipped"
	}
	switch h {
	case abi.OnUserMessage, abi.BeforeRun:
		return "closed: denies the run with the refusal"
	case abi.OnEvent:
		return "closed: the refusal replaces the text, calls stay"
	case abi.OnModelChunk:
		return "closed: this and later chunks are held, the final response is the refusal"
	case abi.BeforeTool, abi.AfterTool, abi.OnToolError:
		return "closed: a result map with the refusal"
	case abi.AfterRun, abi.Close:
		return "closed: can only be logged here"
	default:
		return "closed: the refusal is the reply"
	}
}

// String renders the plan for a person.
func (e *Effective) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	files := e.Manifest
	if e.Overlay != "" {
		files += " under " + e.Overlay
	}
	fmt.Fprintf(w, "%s, version %s\n", files, e.Version)
	fmt.Fprintf(w, "store: %s, namespace %s, timeout %s, replicas %d\n", e.Store.URL, e.Store.Namespace, e.Store.Timeout, e.Store.Replicas)
	if e.Limits.Plans != "" {
		fmt.Fprintf(w, "limits: %s, fan-out %d\n", e.Limits.Plans, e.Limits.FanOut)
	}
	for _, h := range e.Hooks {
		fmt.Fprintf(w, "\n%s\n", h.Hook)
		for i, s := range h.Stages {
			fmt.Fprintf(w, "  %d. %s (%s, %s)%s\n", i+1, s.Stage, s.Role, s.Mode, s.scopes())
			for _, line := range s.Outcome.lines() {
				fmt.Fprintf(w, "     %s\t%s\n", line.causes, line.outcome)
			}
		}
	}
	if len(e.Off) > 0 {
		fmt.Fprintf(w, "\noff: %s\n", list(e.Off))
	}
	if len(e.Idle) > 0 {
		fmt.Fprintf(w, "\nidle, no hook is left for them: %s\n", list(e.Idle))
	}
	_ = w.Flush() // into memory
	return b.String()
}

func (s StagePlan) scopes() string {
	var b strings.Builder
	for _, scope := range []struct {
		name  string
		globs []string
	}{{"apps", s.Apps}, {"agents", s.Agents}, {"tools", s.Tools}, {"models", s.Models}} {
		if len(scope.globs) > 0 {
			fmt.Fprintf(&b, " %s=%s", scope.name, strings.Join(scope.globs, ","))
		}
	}
	return b.String()
}

type outcomeLine struct{ causes, outcome string }

// lines puts causes with the same outcome on one line.
func (o Outcomes) lines() []outcomeLine {
	var lines []outcomeLine
next:
	for _, one := range []outcomeLine{
		{"load failure", o.Load}, {"trap", o.Trap}, {"deadline", o.Deadline}, {"full pool", o.PoolFull}, {"store outage", o.Store},
	} {
		for i := range lines {
			if lines[i].outcome == one.outcome {
				lines[i].causes += ", " + one.causes
				continue next
			}
		}
		lines = append(lines, one)
	}
	return lines
}
