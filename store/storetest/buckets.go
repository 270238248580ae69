package storetest

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
)

var bucketRules = []rule{
	{"bucket/refilling makes it full and leaves reservations, leases and others alone", func(w *world) {
		b := every(time.Hour, 1, 100)
		for _, o := range []store.Owner{ann, bob} {
			w.admitAs("call", o, take("tokens", b, 60, reserved(time.Hour)), take("turn", b, 1))
		}
		require.NoError(w, w.store.Refill(w.ctx, ann, "tokens", "unknown"))
		assert.EqualValues(w, 100, w.balance(ann, "tokens", b))
		assert.EqualValues(w, 99, w.balance(ann, "turn", b))
		assert.EqualValues(w, 40, w.balance(bob, "tokens", b))
		assert.EqualValues(w, 80, w.settle("call", ann, "tokens", b, 80))
		require.NoError(w, w.store.Refill(w.ctx, ann))
		assert.EqualValues(w, 80, w.balance(ann, "tokens", b))
	}},
	{"bucket/a new one is full and a take charges it", func(w *world) {
		b := every(time.Second, 1, 5)
		assert.EqualValues(w, 5, w.balance(ann, "turn", b))
		assert.Equal(w, now(3), w.admit(ann, take("turn", b, 2)))
		assert.EqualValues(w, 3, w.balance(ann, "turn", b))
	}},
	{"bucket/units come back at the rate, up to the burst", func(w *world) {
		b := every(3*time.Second, 2, 5)
		w.admit(ann, take("turn", b, 5))
		for _, c := range []struct {
			at      time.Duration
			balance int64
		}{{0, 0}, {1499 * time.Millisecond, 0}, {1500 * time.Millisecond, 1}, {3 * time.Second, 2}, {7499 * time.Millisecond, 4}, {7500 * time.Millisecond, 5}, {time.Hour, 5}} {
			w.at(c.at)
			assert.Equal(w, c.balance, w.balance(ann, "turn", b), c.at)
		}
	}},
	{"bucket/no fraction is lost over many small steps", func(w *world) {
		b := every(7*time.Millisecond, 3, 1000)
		w.admit(ann, take("tokens", b, 1000))
		for range 1000 {
			w.clock.Advance(time.Millisecond)
			w.admit(ann, take("tokens", b, 1, within(time.Hour)))
		}
		assert.EqualValues(w, -572, w.balance(ann, "tokens", b), "1000 times 3/7 came and 1 went: -571.43, floored")
	}},
	{"bucket/a charge that is paid back in time is granted with the wait", func(w *world) {
		b := every(time.Second, 1, 5)
		w.admit(ann, take("turn", b, 5))
		assert.Equal(w, later(2*time.Second, -2), w.admit(ann, take("turn", b, 2, within(2*time.Second))))
		assert.Equal(w, later(3*time.Second, -3), w.admit(ann, take("turn", b, 1, within(3*time.Second))), "after those that wait already")
	}},
	{"bucket/a wait is rounded up to whole milliseconds", func(w *world) {
		b := every(time.Millisecond, 3, 10)
		w.admit(ann, take("tokens", b, 10))
		assert.Equal(w, refused(4*time.Millisecond, 0), w.admit(ann, take("tokens", b, 10)), "10/3 ms")
	}},
	{"bucket/a refusal changes nothing", func(w *world) {
		b := every(time.Second, 1, 5)
		w.admit(ann, take("turn", b, 5))
		for range 10 {
			assert.Equal(w, refused(time.Second, 0), w.admit(ann, take("turn", b, 3, within(2*time.Second))))
		}
		w.at(time.Second)
		assert.Equal(w, later(2*time.Second, -2), w.admit(ann, take("turn", b, 3, within(2*time.Second))))
	}},
	{"bucket/who comes back when told to is let in, and a millisecond before is not", func(w *world) {
		b := every(7*time.Second, 3, 10)
		w.admit(ann, take("turn", b, 10))
		d := w.admit(ann, take("turn", b, 4))
		assert.Equal(w, refused(9334*time.Millisecond, 0), d)
		w.at(d.Wait - time.Millisecond)
		assert.Equal(w, refused(time.Millisecond, 3), w.admit(ann, take("turn", b, 4)))
		w.at(d.Wait)
		assert.Equal(w, now(0), w.admit(ann, take("turn", b, 4)))
	}},
	{"bucket/what no wait helps is never, not refused", func(w *world) {
		b := every(time.Second, 1, 5)
		assert.Equal(w, never(5), w.admit(ann, take("turn", b, 6)))
		assert.Equal(w, never(5), w.admit(ann, take("turn", b, 8, within(2999*time.Millisecond))))
		assert.Equal(w, later(3*time.Second, -3), w.admit(ann, take("turn", b, 8, within(3*time.Second))))
		assert.Equal(w, refused(3*time.Second, -3), w.admit(ann, take("turn", b, 3, within(3*time.Second))), "it fits, but not yet")
	}},
	{"bucket/a cost of 0 looks", func(w *world) {
		b := every(time.Second, 1, 5)
		w.admit(ann, take("turn", b, 4))
		assert.Equal(w, now(1), w.admit(ann, take("turn", b, 0)))
		assert.Equal(w, later(2*time.Second, -2), w.admit(ann, take("turn", b, 3, within(2*time.Second))))
		assert.Equal(w, refused(2*time.Second, -2), w.admit(ann, take("turn", b, 0)), "a debt comes first")
		assert.EqualValues(w, -2, w.balance(ann, "turn", b))
	}},
	{"bucket/a clock that steps back neither grants nor takes", func(w *world) {
		b := every(time.Second, 1, 5)
		w.at(time.Hour)
		w.admit(ann, take("turn", b, 3))
		w.at(0)
		assert.Equal(w, now(1), w.admit(ann, take("turn", b, 1)))
		w.at(time.Hour)
		assert.EqualValues(w, 1, w.balance(ann, "turn", b))
		w.at(time.Hour + 2*time.Second)
		assert.EqualValues(w, 3, w.balance(ann, "turn", b))
	}},
	{"bucket/a new plan keeps the balance, at its own rate and below its own burst", func(w *world) {
		free, pro := every(time.Second, 1, 5), every(time.Second, 10, 50)
		w.admit(ann, take("turn", free, 3))
		assert.EqualValues(w, 2, w.balance(ann, "turn", pro))
		w.at(time.Second)
		assert.EqualValues(w, 12, w.balance(ann, "turn", pro))
		assert.Equal(w, now(11), w.admit(ann, take("turn", pro, 1)))
		assert.EqualValues(w, 5, w.balance(ann, "turn", free))
		assert.Equal(w, now(4), w.admit(ann, take("turn", free, 1)))
		assert.EqualValues(w, 4, w.balance(ann, "turn", pro), "what was above the smaller burst is gone")
	}},
	{"bucket/a new rate floors the fraction", func(w *world) {
		sevenths, thirds := every(7*time.Millisecond, 1, 5), every(3*time.Millisecond, 1, 5)
		w.admit(ann, take("turn", sevenths, 5))
		w.at(6 * time.Millisecond)
		w.admit(ann, take("turn", sevenths, 1, within(time.Second))) // -1 + 6/7
		assert.Equal(w, later(4*time.Millisecond, -2), w.admit(ann, take("turn", thirds, 1, within(time.Second))), "6/7 is 2/3: 1 1/3 is missing")
	}},
	{"bucket/one that is full again is as good as new", func(w *world) {
		small, large := every(time.Second, 1, 5), every(time.Second, 1, 50)
		w.admit(ann, take("turn", small, 3))
		w.at(2999 * time.Millisecond)
		assert.EqualValues(w, 4, w.balance(ann, "turn", large))
		w.at(3 * time.Second)
		assert.EqualValues(w, 50, w.balance(ann, "turn", large))
	}},
	{"bucket/room is demanded and not charged", func(w *world) {
		b := every(time.Second, 1, 5)
		w.admit(ann, take("tokens", b, 2))
		assert.Equal(w, store.Now, w.admit(ann, room("tokens", b, 3)).Kind)
		assert.Equal(w, refused(time.Second, 3), w.admit(ann, room("tokens", b, 4)))
		assert.Equal(w, never(3), w.admit(ann, room("tokens", b, 6)))
		assert.EqualValues(w, 3, w.balance(ann, "tokens", b))
	}},
}
