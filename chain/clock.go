package chain

import (
	"context"
	"time"
)

// Clock is the time that waits and timings are measured on. Stage timeouts
// are not: they bound real work.
type Clock interface {
	Now() time.Time
	// Sleep returns after d, or with the context's error once it is done.
	Sleep(ctx context.Context, d time.Duration) error
}

// WallClock is the real time.
type WallClock struct{}

// Now is time.Now.
func (WallClock) Now() time.Time { return time.Now() }

// Sleep waits on a timer.
func (WallClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
