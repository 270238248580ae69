package storetest

import (
	"context"
	"math"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
)

var admissionRules = []rule{
	{"admit/all of the items or none", func(w *world) {
		turn, tokens, runs := every(time.Second, 1, 5), every(time.Second, 10, 100), store.Cap{Max: 1, Expires: time.Minute}
		all := func(run string, tokenCost int64) []store.Item {
			return []store.Item{take("turn", turn, 1), take("tokens", tokens, tokenCost, reserved(time.Hour)), acquire("runs", runs, run)}
		}
		expect := func(turns, left, held int64) {
			w.Helper()
			assert.Equal(w, turns, w.balance(ann, "turn", turn))
			assert.Equal(w, left, w.balance(ann, "tokens", tokens))
			assert.Equal(w, held, w.held(ann, "runs"))
		}
		assert.Equal(w, by(1, never(100)), w.admitAs("much", ann, all("run-1", 101)...))
		expect(5, 100, 0)
		w.settleUnknown("much", ann, "tokens", tokens, 1)

		assert.Equal(w, now(10), w.admit(ann, all("run-1", 90)...))
		expect(4, 10, 1)

		assert.Equal(w, by(2, refused(time.Minute, 0)), w.admit(ann, all("run-2", 10)...))
		expect(4, 10, 1)

		assert.Equal(w, by(1, refused(time.Second, 10)), w.admit(ann, all("run-1", 20)...))
		expect(4, 10, 1)
	}},
	{"admit/the worst item decides: never, then refused, then later; of equals the longest wait, then the first", func(w *world) {
		b := every(time.Second, 1, 5)
		w.admit(ann, take("a", b, 5), take("b", b, 5), take("c", b, 4))
		second, minute := within(time.Second), within(time.Minute)
		assert.Equal(w, by(2, never(1)), w.admit(ann, take("a", b, 1), take("b", b, 5), take("c", b, 6)))
		assert.Equal(w, by(1, refused(5*time.Second, 0)), w.admit(ann, take("a", b, 1), take("b", b, 5), take("c", b, 2)))
		assert.Equal(w, by(2, refused(time.Second, 1)), w.admit(ann, take("a", b, 5, minute), take("b", b, 5, minute), take("c", b, 2)))
		assert.Equal(w, by(0, refused(time.Second, 0)), w.admit(ann, take("a", b, 1), take("b", b, 1)))
		assert.Equal(w, by(1, later(time.Second, -1)), w.admit(ann, take("c", b, 1), take("a", b, 1, second), take("b", b, 1, second)))
	}},
	{"admit/waits too long to tell are equal, so the first decides", func(w *world) {
		slow := every((1<<43)*time.Millisecond, 1, store.MaxUnits)
		w.admit(ann, take("a", slow, store.MaxUnits), take("b", slow, store.MaxUnits))
		assert.Equal(w, refused(math.MaxInt64/time.Millisecond*time.Millisecond, 0),
			w.admit(ann, take("a", slow, 900_000), take("b", slow, 1_000_000)))
	}},
	{"admit/when nothing was in the way the balance is the last charged bucket's", func(w *world) {
		b := every(time.Second, 1, 5)
		assert.Equal(w, now(3), w.admit(ann, take("a", b, 1), take("b", b, 2), room("c", b, 1),
			acquire("runs", store.Cap{Max: 1, Expires: time.Minute}, "run")))
	}},
	{"admit/an id that comes again gets the same decision and is charged once", func(w *world) {
		b := every(time.Second, 1, 5)
		granted := []store.Item{take("turn", b, 3, reserved(time.Hour))}
		first := w.admitAs("a", ann, granted...)
		assert.Equal(w, now(2), first)
		again := []store.Item{take("turn", b, 3)}
		refusal := w.admitAs("b", ann, again...)
		assert.Equal(w, refused(time.Second, 2), refusal)

		w.clock.Advance(store.Remembered - time.Millisecond)
		assert.Equal(w, first, w.admitAs("a", ann, granted...))
		assert.Equal(w, refusal, w.admitAs("b", ann, again...))
		assert.EqualValues(w, 5, w.balance(ann, "turn", b))
		assert.EqualValues(w, 5, w.settle("a", ann, "turn", b, 0), "the reservation is the first one's")
	}},
	{"admit/the same id of another owner is another admission", func(w *world) {
		b := every(time.Second, 1, 5)
		w.admitAs("a", ann, take("turn", b, 3))
		assert.Equal(w, now(4), w.admitAs("a", bob, take("turn", b, 1)))
	}},
}

