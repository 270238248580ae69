package storetest

import (
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/hookhost/hookhost/store"
)

var leaseRules = []rule{
	{"lease/at most so many members hold one", func(w *world) {
		c := store.Cap{Max: 2, Expires: time.Minute}
		assert.Equal(w, now(0), w.admit(ann, acquire("runs", c, "run-1")))
		w.at(time.Second)
		assert.Equal(w, now(0), w.admit(ann, acquire("runs", c, "run-2")))
		assert.Equal(w, refused(59*time.Second, 0), w.admit(ann, acquire("runs", c, "run-3")), "until the earliest lapses")
		assert.EqualValues(w, 2, w.held(ann, "runs"))
	}},
	{"lease/a member that holds one keeps it, with a new expiry", func(w *world) {
		c := store.Cap{Max: 1, Expires: time.Minute}
		w.admit(ann, acquire("runs", c, "run-1"))
		w.at(50 * time.Second)
		assert.Equal(w, now(0), w.admit(ann, acquire("runs", c, "run-1")))
		assert.EqualValues(w, 1, w.held(ann, "runs"))
		w.at(109 * time.Second)
		assert.Equal(w, refused(time.Second, 0), w.admit(ann, acquire("runs", c, "run-2")))
		w.at(110 * time.Second)
		assert.Equal(w, now(0), w.admit(ann, acquire("runs", c, "run-2")))
	}},
	{"lease/renewing prolongs what is held and revives nothing", func(w *world) {
		c := store.Cap{Max: 3, Expires: time.Minute}
		lease := func(member string) store.Lease { return store.Lease{Owner: ann, Limit: "runs", Member: member, Cap: c} }
		w.admit(ann, acquire("runs", c, "run-1"))
		w.at(30 * time.Second)
		w.admit(ann, acquire("runs", c, "run-2"))
		w.at(59999 * time.Millisecond)
		assert.Equal(w, []bool{true, false}, w.renew(lease("run-1"), lease("run-3")))
		w.at(90 * time.Second)
		assert.Equal(w, []bool{true, false}, w.renew(lease("run-1"), lease("run-2")))
		assert.EqualValues(w, 1, w.held(ann, "runs"))
		assert.Equal(w, []bool{}, w.renew())
	}},
	{"lease/a short one ends none that is longer", func(w *world) {
		c := store.Cap{Max: 2, Expires: time.Minute}
		w.admit(ann, acquire("runs", c, "run-1"))
		c.Expires = time.Second
		w.admit(ann, acquire("runs", c, "run-2"))
		w.at(59 * time.Second)
		assert.EqualValues(w, 1, w.held(ann, "runs"))
	}},
	{"lease/freeing is by member and repeating it is no error", func(w *world) {
		c := store.Cap{Max: 2, Expires: time.Minute}
		w.admit(ann, acquire("runs", c, "run-1"))
		w.admit(ann, acquire("runs", c, "run-2"))
		for _, held := range []bool{true, false} {
			assert.Equal(w, held, w.free(store.Lease{Owner: ann, Limit: "runs", Member: "run-1", Cap: c}))
			assert.EqualValues(w, 1, w.held(ann, "runs"))
		}
		assert.False(w, w.free(store.Lease{Owner: bob, Limit: "runs", Member: "run-2", Cap: c}), "another's")
		assert.EqualValues(w, 1, w.held(ann, "runs"))
		assert.Equal(w, now(0), w.admit(ann, acquire("runs", c, "run-3")))
	}},
	{"lease/one that lapsed cannot be freed, and frees nobody", func(w *world) {
		c := store.Cap{Max: 2, Expires: time.Minute}
		w.admit(ann, acquire("runs", c, "run-1"))
		w.at(time.Minute)
		w.admit(ann, acquire("runs", c, "run-2"))
		assert.False(w, w.free(store.Lease{Owner: ann, Limit: "runs", Member: "run-1", Cap: c}))
		assert.EqualValues(w, 1, w.held(ann, "runs"))
	}},
	{"lease/under a lowered cap the wait is until there is room", func(w *world) {
		c := store.Cap{Max: 3, Expires: time.Minute}
		for i, member := range []string{"run-1", "run-2", "run-3"} {
			w.at(time.Duration(i) * time.Second)
			w.admit(ann, acquire("runs", c, member))
		}
		c.Max = 1
		d := w.admit(ann, acquire("runs", c, "run-4"))
		assert.Equal(w, refused(60*time.Second, 0), d)
		w.clock.Advance(d.Wait - time.Millisecond)
		assert.Equal(w, refused(time.Millisecond, 0), w.admit(ann, acquire("runs", c, "run-4")))
		assert.Equal(w, now(0), w.admit(ann, acquire("runs", c, "run-3")), "a holder keeps it")
	}},
}
