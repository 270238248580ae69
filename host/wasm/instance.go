package wasm

import (
	"context"

	"github.com/tetratelabs/wazero/api"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/host/wasm/image"
	"github.com/hookhost/hookhost/host/wasm/meter"
	"github.com/hookhost/hookhost/host/wasm/wasi"
)

// instance is one started guest. It serves one call at a time.
type instance interface {
	// call runs the guest. Its error is a *chain.Failure.
	call(ctx context.Context, c *hostfn.Call) (packed uint64, err error)
	// burned is the fuel of the last call.
	burned() int64
	// used reports whether the instance has to be reset before the next call.
	used() bool
	// reset puts the instance back to its image. Where it cannot it says why.
	reset() discardReason
	// held is how many bytes of memory the instance has to itself.
	held() uint64
	close()
}

// discardReason is why an instance is closed. Empty, it is not.
type discardReason string

const (
	discardGrown  discardReason = "grown"  // its memory is larger than the image
	discardBroken discardReason = "broken" // the memory could not be put back
	discardIdle   discardReason = "idle"
	discardUnheld discardReason = "unheld" // it has state that an image does not hold
)

// sharedCalls is how many calls an instance serves before it is reset where
// they are not isolated from each other.
const sharedCalls = 1000

// guest is an instance in the sandbox.
type guest struct {
	stage  *Stage
	module api.Module
	memory *image.Memory
	state  []api.MutableGlobal // what the image holds beside the memory

	enter       api.Function
	fuel, depth api.MutableGlobal
	budget      budget
	wasi        wasi.Host
	output      output
	host        *hostfn.Call // the call that is running

	calls  int // since the last reset
	failed bool
}

func (g *guest) call(ctx context.Context, c *hostfn.Call) (uint64, error) {
	var stack [1]uint64
	stack[0] = uint64(c.Hook())
	g.calls++
	if err := g.run(ctx, c, g.enter, stack[:]); err != nil {
		return 0, err
	}
	return stack[0], nil
}

// run calls a function of the guest within the limits. Its error is a
// *chain.Failure.
func (g *guest) run(ctx context.Context, c *hostfn.Call, f api.Function, stack []uint64) error {
	g.host, g.output.call = c, c
	g.memory.Begin()
	g.depth.Set(callDepth)
	g.fuel.Set(uint64(g.budget.begin(ctx)))
	err := f.CallWithStack(context.WithValue(ctx, guestKey{}, g), stack)
	g.budget.end(int64(g.fuel.Get()))
	g.output.end()
	g.host = nil
	if err != nil {
		g.failed = true
		return failure(err, g.memory.Refused(), c.StoreAway())
	}
	return nil
}

// burn takes fuel for what the host does.
func (g *guest) burn(fuel int64) { g.fuel.Set(uint64(int64(g.fuel.Get()) - fuel)) }

func (g *guest) burned() int64 { return g.budget.fuel }

func (g *guest) used() bool {
	return g.failed || !g.stage.cfg.Shared || g.calls >= sharedCalls
}

func (g *guest) reset() discardReason {
	image := g.stage.image
	switch {
	case image == nil:
		return discardUnheld
	case g.memory.Grown():
		return discardGrown
	case g.memory.Reset() != nil:
		return discardBroken
	}
	for i, v := range image.globals {
		g.state[i].Set(v)
	}
	if g.failed {
		// Its stack may have grown as deep as it may be.
		g.enter = g.module.ExportedFunction(abi.ExportCall)
	}
	g.calls, g.failed = 0, false
	return ""
}

func (g *guest) held() uint64 { return g.memory.Held() }

func (g *guest) close() { _ = g.module.Close(context.Background()) } // of nothing that could fail

// bind finds what the host uses of the module.
func (g *guest) bind() {
	g.enter = g.module.ExportedFunction(abi.ExportCall)
	g.fuel = g.module.ExportedGlobal(meter.Fuel).(api.MutableGlobal)
	g.depth = g.module.ExportedGlobal(meter.Depth).(api.MutableGlobal)
	for _, name := range g.stage.notes.Globals {
		g.state = append(g.state, g.module.ExportedGlobal(name).(api.MutableGlobal))
	}
}
