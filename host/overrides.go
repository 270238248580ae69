package host

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hookhost/hookhost/store"
)

// pollEvery is how often a host asks the store for overrides, and so within
// what time one that was set anywhere holds everywhere.
const pollEvery = 2 * time.Second

// pollTimeout bounds one such question. It is in nobody's way, and the first
// one may bring many overrides.
const pollTimeout = time.Second

// overrides are those in the store, as it last told them. While the store is
// away they stay what they were.
type overrides struct {
	mu       sync.RWMutex
	revision string
	of       map[whose]store.Override
}

type whose struct{ app, user string }

// find gives the override of a user that holds in an app at a time. One for
// the app comes before one for all of them.
func (o *overrides) find(app, user string, now time.Time) (store.Override, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	for _, key := range []whose{{app, user}, {"", user}} {
		found, known := o.of[key]
		if known && (found.Until.IsZero() || now.Before(found.Until)) {
			return found, true
		}
	}
	return store.Override{}, false
}

// poll takes over what changed since the last time.
func (o *overrides) poll(ctx context.Context, s store.Store) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	o.mu.RLock()
	since := o.revision
	o.mu.RUnlock()
	changes, err := s.Overrides(ctx, since)
	if err != nil {
		return fmt.Errorf("overrides: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.revision = changes.Revision
	if changes.Whole || o.of == nil {
		o.of = make(map[whose]store.Override, len(changes.Changed))
	}
	for _, one := range changes.Changed {
		key := whose{one.App, one.User}
		if one.Plan == "" {
			delete(o.of, key)
		} else {
			o.of[key] = one
		}
	}
	return nil
}

// every does something at once and then again and again until the context is
// done.
func every(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		do()
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}
