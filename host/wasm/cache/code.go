package cache

import (
	"context"
	"errors"
	"sync"

	"github.com/tetratelabs/wazero"
)

// Code is a compiled module, shared by all who compiled the same one: by the
// stages that it serves, and by those before and after a reload. Engine,
// Module and Notes do not change and are not to be closed.
type Code struct {
	Engine wazero.Runtime
	Module wazero.CompiledModule
	Notes  []byte // as Source.Rewrite gave them

	cache   *Cache
	key     key
	holders int // guarded by Cache.mu

	mu     sync.Mutex // held while compiling
	native wazero.CompilationCache

	link   sync.Once
	linked error
}

// Link puts into the engine what the module imports, at the first call; later
// ones tell what came of it. As the engine is shared, a host function has to
// find whom it works for in the context of the call.
func (c *Code) Link(link func() error) error {
	c.link.Do(func() { c.linked = link() })
	return c.linked
}

// Close lets go of the code. It is freed with the last holder, with all that
// was instantiated from it.
func (c *Code) Close(ctx context.Context) error {
	if !c.cache.release(c) || c.native == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	return errors.Join(c.Module.Close(ctx), c.Engine.Close(ctx), c.native.Close(ctx))
}

// compile looks on the disk first. What is wrong with the disk is said once
// and is otherwise no matter.
func (c *Code) compile(ctx context.Context, src Source) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.native != nil {
		return nil
	}
	unread := c.find(ctx)
	if c.native != nil {
		return nil
	}
	done, err := c.cache.turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	defer c.cache.slow(src)()
	rewritten, err := src.rewrite()
	if err != nil {
		return err
	}
	if unread != nil {
		return c.makeInMemory(ctx, rewritten, unread)
	}
	return c.make(ctx, rewritten)
}

// find takes the code from its entry on disk. An entry that is there and is
// not whole is deleted. The error is that of one that could not be read, which
// may be whole.
func (c *Code) find(ctx context.Context) error {
	if c.cache.folder == "" {
		return nil
	}
	e := c.cache.entry(c.key)
	rewritten, err := e.read()
	if err == nil {
		err = c.startIn(ctx, e, rewritten)
	}
	switch {
	case err == nil:
		e.touch()
	case errors.Is(err, errDamaged):
		e.discard()
	case !errors.Is(err, errNoEntry):
		return err
	}
	return nil
}

// makeInMemory leaves the entry that could not be read to the next start.
func (c *Code) makeInMemory(ctx context.Context, rewritten Rewritten, unread error) error {
	if err := c.start(ctx, wazero.NewCompilationCache(), rewritten); err != nil {
		return err
	}
	c.cache.warn("a compiled module cannot be read: it is compiled again", unread)
	return nil
}

// make compiles into a new entry and, if that fails, without the disk: then it
// is known whether it was the module. After the first time that it was the
// disk nothing is written to it any more.
func (c *Code) make(ctx context.Context, rewritten Rewritten) error {
	var disk error
	if !c.cache.failed.Load() {
		disk = c.build(ctx, rewritten)
	}
	if c.native == nil {
		if err := c.start(ctx, wazero.NewCompilationCache(), rewritten); err != nil {
			return err
		}
	}
	if disk != nil {
		c.cache.giveUp(disk)
	}
	return nil
}

// build compiles into a new entry and puts that in its place. There may be
// code although it fails.
func (c *Code) build(ctx context.Context, rewritten Rewritten) error {
	e, err := c.cache.newEntry()
	if err != nil {
		return err
	}
	defer hold(string(e))()
	defer e.remove() // gone already if it went to its place
	if err := c.startIn(ctx, e, rewritten); err != nil {
		return err
	}
	if err := e.seal(rewritten); err != nil {
		return err
	}
	if err := e.publish(c.cache.entry(c.key)); err != nil {
		return err
	}
	c.cache.sweep()
	return nil
}

func (c *Code) startIn(ctx context.Context, e entry, rewritten Rewritten) error {
	native, err := wazero.NewCompilationCacheWithDir(e.code())
	if err != nil {
		return err
	}
	return c.start(ctx, native, rewritten)
}

// start makes the engine. If that fails nothing is left of it.
func (c *Code) start(ctx context.Context, native wazero.CompilationCache, rewritten Rewritten) error {
	engine := wazero.NewRuntimeWithConfig(ctx, c.cache.options.Config.WithCompilationCache(native))
	module, err := engine.CompileModule(withWorkers(ctx), rewritten.Module)
	if err != nil {
		_, _ = engine.Close(ctx), native.Close(ctx) // there is nothing in them that could fail
		return err
	}
	c.native, c.Engine, c.Module, c.Notes = native, engine, module, rewritten.Notes
	return nil
}
