// Package cache compiles modules, each once however many stages it serves,
// and keeps what came of it on disk for the next start.
//
// An entry on disk is a folder named after the module's SHA-256, inside one
// that is named after all else that the code depends on: the version of the
// rewriter, wazero's, the platform and the processor. It is built in a folder
// of its own and renamed into place, so that any number of processes may share
// the cache: none sees half an entry, and of two that build the same one both
// go on with what they built. Every file of an entry is checked against a sum
// before it is used; an entry that fails is deleted and built again.
//
// The sums find damage, not malice: who may write an entry may run code in
// this process. So entries in a folder that others may write to are not used.
//
// Where the disk cannot be used modules are compiled into memory, and one
// warning says so.
package cache

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

// Options say where a cache is and what it compiles with.
type Options struct {
	// Dir is the folder on disk; it is made when it is not there. Empty means
	// that there is none.
	Dir string
	// Version is that of Source.Rewrite and of Config: entries of another one
	// are not used.
	Version string
	// Config is what the code is compiled for. nil is wazero's own.
	Config wazero.RuntimeConfig
	// Log gets the warning. nil is slog.Default().
	Log *slog.Logger
	// Slow is told of a module that takes longer than SlowAfter to compile,
	// while it does, with its size in bytes; of one at a time. nil logs it.
	Slow func(name string, size int)
	// Warning is told, once, what is wrong with the disk. nil logs it.
	Warning func(what string, err error)
}

// SlowAfter is when compiling is long enough for somebody to wonder.
const SlowAfter = time.Second

// Cache compiles modules and keeps them. It may be used by many goroutines at
// once.
type Cache struct {
	options Options
	folder  string // of the entries; empty if there is none
	telling sync.Mutex
	turns   chan struct{} // one for each module that is compiled at the same time
	failed  atomic.Bool   // the disk could not be written: it is only read from then on
	warned  atomic.Bool   // somebody knows about the disk

	mu    sync.Mutex
	codes map[key]*Code
}

type key = [sha256.Size]byte

func keyOf(module []byte) key { return sha256.Sum256(module) }

// New makes a cache. It does not touch the disk yet.
func New(o Options) *Cache {
	if o.Config == nil {
		o.Config = wazero.NewRuntimeConfig()
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	findVersion()
	c := &Cache{options: o, turns: make(chan struct{}, runtime.GOMAXPROCS(0)), codes: map[key]*Code{}}
	if o.Dir != "" {
		c.folder = filepath.Join(o.Dir, generation(o.Version))
	}
	return c
}

// Source is a module to be compiled.
type Source struct {
	Name   string // for people: the name of its file
	Module []byte
	// Rewrite turns the module into what is compiled. It must come to the same
	// for the same module and Options.Version. nil leaves the module as it is.
	Rewrite func(module []byte) (Rewritten, error)
}

// Rewritten is what is compiled instead of a module, and what the rewriter has
// to say about it.
type Rewritten struct {
	Module []byte
	Notes  []byte
}

func (s Source) rewrite() (Rewritten, error) {
	if s.Rewrite == nil {
		return Rewritten{Module: s.Module}, nil
	}
	return s.Rewrite(s.Module)
}

// Compile gives the code of a module: that which is in use already, that on
// disk, or what it compiles. The caller closes it. Errors are those of
// Source.Rewrite, of wazero about the module, or of the context: the disk is
// never one.
func (c *Cache) Compile(ctx context.Context, src Source) (*Code, error) {
	code := c.acquire(keyOf(src.Module))
	if err := code.compile(ctx, src); err != nil {
		_ = code.Close(ctx) // there is nothing in it that could fail
		return nil, err
	}
	return code, nil
}

// InUse counts the modules whose code is held by somebody.
func (c *Cache) InUse() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.codes)
}

func (c *Cache) acquire(k key) *Code {
	c.mu.Lock()
	defer c.mu.Unlock()
	code := c.codes[k]
	if code == nil {
		code = &Code{cache: c, key: k}
		c.codes[k] = code
	}
	code.holders++
	return code
}

// release reports whether that was the last holder.
func (c *Cache) release(code *Code) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	code.holders--
	if code.holders > 0 {
		return false
	}
	delete(c.codes, code.key)
	return true
}

// giveUp ends writing to the disk, and says why.
func (c *Cache) giveUp(err error) {
	c.failed.Store(true)
	c.warn("compiled modules are not kept: the next start compiles them again", err)
}

// warn says what is wrong with the disk, once.
func (c *Cache) warn(what string, err error) {
	if !c.warned.CompareAndSwap(false, true) {
		return
	}
	if c.options.Warning != nil {
		c.options.Warning(what, err)
	} else {
		c.options.Log.Warn(what, "folder", c.options.Dir, "error", err)
	}
}

// turn waits until a module may be compiled: each takes all cores and much
// memory. The caller gives it back.
func (c *Cache) turn(ctx context.Context) (done func(), err error) {
	select {
	case c.turns <- struct{}{}:
		return func() { <-c.turns }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// slow tells of a module if compiling it takes long. The caller ends the wait.
func (c *Cache) slow(src Source) (done func() bool) {
	return time.AfterFunc(SlowAfter, func() {
		c.telling.Lock()
		defer c.telling.Unlock()
		if c.options.Slow != nil {
			c.options.Slow(src.Name, len(src.Module))
			return
		}
		c.options.Log.Info("compiling", "module", src.Name, "bytes", len(src.Module))
	}).Stop
}

// withWorkers has wazero compile the functions of a module on all cores.
func withWorkers(ctx context.Context) context.Context {
	return experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0))
}
