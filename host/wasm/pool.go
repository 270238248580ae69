package wasm

import (
	"context"
	"sync"
)

// pool lends instances, each to one call at a time, and makes them when they
// are needed.
type pool struct {
	create func(context.Context) (instance, error)
	slots  chan struct{}

	mu     sync.Mutex
	idle   []instance
	closed bool
}

func newPool(size int, create func(context.Context) (instance, error)) *pool {
	return &pool{create: create, slots: make(chan struct{}, size)}
}

// get waits for a slot until ctx is done, which it says with errNoSlot.
func (p *pool) get(ctx context.Context) (instance, error) {
	select {
	case p.slots <- struct{}{}:
	default:
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, errNoSlot
		}
	}
	if in := p.pop(); in != nil {
		return in, nil
	}
	in, err := p.create(ctx)
	if err != nil {
		<-p.slots
		return nil, err
	}
	return in, nil
}

func (p *pool) pop() instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	in := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	return in
}

// put takes an instance back. One that cannot be used again is thrown away.
func (p *pool) put(ctx context.Context, in instance, good bool) {
	defer func() { <-p.slots }()
	p.mu.Lock()
	keep := good && !p.closed
	if keep {
		p.idle = append(p.idle, in)
	}
	p.mu.Unlock()
	if !keep {
		in.close(ctx)
	}
}

func (p *pool) close(ctx context.Context) {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, in := range idle {
		in.close(ctx)
	}
}
