package wasm

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/host/wasm/image"
	"github.com/hookhost/hookhost/host/wasm/meter"
	"github.com/hookhost/hookhost/host/wasm/wasi"
)

// snapshot is what every instance of a stage begins with: the state of the
// first one after it was configured.
type snapshot struct {
	memory  *image.Image
	globals []uint64
}

// first starts the instance that tells what the module wants, and takes the
// snapshot of it.
func (s *Stage) first(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	g, err := s.boot(ctx)
	if err != nil {
		return err
	}
	if err := s.learn(ctx, g); err != nil {
		g.close()
		return err
	}
	s.pool.adopt(g)
	return nil
}

func (s *Stage) learn(ctx context.Context, g *guest) error {
	var wants [1]uint64
	if err := g.step(ctx, abi.ExportABI, abi.ExportABI, wants[:]); err != nil {
		return err
	}
	s.hooks = abi.HookSet(uint32(wants[0]))
	switch {
	case wants[0]>>32 != 0:
		return fmt.Errorf("%w: bits %#x", ErrFeature, wants[0]>>32)
	case s.hooks&^abi.AllHooks != 0:
		return fmt.Errorf("%w: bits %#x", ErrHooks, uint32(s.hooks&^abi.AllHooks))
	case len(s.notes.Unheld) > 0:
		return nil
	}
	taken, err := g.memory.Snapshot()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStart, err)
	}
	s.image = &snapshot{memory: taken}
	for _, global := range g.state {
		s.image.globals = append(s.image.globals, global.Get())
	}
	return nil
}

// start makes an instance for the pool: from the image, of which nothing is
// run, or where there is none from the beginning.
func (s *Stage) start(ctx context.Context) (instance, error) {
	if s.image == nil {
		return s.boot(ctx)
	}
	memory, err := s.image.memory.New(s.cfg.Memory)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	g, err := s.instantiate(ctx, memory)
	if err != nil {
		return nil, err
	}
	for i, v := range s.image.globals {
		g.state[i].Set(v)
	}
	return g, nil
}

// boot makes an instance from the beginning: its start function, _initialize
// and configure run.
func (s *Stage) boot(ctx context.Context) (*guest, error) {
	memory, err := s.runtime.newMemory(s.cfg.Memory)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	g, err := s.instantiate(ctx, memory)
	if err != nil {
		return nil, err
	}
	if err := g.configure(ctx); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

// instantiate makes an instance that runs nothing yet.
func (s *Stage) instantiate(ctx context.Context, memory *image.Memory) (*guest, error) {
	g := &guest{stage: s, memory: memory}
	g.wasi = wasi.Host{Output: &g.output, Charge: g.budget.charge}
	var err error
	// Without a name, so that there may be any number of them.
	g.module, err = s.code.Engine.InstantiateModule(experimental.WithMemoryAllocator(ctx, memory), s.code.Module,
		wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(rand.Reader)) // it has a costly default
	if err != nil {
		memory.Free()
		return nil, &startError{step: "start", err: err}
	}
	g.bind()
	return g, nil
}

// configure runs everything that is run once.
func (g *guest) configure(ctx context.Context) error {
	if err := g.step(ctx, "start", meter.Start, nil); err != nil {
		return err
	}
	for _, name := range []string{abi.ExportInitialize, "_start"} {
		// A reactor has the one. Where _start is all there is, that it is; if it
		// exits, the module is over.
		if g.module.ExportedFunction(name) != nil {
			if err := g.step(ctx, name, name, nil); err != nil {
				return err
			}
			break
		}
	}
	if g.module.ExportedFunction(abi.ExportConfigure) == nil {
		return nil
	}
	c := g.stage.services.NewCall(ctx, &g.stage.facts, nil)
	var result [1]uint64
	if err := g.stepOf(ctx, c, "configure", abi.ExportConfigure, result[:]); err != nil {
		return err
	}
	return rejected(c, api.DecodeI32(result[0]))
}

// step runs an export on the way to an instance that can be called.
func (g *guest) step(ctx context.Context, step, export string, stack []uint64) error {
	return g.stepOf(ctx, g.stage.services.NewCall(ctx, &g.stage.facts, nil), step, export, stack)
}

func (g *guest) stepOf(ctx context.Context, c *hostfn.Call, step, export string, stack []uint64) error {
	if err := g.run(ctx, c, g.module.ExportedFunction(export), stack); err != nil {
		return &startError{step: step, err: err}
	}
	return nil
}

func rejected(c *hostfn.Call, result int32) error {
	if key, text, ok := c.Rejected(); ok {
		return &RejectedError{Key: key, Text: text}
	}
	if result != 0 {
		return &RejectedError{Text: fmt.Sprintf("%s returned %d", abi.ExportConfigure, result)}
	}
	return nil
}

// startError says at which step an instance did not start.
type startError struct {
	step string
	err  error
}

func (e *startError) Error() string {
	return fmt.Sprintf("%v: %s: %v%s", ErrStart, e.step, e.err, e.advice())
}

func (e *startError) advice() string {
	if exit := (*wasi.Exit)(nil); errors.As(e.err, &exit) && e.step == "_start" {
		return ": a guest must go on after it has started: build it with -buildmode=c-shared, or as a reactor"
	}
	return ""
}

func (e *startError) Unwrap() []error { return []error{ErrStart, e.err} }
