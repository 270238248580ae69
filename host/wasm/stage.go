package wasm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/host/wasm/cache"
)

// Stage is a module in the chain.
type Stage struct {
	cfg      Config
	services *hostfn.Services
	facts    hostfn.Stage
	runtime  *Runtime
	code     *cache.Code // shared with the other stages of the module
	notes    notes

	image *snapshot // nil where there is state that it would not hold
	pool  *pool
	rest  *rest
	hooks abi.HookSet
}

var _ chain.Stage = (*Stage)(nil)

func (r *Runtime) newStage(cfg Config, services *hostfn.Services, code *cache.Code) (*Stage, error) {
	s := &Stage{cfg: cfg, services: services, runtime: r, code: code}
	if err := json.Unmarshal(code.Notes, &s.notes); err != nil {
		return nil, fmt.Errorf("notes on the compiled module: %w", err)
	}
	s.facts.Name, s.facts.Grants, s.facts.Config, s.facts.Secrets = cfg.Name, cfg.Grants, cfg.Config, cfg.Secrets
	s.facts.Shadow, s.facts.Local, s.facts.Output = cfg.Shadow, cfg.Local, cfg.Output
	metrics := r.metrics.of(cfg.Name, services.Meter)
	s.pool = newPool(cfg.Pool, s.start, metrics)
	s.rest = newRest(func(last *chain.Failure) {
		metrics.rests()
		r.log.Warn("stage does nothing but crash and is tried once in a while", "stage", cfg.Name,
			"crashes", crashBudget, "every", restFor, "cause", last.Cause.String(), "error", last.Err)
	})
	return s, nil
}

// Hooks are those that the module asks for.
func (s *Stage) Hooks() abi.HookSet { return s.hooks }

// Dropped counts the lines of output that were not written.
func (s *Stage) Dropped() int64 { return s.facts.Dropped() }

// Call runs the guest once. Its errors are a *chain.Failure.
func (s *Stage) Call(caller context.Context, ev *abi.Event) (abi.Verdict, error) {
	return s.call(caller, ev, func(instance) {})
}

// call lets the instance be seen after the guest has run.
func (s *Stage) call(caller context.Context, ev *abi.Event, seen func(instance)) (v abi.Verdict, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.runtime.log.Error("stage panicked", "stage", s.cfg.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			v, err = abi.Verdict{}, &chain.Failure{Cause: chain.CauseTrap, Err: errors.New("panic in the host")}
		}
	}()
	end, err := s.rest.begin()
	if err != nil {
		return abi.Verdict{}, err
	}
	defer func() { end(err) }()
	ctx, cancel := chain.Within(caller, s.cfg.Timeout)
	defer cancel()
	in, err := s.pool.get(ctx)
	if err != nil {
		return abi.Verdict{}, noInstance(caller, err)
	}
	defer s.pool.put(in)
	c := s.services.NewCall(ctx, &s.facts, ev)
	packed, err := in.call(ctx, c)
	seen(in)
	if err == nil {
		v, err = verdict(c, packed)
	}
	v.Fuel = in.burned()
	return v, err
}

// noInstance is why a call got no instance.
func noInstance(caller context.Context, err error) *chain.Failure {
	var f *chain.Failure
	switch {
	case errors.Is(caller.Err(), context.Canceled):
		return &chain.Failure{Cause: chain.CauseCancelled, Err: fmt.Errorf("%w: %w", ErrCancelled, caller.Err())}
	case errors.Is(err, errNoSlot):
		return &chain.Failure{Cause: chain.CausePoolFull, Err: err}
	case errors.As(err, &f):
		return &chain.Failure{Cause: f.Cause, Err: err}
	}
	return &chain.Failure{Cause: chain.CauseTrap, Err: err}
}

func verdict(c *hostfn.Call, packed uint64) (abi.Verdict, error) {
	kind, wait, ok := abi.Unpack(packed)
	if !ok {
		return abi.Verdict{}, &chain.Failure{Cause: chain.CauseBadVerdict, Err: fmt.Errorf("%#x is no verdict", packed)}
	}
	v, err := c.Verdict(kind, wait)
	if err != nil {
		return abi.Verdict{}, &chain.Failure{Cause: chain.CauseBadVerdict, Err: err}
	}
	if kind != abi.Fail {
		if !c.Affordable(v) {
			return abi.Verdict{}, &chain.Failure{Cause: chain.CauseDeadline, Err: fmt.Errorf("%w: what it drafted takes longer than what is left", ErrDeadline)}
		}
		return v, nil
	}
	if c.StoreAway() {
		return v, &chain.Failure{Cause: chain.CauseStore, Err: errors.New("the stage could not decide: the store was unavailable")}
	}
	return v, &chain.Failure{Cause: chain.CauseFail, Err: errors.New("the stage could not decide")}
}

// Close frees all the instances and, with the last stage of a module, its
// code. A call that is running all the same, since the chain waits for it only
// for so long, goes on to its end, and what it stands on is freed then.
func (s *Stage) Close(ctx context.Context) error {
	freed := make(chan error, 1)
	s.pool.close(func() {
		if s.image != nil {
			s.image.memory.Close()
		}
		freed <- s.code.Close(ctx)
	})
	select {
	case err := <-freed:
		return err
	default:
		return nil
	}
}
