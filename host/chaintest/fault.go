package chaintest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
)

// fault makes a stage fail at a hook.
type fault struct {
	Where place `toml:"-"`

	Stage string   `toml:"stage"`
	Hook  hookName `toml:"hook"`
	Kind  string   `toml:"kind"`
	Skip  int      `toml:"skip"`  // so many calls go well before
	Times int      `toml:"times"` // so many calls fail; 0 is all that follow
}

// faultKinds are the ways in which a stage can fail, each as it comes from a
// real one: out of time is a call that runs until its deadline, a bad verdict
// is one that the chain has to find out.
var faultKinds = map[string]func(context.Context) (abi.Verdict, error){
	"trap": func(context.Context) (abi.Verdict, error) {
		return abi.Verdict{}, &chain.Failure{Cause: chain.CauseTrap, Err: errInjected}
	},
	"time": func(ctx context.Context) (abi.Verdict, error) {
		<-ctx.Done()
		return abi.Verdict{}, ctx.Err()
	},
	"memory": func(context.Context) (abi.Verdict, error) {
		return abi.Verdict{}, &chain.Failure{Cause: chain.CauseMemory, Err: errInjected}
	},
	"bad_verdict": func(context.Context) (abi.Verdict, error) { return abi.Verdict{}, nil },
	"fail":        func(context.Context) (abi.Verdict, error) { return abi.Verdict{Kind: abi.Fail}, nil },
	"pool_full": func(context.Context) (abi.Verdict, error) {
		return abi.Verdict{}, &chain.Failure{Cause: chain.CausePoolFull, Err: errInjected}
	},
	"too_deep": func(context.Context) (abi.Verdict, error) {
		return abi.Verdict{}, &chain.Failure{Cause: chain.CauseDepth, Err: errInjected}
	},
	"host_calls": func(context.Context) (abi.Verdict, error) {
		return abi.Verdict{}, &chain.Failure{Cause: chain.CauseHostCalls, Err: errInjected}
	},
	"load": func(context.Context) (abi.Verdict, error) {
		return abi.Verdict{}, &chain.Failure{Cause: chain.CauseLoad, Err: errInjected}
	},
}

var errInjected = errors.New("injected by the scenario")

func (f *fault) check(d *decoder) {
	if f.Stage == "" {
		d.blame(f.Where, "stage is missing: name the one that fails")
	}
	if f.Hook.Hook == 0 {
		d.blame(f.Where, "hook is missing: name the one at which it fails")
	}
	if faultKinds[f.Kind] == nil {
		d.blame(below(f.Where, "kind"), "%q is no fault: want %s", f.Kind, strings.Join(sorted(faultKinds), ", "))
	}
}

// faulty is a stage some of whose calls fail.
type faulty struct {
	chain.Stage
	mu     sync.Mutex
	faults []*injection
}

type injection struct {
	*fault
	calls, done int
}

// Hooks are those of the stage and those that it fails at.
func (s *faulty) Hooks() abi.HookSet {
	hooks := s.Stage.Hooks()
	for _, f := range s.faults {
		hooks |= abi.SetOf(f.Hook.Hook)
	}
	return hooks
}

func (s *faulty) Call(ctx context.Context, ev *abi.Event) (abi.Verdict, error) {
	if f := s.due(ev.Hook); f != nil {
		return faultKinds[f.Kind](ctx)
	}
	if !s.Stage.Hooks().Has(ev.Hook) {
		return abi.Verdict{Kind: abi.Continue}, nil
	}
	return s.Stage.Call(ctx, ev)
}

func (s *faulty) due(h abi.Hook) *injection {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if f.Hook.Hook != h {
			continue
		}
		f.calls++
		if f.calls > f.Skip && (f.Times == 0 || f.done < f.Times) {
			f.done++
			return f
		}
	}
	return nil
}

// idle says which faults never happened: a scenario that injects them and
// would pass without shows nothing.
func (s *faulty) idle() []Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Failure
	for _, f := range s.faults {
		if f.done == 0 {
			all = append(all, Failure{
				at: slices.Clone([]string(f.Where)), Of: "at the end", What: "fault",
				Words: fmt.Sprintf("stage[%s] was never called at %s", f.Stage, f.Hook),
			})
		}
	}
	return all
}
