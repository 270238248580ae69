package chain

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

	"github.com/hookhost/hookhost/abi"
)

// Chain is one version of the order of stages. A run keeps the version that
// it began with; a version that was replaced closes its stages when its last
// run is over.
type Chain struct {
	version  string
	entries  []*entry
	hooks    abi.HookSet
	maxCalls int64

	mu      sync.Mutex
	runs    int
	retired bool
	drained chan struct{}
}

// DefaultMaxModelCalls bounds the model calls of one run, as ADK Java does.
const DefaultMaxModelCalls = 500

// Entry is a stage with its place in the manifest.
type Entry struct {
	Spec  Spec
	Stage Stage
}

type entry struct {
	Entry
	index int
	hooks abi.HookSet // what it is called at
}

// New makes a chain of these stages in this order. maxModelCalls of 0 is the
// default.
func New(version string, maxModelCalls int64, entries ...Entry) (*Chain, error) {
	if maxModelCalls == 0 {
		maxModelCalls = DefaultMaxModelCalls
	}
	c := &Chain{version: version, maxCalls: maxModelCalls, drained: make(chan struct{})}
	var faults []error
	for i, e := range entries {
		faults = append(faults, e.Spec.check())
		hooks := e.Stage.Hooks()
		if e.Spec.Hooks != 0 {
			hooks &= e.Spec.Hooks
		}
		if e.Spec.Mode == Off {
			hooks = 0
		}
		c.entries = append(c.entries, &entry{Entry: e, index: i, hooks: hooks})
		c.hooks |= hooks
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return c, nil
}

func (s *Spec) check() error {
	if s.Name == "" || s.Role == 0 || s.Mode == 0 || s.OnError == 0 || s.OnLoadError == 0 || s.OnStore == 0 || s.Timeout <= 0 {
		return fmt.Errorf("stage[%s]: name, role, mode, timeout and all three policies have to be set", s.Name)
	}
	for _, globs := range [][]string{s.Apps, s.Agents, s.Tools, s.Models} {
		for _, g := range globs {
			if _, err := path.Match(g, ""); err != nil {
				return fmt.Errorf("stage[%s]: glob %q: %w", s.Name, g, err)
			}
		}
	}
	return nil
}

// Version names the chain in traces.
func (c *Chain) Version() string { return c.version }

// Wants reports whether any stage is called at this hook.
func (c *Chain) Wants(h abi.Hook) bool { return c.hooks.Has(h) }

// hears reports whether the stage is called for this event. A scope narrows
// only where the event has what it is about: a stage for one agent still sees
// the run begin and end.
func (e *entry) hears(h abi.Hook, ev *abi.Event) bool {
	return e.hooks.Has(h) &&
		matches(e.Spec.Apps, ev.App) && matches(e.Spec.Agents, ev.Agent) &&
		matches(e.Spec.Tools, ev.Tool) && matches(e.Spec.Models, ev.Model)
}

func matches(globs []string, s string) bool {
	if len(globs) == 0 || s == "" {
		return true
	}
	for _, g := range globs {
		if ok, _ := path.Match(g, s); ok {
			return true
		}
	}
	return false
}

func (c *Chain) pin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs++
}

func (c *Chain) unpin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs--
	c.drain()
}

func (c *Chain) drain() {
	if c.retired && c.runs == 0 {
		select {
		case <-c.drained:
		default:
			close(c.drained)
		}
	}
}

// Retire says that no new run begins on this chain, waits until its last one
// is over, or the context is, and closes the stages.
func (c *Chain) Retire(ctx context.Context) error {
	c.mu.Lock()
	c.retired = true
	c.drain()
	c.mu.Unlock()
	var waited error
	select {
	case <-c.drained:
	case <-ctx.Done():
		waited = fmt.Errorf("chain[%s]: runs still going on: %w", c.version, ctx.Err())
	}
	errs := []error{waited}
	for _, e := range c.entries {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		if err := e.Stage.Close(closing); err != nil {
			errs = append(errs, fmt.Errorf("stage[%s] close: %w", e.Spec.Name, err))
		}
		cancel()
	}
	return errors.Join(errs...)
}

// closeTimeout bounds how long one stage may take to free what it holds.
const closeTimeout = 5 * time.Second

// Broken is a stage whose module did not load. It asks for every hook and
// fails at each of them with CauseLoad, so that on_load_error decides.
func Broken(hooks abi.HookSet, err error) Stage { return broken{hooks, err} }

type broken struct {
	hooks abi.HookSet
	err   error
}

func (b broken) Hooks() abi.HookSet { return b.hooks }

func (b broken) Call(context.Context, *abi.Event) (abi.Verdict, error) {
	return abi.Verdict{}, &Failure{Cause: CauseLoad, Err: b.err}
}

func (b broken) Close(context.Context) error { return nil }

// Hooks tells what each stage asks for, by its name.
func (c *Chain) Hooks() map[string]abi.HookSet {
	hooks := make(map[string]abi.HookSet, len(c.entries))
	for _, e := range c.entries {
		hooks[e.Spec.Name] = e.Stage.Hooks()
	}
	return hooks
}
