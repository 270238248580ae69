package manifest

import (
	"fmt"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
)

// Level says how much a finding matters.
type Level string

// The levels.
const (
	Warning Level = "warning"
	Fault   Level = "error" // it cannot be meant
)

// Finding is something that a manifest allows and that is seldom meant.
type Finding struct {
	Rule  string `json:"rule"` // its id, which stays the same
	Level Level  `json:"level"`
	At    *Error `json:"at"` // the place and the text
}

func (f Finding) String() string { return fmt.Sprintf("%s (%s %s)", f.At, f.Level, f.Rule) }

// The rules.
const (
	RuleObserverClosed   = "observer-closed"      // a stage that only looks on stops turns when it fails
	RuleTransformerOpen  = "transformer-open"     // what it would have masked or changed goes through when it fails
	RuleAmendsAllAgents  = "amends-all-agents"    // several agents, and a stage that changes all of them
	RuleScopeWithoutHook = "scope-without-hook"   // tools or models are narrowed, and no such hook is left
	RuleUnheldStream     = "unheld-stream"        // it may change responses, but not the stream that is read before them
	RuleLimitsNoPlans    = "limits-without-plans" // it may use limits that nothing defines
	RuleUnknownLimit     = "unknown-limit"        // it may use a limit that the plans do not have
	RuleUnpinned         = "unpinned"             // the module can change unseen
	RulePasswordInURL    = "password-in-url"      // the store's password stands in a file under version control
	RuleStoreNotShared   = "store-not-shared"     // several processes, and a store that each has for itself
	RuleBelowFanOut      = "burst-below-fan-out"  // the model calls of one turn can be more than the bucket holds
	RuleNeverAdmits      = "never-admits"         // what is asked for by default never fits
	RuleIdleSlice        = "idle-slice"           // no call is small enough to be served from what was taken ahead
	RuleSlicesOverBurst  = "slices-over-burst"    // the processes take more ahead than the bucket holds
)

// LintInput is what the rules know besides the manifest.
type LintInput struct {
	Agents int    // how many agents the program has; 0 if that is not known
	Plans  *Plans // nil if they are not known
	// Hooks are those that the module of a stage asks for. nil if they are not
	// known.
	Hooks func(*Stage) abi.HookSet
}

// Lint looks for what is seldom meant, in the store, in the stages by their
// order, and in the plans. What it returns is never nil.
func Lint(m *Manifest, in LintInput) []Finding {
	l := linter{m: m, found: []Finding{}}
	l.store()
	for _, s := range m.Stages {
		if s.Spec.Mode != chain.Off {
			l.policies(s)
			l.scopes(s, in.Agents)
			if in.Hooks != nil {
				l.stream(s, in.Hooks(&s))
			}
			l.limits(s, in.Plans)
			l.pin(s)
		}
	}
	if in.Plans != nil {
		l.plans(in.Plans)
	}
	return l.found
}

type linter struct {
	m     *Manifest
	found []Finding
}

func (l *linter) add(rule string, level Level, s Stage, key, format string, args ...any) {
	l.found = append(l.found, Finding{rule, level, l.m.Errorf(s.Spec.Name, key, format, args...)})
}

func (l *linter) store() {
	s := l.m.Store
	if s.hasPassword() {
		l.found = append(l.found, Finding{RulePasswordInURL, Warning, l.m.StoreErrorf("url",
			`a password stands in it, for all who can read this file: write password = "env:VAR" or "file:PATH"`)})
	}
	if !s.Shared() && s.Replicas > 1 {
		l.found = append(l.found, Finding{RuleStoreNotShared, Warning, l.m.StoreErrorf("replicas",
			"memory:// is in each process: %d of them give out every limit %d times", s.Replicas, s.Replicas)})
	}
}

func (l *linter) policies(s Stage) {
	for _, p := range []struct {
		key    string
		policy chain.Policy
	}{{"on_error", s.Spec.OnError}, {"on_load_error", s.Spec.OnLoadError}, {"on_store_error", s.Spec.OnStore}} {
		switch { // the others follow on_error: one finding says it
		case s.Spec.Role == chain.Observer && p.policy == chain.Closed:
			l.add(RuleObserverClosed, Warning, s, p.key, "an observer that fails would stop the turns that it only looks at: open is the default for it")
			return
		case s.Spec.Role == chain.Transformer && p.policy == chain.Open:
			l.add(RuleTransformerOpen, Warning, s, p.key, "when this stage fails, the unchanged text goes through")
			return
		}
	}
}

var (
	toolHooks  = abi.SetOf(abi.BeforeTool, abi.AfterTool, abi.OnToolError)
	modelHooks = abi.SetOf(abi.BeforeModel, abi.OnModelChunk, abi.AfterModel, abi.OnModelError)
)

func (l *linter) scopes(s Stage, agents int) {
	if s.Spec.Role != chain.Observer && agents > 1 && len(s.Spec.Agents) == 0 {
		l.add(RuleAmendsAllAgents, Warning, s, "role", "changes what all %d agents see: name those that are meant in agents, or write agents = [\"*\"]", agents)
	}
	hooks := s.Spec.Hooks
	if hooks == 0 {
		return
	}
	if len(s.Spec.Tools) > 0 && hooks&toolHooks == 0 {
		l.add(RuleScopeWithoutHook, Fault, s, "tools", "hooks leaves no tool hook, so tools narrows nothing")
	}
	if len(s.Spec.Models) > 0 && hooks&modelHooks == 0 {
		l.add(RuleScopeWithoutHook, Fault, s, "models", "hooks leaves no model hook, so models narrows nothing")
	}
}

// stream looks for stages that see responses whole and not in pieces. A list
// of hooks that has all that the module asks for is meant.
func (l *linter) stream(s Stage, wanted abi.HookSet) {
	hooks := ranAt(s.Spec, wanted)
	if s.Spec.Role != chain.Transformer || !hooks.Has(abi.AfterModel) || hooks.Has(abi.OnModelChunk) {
		return
	}
	switch listed := s.Spec.Hooks != 0; {
	case wanted.Has(abi.OnModelChunk):
		l.add(RuleUnheldStream, Warning, s, "hooks", "after_model without on_model_chunk: a stream is read before this stage changes it, so name both")
	case !listed:
		l.add(RuleUnheldStream, Warning, s, "role", "the module asks for after_model and not for on_model_chunk: what it changes was read on a stream before. If it changes no response, list its hooks in hooks")
	}
}

func (l *linter) limits(s Stage, plans *Plans) {
	for i, g := range s.Grants {
		key := fmt.Sprintf("grants.%d", i)
		switch {
		case g.Family != "limit":
		case plans == nil && l.m.Limits.Plans == "":
			l.add(RuleLimitsNoPlans, Fault, s, key, "%s has no numbers: name a plans.toml in [limits] plans", g)
		case plans != nil && !plans.define(g):
			l.add(RuleUnknownLimit, Fault, s, key, "%s stands in no table of %s where it would be looked for", g, plans.File)
		}
	}
}

// define reports whether any table gives numbers to the limit of a grant.
func (p *Plans) define(g abi.Grant) bool {
	in := func(limits map[string]Limit) bool { _, found := limits[g.Name]; return found }
	switch g.Scope {
	case "app":
		return in(p.App)
	case "global":
		return in(p.Global)
	}
	for _, plan := range p.Plans {
		if in(plan.Limits) {
			return true
		}
	}
	return false
}

func (l *linter) pin(s Stage) {
	if !s.Pinned {
		l.add(RuleUnpinned, Warning, s, "module", "not pinned: run hookhost pin before this goes anywhere")
	}
}
