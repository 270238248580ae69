package storetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/hookhost/hookhost/store"
)

var caseRules = []rule{
	{"Case013 a client that vanishes does not hold its slot for ever", func(w *world) {
		c := store.Cap{Max: 2, Expires: time.Minute}
		ask := func(at time.Duration, member string) store.Decision {
			w.at(at)
			return w.admit(ann, acquire("runs", c, member))
		}
		assert.Equal(w, now(0), ask(0, "inv-1"))
		assert.Equal(w, now(0), ask(time.Second, "inv-2"))
		for _, at := range []time.Duration{10, 20, 30, 40, 50} {
			at *= time.Second
			assert.Equal(w, refused(time.Minute-at, 0), ask(at, "inv-3"), "the hint shrinks: no attempt renews what leaked")
		}
		assert.Equal(w, now(0), ask(60001*time.Millisecond, "inv-3"), "inv-1 lapsed at 60 s")
		assert.Equal(w, refused(500*time.Millisecond, 0), ask(60500*time.Millisecond, "inv-4"), "inv-2 lives to 61 s")
		assert.Equal(w, now(0), ask(61001*time.Millisecond, "inv-4"))
		w.at(62 * time.Second)
		w.free(store.Lease{Owner: ann, Limit: "runs", Member: "inv-1", Cap: c})
		assert.EqualValues(w, 2, w.held(ann, "runs"), "a late release of the dead frees nobody")
		assert.Equal(w, now(0), ask(63*time.Second, "inv-4"))
		assert.EqualValues(w, 2, w.held(ann, "runs"), "the same lease")
		w.at(64 * time.Second)
		w.free(store.Lease{Owner: ann, Limit: "runs", Member: "inv-4", Cap: c})
		assert.EqualValues(w, 1, w.held(ann, "runs"))
	}},
	{"Case016 a debt is not forgiven", func(w *world) {
		b := every(time.Millisecond, 1, 60000)
		ask := func(at time.Duration) store.Decision {
			w.at(at)
			return w.admit(ann, take("tokens", b, 6000, within(2*time.Second)))
		}
		assert.Equal(w, now(54000), w.admitAs("dear", ann, take("tokens", b, 6000, within(2*time.Second), reserved(time.Hour))))
		assert.EqualValues(w, -126000, w.settle("dear", ann, "tokens", b, 186000))
		w.at(66 * time.Second)
		w.admit(bob, take("tokens", b, 1)) // lets an engine sweep
		assert.Equal(w, refused(60*time.Second, -56000), ask(70*time.Second))
		assert.EqualValues(w, -56000, w.balance(ann, "tokens", b), "the refusal changed nothing")
		assert.Equal(w, refused(4*time.Second, 0), ask(126*time.Second), "6 s short, 2 s allowed")
		assert.Equal(w, later(2*time.Second, -2000), ask(130*time.Second))
		assert.EqualValues(w, -2000, w.balance(ann, "tokens", b))
	}},
	{"Case018 part 2, bad costs and settlements change nothing", func(w *world) {
		b := every(time.Millisecond, 1, 100)
		balance := int64(100)
		next := func() {
			w.Helper()
			balance--
			assert.Equal(w, now(balance), w.admit(ann, take("tokens", b, 1)))
		}
		for _, cost := range []int64{-50, -1, math.MinInt64, math.MaxInt64, store.MaxUnits + 1} {
			_, err := w.store.Admit(w.ctx, store.Admission{ID: w.id(), Owner: ann, Items: []store.Item{take("tokens", b, cost)}})
			assert.ErrorIs(w, err, store.ErrBadNumber)
			next()
		}
		w.admitAs("open", ann, take("tokens", b, 10, reserved(time.Hour)))
		balance -= 10
		for _, actual := range []int64{-1, math.MinInt64, math.MaxInt64, store.MaxUnits + 1} {
			_, err := w.store.Settle(w.ctx, store.Reservation{ID: "open", Owner: ann, Limit: "tokens", Bucket: b}, actual)
			assert.ErrorIs(w, err, store.ErrBadNumber)
			next()
		}
		w.clock.Advance(100 * time.Millisecond)
		assert.EqualValues(w, 100, w.balance(ann, "tokens", b), "it fills up as ever")
	}},
	{"Case018 part 3, a cost of 0 is a look", func(w *world) {
		b := every(time.Millisecond, 1, 100)
		assert.Equal(w, now(100), w.admit(ann, take("tokens", b, 0)))
		assert.Equal(w, now(70), w.admit(ann, take("tokens", b, 30)))
		assert.Equal(w, now(70), w.admit(ann, take("tokens", b, 0)))
		assert.EqualValues(w, 70, w.balance(ann, "tokens", b))
	}},
	{"Case020 odd ids and joined ids share nothing", func(w *world) {
		b := every(time.Hour, 1, 5)
		all := Owners()
		for i, drained := range all {
			w.admit(drained, take("turn", b, 5))
			assert.EqualValues(w, 0, w.balance(drained, "turn", b), "%q", drained)
			for _, other := range all[i+1:] {
				assert.EqualValues(w, 5, w.balance(other, "turn", b), "%q drained %q", drained, other)
			}
		}
	}},
	{"Case035 A, two users' overlapping calls settle their own", func(w *world) {
		w.reserve(ann, "a")
		w.reserve(bob, "b")
		assert.EqualValues(w, 57000, w.settle("b", bob, "tokens", tokens35, 3000))
		assert.EqualValues(w, 55000, w.settle("a", ann, "tokens", tokens35, 5000))
	}},
	{"Case035 B, two branches of one run settle their own", func(w *world) {
		w.reserve(ann, "b1")
		w.reserve(ann, "b2")
		w.settle("b1", ann, "tokens", tokens35, 1000)
		assert.EqualValues(w, 50000, w.settle("b2", ann, "tokens", tokens35, 9000))
	}},
	{"Case035 C, a failed branch gives back its own", func(w *world) {
		w.reserve(ann, "b1")
		w.reserve(ann, "b2")
		w.settle("b1", ann, "tokens", tokens35, 0)
		assert.EqualValues(w, 51000, w.settle("b2", ann, "tokens", tokens35, 9000))
	}},
	{"Case035 D, 500 at once in any order", func(w *world) {
		const users = 500
		name := func(i int) store.Owner { return user("shop", fmt.Sprint("user-", i)) }
		var all sync.WaitGroup
		for _, i := range rand.Perm(users) {
			all.Go(func() {
				id := fmt.Sprint("call-", i)
				w.reserve(name(i), id)
				w.settle(id, name(i), "tokens", tokens35, int64(i))
			})
		}
		all.Wait()
		for i := range users {
			assert.EqualValues(w, 60000-i, w.balance(name(i), "tokens", tokens35))
		}
	}},
}

var tokens35 = every(time.Minute, 60000, 60000)

// reserve takes the estimate of one call.
func (w *world) reserve(o store.Owner, id string) {
	w.Helper()
	assert.Equal(w, store.Now, w.admitAs(id, o, take("tokens", tokens35, 6000, reserved(time.Hour))).Kind)
}
