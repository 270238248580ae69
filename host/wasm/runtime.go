// Package wasm is the sandbox: it loads a module, checks what it asks for,
// and runs it as a stage of the chain.
package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/hostfn"
)

// Runtime compiles modules, each once however many stages it serves.
type Runtime struct {
	dir string
	log *slog.Logger

	mu    sync.Mutex
	codes map[[sha256.Size]byte]*code
}

// New makes a runtime that keeps compiled modules in dir. Where that is empty
// or cannot be written they are kept in memory. A nil log is slog.Default.
func New(dir string, log *slog.Logger) *Runtime {
	if log == nil {
		log = slog.Default()
	}
	findVersion()
	return &Runtime{dir: dir, log: log, codes: map[[sha256.Size]byte]*code{}}
}

// findVersion has wazero look up its own version, which it keeps in a
// variable without a lock: two modules that are compiled at once would race
// for it.
var findVersion = sync.OnceFunc(func() {
	ctx := context.Background()
	_ = wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler()).Close(ctx)
})

// Config is one stage as the manifest has it.
type Config struct {
	Name    string
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
	if err := checkMagic(cfg.Module); err != nil {
		return nil, err
	}
	code := r.acquire(keyOf(cfg.Module))
	s := newStage(cfg, services, r.log, func() { r.release(code) })
	defer func() {
		if err != nil {
			_ = s.Close(ctx)
		}
	}()
	if s.engine, s.module, err = r.compile(ctx, code, cfg.Module); err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	if err := s.linkHost(ctx); err != nil {
		return nil, err
	}
	if err := s.first(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func keyOf(module []byte) [sha256.Size]byte { return sha256.Sum256(module) }

func (r *Runtime) acquire(key [sha256.Size]byte) *code {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.codes[key]
	if c == nil {
		c = &code{key: key}
		r.codes[key] = c
	}
	c.refs++
	return c
}

func (r *Runtime) release(c *code) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.refs--
	if c.refs > 0 {
		return
	}
	delete(r.codes, c.key)
	if c.cache != nil {
		_ = c.cache.Close(context.Background()) // frees memory, never fails
	}
}

// compile gives every stage an engine of its own on the module's shared code.
func (r *Runtime) compile(ctx context.Context, c *code, module []byte) (wazero.Runtime, wazero.CompiledModule, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cache != nil {
		return compileWith(ctx, c.cache, module)
	}
	if engine, compiled, ok := r.compileOnDisk(ctx, c, module); ok {
		return engine, compiled, nil
	}
	c.cache = wazero.NewCompilationCache()
	return compileWith(ctx, c.cache, module)
}

// compileOnDisk reports false for whatever goes wrong: without the disk it is
// known whether it was the module.
func (r *Runtime) compileOnDisk(ctx context.Context, c *code, module []byte) (wazero.Runtime, wazero.CompiledModule, bool) {
	if r.dir == "" {
		return nil, nil, false
	}
	f := folder(filepath.Join(r.dir, "wazero-"+builtWith(), hex.EncodeToString(c.key[:])))
	cache, fresh, err := f.open()
	if err != nil {
		r.log.Warn("module cache not usable: compiling in memory", "error", err)
		return nil, nil, false
	}
	engine, compiled, err := compileWith(ctx, cache, module)
	if err == nil && fresh {
		err = f.seal()
	}
	if err != nil {
		if engine != nil {
			_ = engine.Close(ctx)
		}
		_ = cache.Close(ctx)
		return nil, nil, false
	}
	c.cache = cache
	return engine, compiled, true
}
