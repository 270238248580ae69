package chain

import (
	"context"
	"sync"
	"time"
)

// Within bounds ctx like context.WithTimeout, but sets no timer before somebody
// waits for Done: a call of a stage is over long before, nearly always, and a
// guest is stopped by its own look at the clock.
func Within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	deadline := time.Now().Add(limit)
	if sooner, is := ctx.Deadline(); is && !sooner.After(deadline) {
		return ctx, func() {}
	}
	l := &limited{Context: ctx, deadline: deadline}
	return l, l.cancel
}

type limited struct {
	context.Context // the caller's
	deadline        time.Time

	mu    sync.Mutex
	over  bool
	timed context.Context // with a timer, once somebody waits
	stop  context.CancelFunc
}

func (l *limited) Deadline() (time.Time, bool) { return l.deadline, true }

func (l *limited) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timed == nil {
		l.timed, l.stop = context.WithDeadline(l.Context, l.deadline)
		if l.over {
			l.stop()
		}
	}
	return l.timed.Done()
}

func (l *limited) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.timed != nil && l.timed.Err() != nil:
		return l.timed.Err()
	case l.Context.Err() != nil:
		return l.Context.Err()
	case l.over:
		return context.Canceled
	case !time.Now().Before(l.deadline):
		return context.DeadlineExceeded
	}
	return nil
}

// Value asks the context with the timer, if there is one, so that contexts
// made from this one find their parent in it and need no goroutine.
func (l *limited) Value(key any) any {
	l.mu.Lock()
	from := l.timed
	l.mu.Unlock()
	if from == nil {
		from = l.Context
	}
	return from.Value(key)
}

func (l *limited) cancel() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.stop != nil {
		l.stop()
	}
}