var reservationRules = []rule{
	{"reservation/settling replaces the charge by what was used, once", func(w *world) {
		b := every(time.Hour, 1, 100)
		w.admitAs("a", ann, take("tokens", b, 60, reserved(time.Hour)))
		assert.EqualValues(w, 75, w.settle("a", ann, "tokens", b, 25))
		assert.EqualValues(w, 75, w.settle("a", ann, "tokens", b, 25), "repeated")
		assert.EqualValues(w, 75, w.settle("a", ann, "tokens", b, 90), "repeated with another number")
		w.clock.Advance(store.Remembered - time.Millisecond)
		assert.EqualValues(w, 75, w.settle("a", ann, "tokens", b, 0), "given back after it was settled")
	}},
	{"reservation/giving back is settling with 0, once", func(w *world) {
		b := every(time.Hour, 1, 100)
		w.admitAs("a", ann, take("tokens", b, 60, reserved(time.Hour)))
		w.admit(ann, take("tokens", b, 10))
		assert.EqualValues(w, 90, w.settle("a", ann, "tokens", b, 0))
		assert.EqualValues(w, 90, w.settle("a", ann, "tokens", b, 0))
	}},
	{"reservation/settling goes below zero and never above the burst", func(w *world) {
		b := every(time.Second, 1, 100)
		w.admitAs("a", ann, take("tokens", b, 60, reserved(time.Hour)))
		w.at(30 * time.Second)
		assert.EqualValues(w, 100, w.settle("a", ann, "tokens", b, 0))
		w.admitAs("b", ann, take("tokens", b, 60, reserved(time.Hour)))
		assert.EqualValues(w, -400, w.settle("b", ann, "tokens", b, 500))
	}},
	{"reservation/a charge of 0 can be kept open", func(w *world) {
		b := every(time.Hour, 1, 100)
		assert.Equal(w, now(100), w.admitAs("a", ann, take("tokens", b, 0, reserved(time.Hour))))
		assert.EqualValues(w, 70, w.settle("a", ann, "tokens", b, 30))
	}},
	{"reservation/one that expired stays charged and is unknown", func(w *world) {
		b := every(time.Hour, 1, 100)
		w.admitAs("a", ann, take("tokens", b, 60, reserved(time.Second)))
		w.admitAs("b", ann, take("tokens", b, 10, reserved(time.Second)))
		w.at(999 * time.Millisecond)
		assert.EqualValues(w, 40, w.settle("b", ann, "tokens", b, 0))
		w.at(time.Second)
		w.settleUnknown("a", ann, "tokens", b, 0)
		assert.EqualValues(w, 40, w.balance(ann, "tokens", b))
	}},
	{"reservation/what was never open is unknown", func(w *world) {
		b := every(time.Hour, 1, 100)
		w.admitAs("a", ann, take("tokens", b, 60, reserved(time.Hour)))
		w.admitAs("final", ann, take("tokens", b, 1))
		w.settleUnknown("b", ann, "tokens", b, 0)
		w.settleUnknown("final", ann, "tokens", b, 0)
		w.settleUnknown("a", bob, "tokens", b, 0)
		w.settleUnknown("a", ann, "turn", b, 0)
		assert.EqualValues(w, 39, w.balance(ann, "tokens", b))
	}},
	{"reservation/one admission may open several", func(w *world) {
		b := every(time.Hour, 1, 100)
		w.admitAs("a", ann, take("turn", b, 1, reserved(time.Hour)), take("tokens", b, 60, reserved(time.Hour)))
		assert.EqualValues(w, 100, w.settle("a", ann, "turn", b, 0))
		assert.EqualValues(w, 95, w.settle("a", ann, "tokens", b, 5))
	}},
	{"reservation/it is settled on the plan of that time", func(w *world) {
		free, pro := every(time.Hour, 1, 100), every(time.Hour, 1, 1000)
		w.admitAs("a", ann, take("tokens", free, 60, reserved(time.Hour)))
		assert.EqualValues(w, 30, w.settle("a", ann, "tokens", pro, 70))
	}},
}

var contextRules = []rule{
	{"context/a call whose context is over does nothing", func(w *world) {
		b := every(time.Second, 1, 5)
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		_, err := w.store.Admit(ctx, store.Admission{ID: "a", Owner: ann, Items: []store.Item{take("turn", b, 1)}})
		require.ErrorIs(w, err, store.ErrUnavailable)
		assert.EqualValues(w, 5, w.balance(ann, "turn", b))
	}},
	{"close/what is called after it is unavailable", func(w *world) {
		require.NoError(w, w.store.Close(w.ctx))
		_, err := w.store.Balance(w.ctx, ann, "turn", every(time.Second, 1, 5))
		require.ErrorIs(w, err, store.ErrUnavailable)
	}},
}
