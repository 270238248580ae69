package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/hookhost/hookhost/store"
)

// together runs n calls at once and counts the true ones.
func together(n int, call func(i int) bool) int64 {
	var all sync.WaitGroup
	var count atomic.Int64
	begin := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-begin
			if call(i) {
				count.Add(1)
			}
		})
	}
	close(begin)
	all.Wait()
	return count.Load()
}

var concurrencyRules = []rule{
	{"concurrency/no more is granted than there is", func(w *world) {
		b, c := every(time.Hour, 1, 70), store.Cap{Max: 30, Expires: time.Hour}
		granted := together(200, func(i int) bool {
			return w.admit(ann, take("tokens", b, 2), acquire("runs", c, fmt.Sprint("run-", i))).Kind == store.Now
		})
		assert.EqualValues(w, 30, granted)
		assert.EqualValues(w, 10, w.balance(ann, "tokens", b))
		assert.EqualValues(w, 30, w.held(ann, "runs"))
	}},
	{"concurrency/one id is one admission", func(w *world) {
		b := every(time.Hour, 1, 100)
		same := together(100, func(int) bool {
			return w.admitAs("one", ann, take("tokens", b, 7, reserved(time.Hour))) == now(93)
		})
		assert.EqualValues(w, 100, same)
		assert.EqualValues(w, 93, w.balance(ann, "tokens", b))
		together(100, func(int) bool { return w.settle("one", ann, "tokens", b, 50) == 50 })
		assert.EqualValues(w, 50, w.balance(ann, "tokens", b))
	}},
	{"concurrency/reservations of one bucket add up", func(w *world) {
		b := every(time.Hour, 1, 1_000_000)
		together(200, func(i int) bool {
			id := fmt.Sprint("call-", i)
			w.admitAs(id, ann, take("tokens", b, 100, reserved(time.Hour)))
			w.settle(id, ann, "tokens", b, int64(i))
			return true
		})
		assert.EqualValues(w, 1_000_000-199*200/2, w.balance(ann, "tokens", b))
	}},
	{"concurrency/one of many claims a key", func(w *world) {
		claimed := together(100, func(i int) bool { return w.claim(fmt.Sprint("worker-", i), time.Hour).State == store.Claimed })
		assert.EqualValues(w, 1, claimed)
	}},
	{"concurrency/one of many records an operation, all add to a counter", func(w *world) {
		fresh := together(100, func(i int) bool {
			w.add(ann, "images", fmt.Sprint("op-", i/2), 1)
			return w.record(store.Record{ID: "op", App: "shop", User: "ann"})
		})
		assert.EqualValues(w, 1, fresh)
		assert.EqualValues(w, 50, w.add(ann, "images", "look", 0))
	}},
}
