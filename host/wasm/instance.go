package wasm

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/hostfn"
)

// instance is one started guest. It serves one call at a time. After an error
// it must not be called again.
type instance interface {
	call(ctx context.Context, c *hostfn.Call) (packed uint64, err error)
	// outOfMemory reports whether the last call asked for more than it may have.
	outOfMemory() bool
	close(ctx context.Context)
}

// plain is an instance as wazero makes it: stopped by closing it, never reset.
type plain struct {
	module api.Module
	enter  api.Function
	memory *linear
	output *output
}

type callKey struct{}

// linkHost puts the functions that the module imports into the engine.
func (s *Stage) linkHost(ctx context.Context) error {
	imported := map[string]bool{}
	for _, f := range s.code.Module.ImportedFunctions() {
		module, name, _ := f.Import()
		imported[module] = true
		imported[module+"."+name] = true
	}
	if imported[wasi_snapshot_preview1.ModuleName] {
		if _, err := wasi_snapshot_preview1.Instantiate(ctx, s.code.Engine); err != nil {
			return err
		}
	}
	builders := map[string]wazero.HostModuleBuilder{}
	for _, f := range hostfn.Table() {
		if !imported[f.Module+"."+f.Name] {
			continue
		}
		if builders[f.Module] == nil {
			builders[f.Module] = s.code.Engine.NewHostModuleBuilder(f.Module)
		}
		sig := signatureOfImport(f)
		builders[f.Module].NewFunctionBuilder().WithGoModuleFunction(
			api.GoModuleFunc(func(ctx context.Context, m api.Module, stack []uint64) {
				f.Call(ctx.Value(callKey{}).(*hostfn.Call), m.Memory(), stack)
			}), sig.params, sig.results).Export(f.Name)
	}
	for _, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return err
		}
	}
	return nil
}

// start makes an instance: its start function, _initialize and configure run.
func (s *Stage) start(ctx context.Context) (*plain, error) {
	c := s.services.NewCall(ctx, &s.facts, nil)
	in := &plain{memory: &linear{limit: s.cfg.Memory}, output: &output{call: c}}
	defer in.output.end()
	ctx = experimental.WithMemoryAllocator(context.WithValue(ctx, callKey{}, c), in.memory)
	fail := func(step string, err error) (*plain, error) {
		if in.module != nil {
			in.close(ctx)
		}
		return nil, &startError{step: step, err: failure(ctx, ctx, err, in.memory.refused, c.StoreAway())}
	}
	var err error
	in.module, err = s.code.Engine.InstantiateModule(ctx, s.code.Module, wazero.NewModuleConfig().
		WithName(""). // any number of them
		WithStartFunctions().
		WithStdout(in.output).WithStderr(in.output).
		WithSysWalltime().WithSysNanotime().
		WithRandSource(rand.Reader))
	if err != nil {
		return fail("start", err)
	}
	if step, run := s.initializer(in.module); run != nil {
		if _, err := run.Call(ctx); err != nil {
			return fail(step, err)
		}
	}
	if configure := in.module.ExportedFunction(abi.ExportConfigure); configure != nil {
		result, err := configure.Call(ctx)
		if err != nil {
			return fail("configure", err)
		}
		if err := rejected(c, api.DecodeI32(result[0])); err != nil {
			in.close(ctx)
			return nil, err
		}
	}
	in.enter = in.module.ExportedFunction(abi.ExportCall)
	return in, nil
}

// initializer finds what sets up a guest's memory: _initialize of a reactor,
// or _start where that is all there is. If it exits, the module is over.
func (s *Stage) initializer(m api.Module) (string, api.Function) {
	for _, name := range []string{abi.ExportInitialize, "_start"} {
		if f := m.ExportedFunction(name); f != nil {
			return name, f
		}
	}
	return "", nil
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
	if exit := (*exitError)(nil); errors.As(e.err, &exit) && e.step == "_start" {
		return ": a guest must go on after it has started: build it with -buildmode=c-shared, or as a reactor"
	}
	return ""
}

func (e *startError) Unwrap() []error { return []error{ErrStart, e.err} }

func (in *plain) call(ctx context.Context, c *hostfn.Call) (uint64, error) {
	in.output.call, in.memory.refused = c, false
	defer in.output.end()
	stack := []uint64{uint64(c.Hook())}
	if err := in.enter.CallWithStack(context.WithValue(ctx, callKey{}, c), stack); err != nil {
		return 0, err
	}
	return stack[0], nil
}

func (in *plain) outOfMemory() bool { return in.memory.refused }

func (in *plain) close(ctx context.Context) { _ = in.module.Close(context.WithoutCancel(ctx)) }

// output takes what a guest prints, line by line.
type output struct {
	call *hostfn.Call
	line bytes.Buffer
}

const maxPartialLine = 8 << 10

func (o *output) Write(p []byte) (int, error) {
	for _, b := range p {
		switch {
		case b == '\n':
			o.flush()
		case o.line.Len() < maxPartialLine:
			o.line.WriteByte(b)
		}
	}
	return len(p), nil
}

func (o *output) flush() {
	o.call.WriteLine(slog.LevelInfo, o.line.String())
	o.line.Reset()
}

// end writes the last line when a call is over.
func (o *output) end() {
	if o.line.Len() > 0 {
		o.flush()
	}
	o.call = nil
}
