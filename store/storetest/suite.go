// Package storetest is what every engine of store.Store has to pass. An
// engine's test is one call of Run.
package storetest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hookhost/hookhost/store"
)

// Engine is an empty store and the clock that it goes by.
type Engine struct {
	Store store.Store
	Clock Clock
}

// Clock is a clock that a test sets. It may go back.
type Clock interface {
	Now() time.Time
	Set(t time.Time)
	Advance(d time.Duration)
}

// rule is one thing that an engine promises.
type rule struct {
	name  string
	check func(w *world)
}

// Run checks every rule, each on an engine of its own.
func Run(t *testing.T, open func(t *testing.T) Engine) {
	rules := slices.Concat(
		numberRules, bucketRules, admissionRules, reservationRules, leaseRules, keyRules,
		claimRules, valueRules, usageRules, activityRules, overrideRules, averageRules, contextRules, concurrencyRules, caseRules, sceneRules, modelRules,
	)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) { r.check(newWorld(t, open(t))) })
	}
}

// NewClock makes a clock that stands still until it is set.
func NewClock() *ManualClock { return &ManualClock{now: start} }

// ManualClock is a Clock for engines that take any.
type ManualClock struct {
	mu  sync.Mutex
	now time.Time
}

// Now implements Clock.
func (c *ManualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set implements Clock.
func (c *ManualClock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// Advance implements Clock.
func (c *ManualClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
