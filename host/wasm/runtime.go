// Package wasm is the sandbox: it loads a module, checks what it asks for,
// and runs it as a stage of the chain.
package wasm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/host/wasm/cache"
	"github.com/hookhost/hookhost/host/wasm/image"
	"github.com/hookhost/hookhost/host/wasm/meter"
)

// Runtime loads modules and compiles them, each once however many stages it
// serves.
type Runtime struct {
	log     *slog.Logger
	cache   *cache.Cache
	metrics *metrics
	// newMemory makes the memory of a stage's first instance.
	newMemory func(limit uint64) (*image.Memory, error)
}

// Options say how a runtime works. The zero value keeps compiled modules in
// memory.
type Options struct {
	// CacheDir keeps compiled modules for the next start. Empty, or one that
	// cannot be written, means in memory, and a warning.
	CacheDir string
	// Log gets what operators read. nil is slog.Default().
	Log *slog.Logger
	// Compiling is told of a module that takes longer than a second to compile,
	// while it does, with its size in bytes. nil logs it.
	Compiling func(module string, size int)
	// CacheWarning is told, once, that compiled modules are not kept or cannot
	// be read, and why. nil logs it.
	CacheWarning func(what string, err error)
}

// New makes a runtime.
func New(o Options) *Runtime {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	compiled := cache.New(cache.Options{
		Dir: o.CacheDir, Version: meter.Version, Log: o.Log, Slow: o.Compiling, Warning: o.CacheWarning,
		Config: wazero.NewRuntimeConfig().WithDebugInfoEnabled(false),
	})
	return &Runtime{log: o.Log, cache: compiled, metrics: newMetrics(o.Log), newMemory: image.New}
}

// Config is one stage as the manifest has it.
type Config struct {
	Name    string
	File    string // the module's, for people
	Module  []byte
	Grants  []abi.Grant
	Config  []hostfn.Setting
	Secrets map[string][]byte
	Memory  uint64        // bytes an instance may have; 0 is 32 MiB
	Pool    int           // instances at most; 0 is 8
	Timeout time.Duration // of one call, the wait for an instance included; 0 is 250 ms
	Shadow  bool
	Local   bool // limits go on in this process while the store is away
	Output  bool // what the guest logs and prints is written to the log
	// Shared lets a call find what the calls before it left in the guest's
	// memory. Otherwise an instance is put back to its image after each call.
	Shared bool
}

func (c Config) withDefaults() Config {
	if c.Memory == 0 {
		c.Memory = 32 << 20
	}
	if c.Pool <= 0 {
		c.Pool = 8
	}
	if c.Timeout <= 0 {
		c.Timeout = 250 * time.Millisecond
	}
	return c
}

// loadTimeout bounds the start of the first instance: its start function,
// _initialize and configure. Compiling is not bounded.
const loadTimeout = 10 * time.Second

// Load compiles and checks a module and starts its first instance. All its
// errors are a *LoadError.
func (r *Runtime) Load(ctx context.Context, cfg Config, services *hostfn.Services) (*Stage, error) {
	stage, err := r.load(ctx, cfg.withDefaults(), services)
	if err != nil {
		return nil, &LoadError{Stage: cfg.Name, Err: err}
	}
	return stage, nil
}

func (r *Runtime) load(ctx context.Context, cfg Config, services *hostfn.Services) (_ *Stage, err error) {
	code, err := r.compile(ctx, cfg.File, cfg.Module)
	if err != nil {
		return nil, err
	}
	s, err := r.newStage(cfg, services, code)
	if err != nil {
		return nil, errors.Join(err, code.Close(ctx))
	}
	defer func() {
		if err != nil {
			_ = s.Close(ctx)
		}
	}()
	if err := s.check(); err != nil {
		return nil, err
	}
	if err := code.Link(func() error { return s.linkHost(ctx) }); err != nil {
		return nil, err
	}
	if err := s.first(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// compile gives the code of a module, which is shared by all stages of it.
func (r *Runtime) compile(ctx context.Context, name string, module []byte) (*cache.Code, error) {
	if err := checkMagic(module); err != nil {
		return nil, err
	}
	code, err := r.cache.Compile(ctx, cache.Source{Name: name, Module: module, Rewrite: rewrite})
	switch {
	case err == nil:
		return code, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
}

// notes are what is kept of a rewritten module beside its code.
type notes struct {
	Globals []string    // that an image holds
	Unheld  []meter.Use // of state that it does not

	Tables, Variables int
	Elements          uint64 // of the tables
}

// rewrite makes a module one that can be stopped and put back.
func rewrite(module []byte) (cache.Rewritten, error) {
	r, err := meter.Rewrite(module)
	if err != nil {
		return cache.Rewritten{}, err
	}
	kept, err := json.Marshal(notes{r.Globals, r.Unheld, r.Tables, r.Variables, r.Elements})
	return cache.Rewritten{Module: r.Module, Notes: kept}, err
}
