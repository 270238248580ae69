package storetest

import (
	"math"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
)

var numberRules = []rule{
	{"numbers/a bad number is an error that names its field and changes nothing", func(w *world) {
		b := every(time.Millisecond, 1, 100)
		w.admitAs("open", ann, take("tokens", b, 40, reserved(time.Hour)))
		admit := func(item store.Item) error {
			_, err := w.store.Admit(w.ctx, store.Admission{ID: w.id(), Owner: ann, Items: []store.Item{item}})
			return err
		}
		settle := func(r store.Bucket, actual int64) error {
			_, err := w.store.Settle(w.ctx, store.Reservation{ID: "open", Owner: ann, Limit: "tokens", Bucket: r}, actual)
			return err
		}
		bad := []struct {
			field string
			err   error
		}{
			{"cost", admit(take("tokens", b, -50))},
			{"cost", admit(take("tokens", b, math.MinInt64))},
			{"cost", admit(take("tokens", b, store.MaxUnits+1))},
			{"cost", admit(take("tokens", b, math.MaxInt64))},
			{"cost", admit(room("tokens", b, -1))},
			{"max wait", admit(take("tokens", b, 1, within(-1)))},
			{"reserve", admit(take("tokens", b, 1, reserved(-1)))},
			{"units", admit(take("tokens", every(time.Second, 0, 100), 1))},
			{"units", admit(take("tokens", every(time.Second, -5, 100), 1))},
			{"per", admit(take("tokens", every(0, 1, 100), 1))},
			{"per", admit(take("tokens", every(-time.Second, 1, 100), 1))},
			{"per", admit(take("tokens", every(time.Millisecond+1, 1, 100), 1))},
			{"burst", admit(take("tokens", every(time.Second, 1, 0), 1))},
			{"burst", admit(take("tokens", every(time.Second, 1, -1), 1))},
			{"burst", admit(take("tokens", every(time.Second, 1, store.MaxUnits+1), 1))},
			{"units x per", admit(take("tokens", every(2*time.Millisecond, 1<<52+1, 100), 1))},
			{"max", admit(acquire("runs", store.Cap{Max: 0, Expires: time.Second}, "run"))},
			{"max", admit(acquire("runs", store.Cap{Max: -1, Expires: time.Second}, "run"))},
			{"expires", admit(acquire("runs", store.Cap{Max: 1}, "run"))},
			{"expires", admit(acquire("runs", store.Cap{Max: 1, Expires: -time.Second}, "run"))},
			{"actual", settle(b, -1)},
			{"actual", settle(b, math.MinInt64)},
			{"actual", settle(b, store.MaxUnits+1)},
			{"burst", settle(every(time.Second, 1, 0), 1)},
		}
		for _, c := range bad {
			assert.ErrorIs(w, c.err, store.ErrBadNumber, c.field)
			assert.ErrorContains(w, c.err, c.field)
		}
		assert.EqualValues(w, 60, w.balance(ann, "tokens", b))
		assert.Zero(w, w.held(ann, "runs"))
		assert.EqualValues(w, 90, w.settle("open", ann, "tokens", b, 10), "the reservation is still open")
	}},
	{"numbers/a bad item keeps the good ones from being done", func(w *world) {
		b := every(time.Second, 1, 5)
		_, err := w.store.Admit(w.ctx, store.Admission{ID: "a", Owner: ann, Items: []store.Item{
			take("turn", b, 1), take("tokens", b, -1),
		}})
		require.ErrorIs(w, err, store.ErrBadNumber)
		require.ErrorContains(w, err, "limit[tokens]")
		assert.EqualValues(w, 5, w.balance(ann, "turn", b))
	}},
	{"numbers/the ends of the ranges are accepted and exact", func(w *world) {
		huge := every(time.Millisecond, 1<<53, store.MaxUnits)
		assert.Equal(w, now(0), w.admit(ann, take("huge", huge, store.MaxUnits)))
		w.clock.Advance(time.Millisecond)
		assert.EqualValues(w, int64(store.MaxUnits), w.balance(ann, "huge", huge))

		slow := every((1<<43)*time.Millisecond, 1, store.MaxUnits)
		w.admitAs("debt", ann, take("slow", slow, 1, reserved(time.Hour)))
		assert.EqualValues(w, 0, w.settle("debt", ann, "slow", slow, store.MaxUnits))
		assert.Equal(w, refused(math.MaxInt64/time.Millisecond*time.Millisecond, 0),
			w.admit(ann, take("slow", slow, store.MaxUnits)), "the wait saturates")
	}},
	{"numbers/a debt ends at the largest number", func(w *world) {
		b := every(time.Millisecond, 1, 10)
		ids := []string{w.id(), w.id(), w.id()}
		for _, id := range ids {
			w.admitAs(id, ann, take("tokens", b, 0, reserved(time.Hour)))
		}
		for _, id := range ids {
			w.settle(id, ann, "tokens", b, store.MaxUnits)
		}
		assert.EqualValues(w, int64(-store.MaxUnits), w.balance(ann, "tokens", b))
		assert.Equal(w, refused(time.Millisecond, -store.MaxUnits),
			w.admit(ann, take("tokens", every(time.Millisecond, 1<<53, 10), 10, within(time.Hour))),
			"a take makes no larger one, however fast it would be paid back")
	}},
	{"numbers/what names nothing is malformed", func(w *world) {
		b, c := every(time.Second, 1, 5), store.Cap{Max: 1, Expires: time.Second}
		both := take("turn", b, 1)
		both.Room = &store.Room{Bucket: b}
		bad := []store.Admission{
			{Owner: ann, Items: []store.Item{take("turn", b, 1)}},
			{ID: "a", Owner: ann},
			{ID: "a", Owner: ann, Items: []store.Item{{Limit: "turn"}}},
			{ID: "a", Owner: ann, Items: []store.Item{both}},
			{ID: "a", Owner: ann, Items: []store.Item{take("turn", b, 1), take("turn", b, 1)}},
			{ID: "a", Owner: ann, Items: []store.Item{acquire("runs", c, "")}},
			{ID: "a", Owner: store.Owner{App: "shop", User: "ann"}, Items: []store.Item{take("turn", b, 1)}},
			{ID: "a", Owner: store.Owner{Kind: 4}, Items: []store.Item{take("turn", b, 1)}},
		}
		for _, a := range bad {
			_, err := w.store.Admit(w.ctx, a)
			assert.ErrorIs(w, err, store.ErrMalformed, "%+v", a)
		}
		_, err := w.store.Settle(w.ctx, store.Reservation{Owner: ann, Limit: "turn", Bucket: b}, 1)
		assert.ErrorIs(w, err, store.ErrMalformed)
		_, err = w.store.Free(w.ctx, store.Lease{Owner: ann, Limit: "runs", Cap: c})
		assert.ErrorIs(w, err, store.ErrMalformed)
		assert.EqualValues(w, 5, w.balance(ann, "turn", b))
	}},
}
