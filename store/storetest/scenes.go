package storetest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/hookhost/hookhost/store"
)

// The plan of the scenes: 20 turns a minute, five at once; 60,000 tokens a
// minute, all at once; two runs; an estimate of 6,000 tokens a call.
var (
	planTurn   = every(time.Minute, 20, 5)
	planTokens = every(time.Minute, 60000, 60000)
	planRuns   = store.Cap{Max: 2, Expires: 30 * time.Second}
)

const planEstimate = 6000

var sceneRules = []rule{
	{"Scene1 a burst of turns: five pass, the sixth has to wait", func(w *world) {
		turn := func() store.Decision { return w.admit(ann, take("turn", planTurn, 1)) }
		for left := int64(4); left >= 0; left-- {
			assert.Equal(w, now(left), turn())
		}
		assert.Equal(w, refused(3*time.Second, 0), turn(), "at 0 s")
		w.at(time.Second)
		assert.Equal(w, refused(2*time.Second, 0), turn(), "at 1 s")
		w.at(3*time.Second - time.Millisecond)
		assert.Equal(w, refused(time.Millisecond, 0), turn())
		w.at(3 * time.Second)
		assert.Equal(w, now(0), turn(), "when it was told to come")
	}},
	{"Scene2 one turn every ten seconds is never refused", func(w *world) {
		for i := range 1000 {
			w.at(time.Duration(i) * 10 * time.Second)
			assert.Equal(w, now(4), w.admit(ann, take("turn", planTurn, 1)))
		}
	}},
	{"Scene3 three turns of 18,000 tokens empty the bucket", func(w *world) {
		call := func(maxWait time.Duration) store.Decision {
			return w.admit(ann, take("tokens", planTokens, planEstimate, within(maxWait)))
		}
		for i := range 9 {
			assert.Equal(w, now(60000-planEstimate*int64(i+1)), call(2*time.Second))
		}
		assert.Equal(w, now(0), call(2*time.Second), "54,000 went, one more call fits")
		assert.Equal(w, refused(4*time.Second, 0), call(2*time.Second), "6 s short, 2 s allowed: in 4 s it would be let in")
		assert.EqualValues(w, 0, w.balance(ann, "tokens", planTokens), "unchanged")
		assert.Equal(w, later(6*time.Second, -6000), call(6*time.Second))
	}},
	{"Scene4 a third run at once is refused and neither bucket has moved", func(w *world) {
		admit := func(run string) store.Decision {
			return w.admit(ann,
				take("turn", planTurn, 1),
				take("tokens", planTokens, planEstimate, reserved(time.Minute)),
				acquire("runs", planRuns, run))
		}
		for i, left := range []int64{54000, 48000} {
			assert.Equal(w, now(left), admit(fmt.Sprint("run-", i)))
		}
		assert.Equal(w, by(2, refused(30*time.Second, 0)), admit("run-2"))
		assert.EqualValues(w, 3, w.balance(ann, "turn", planTurn))
		assert.EqualValues(w, 48000, w.balance(ann, "tokens", planTokens))
		w.free(store.Lease{Owner: ann, Limit: "runs", Member: "run-0", Cap: planRuns})
		assert.Equal(w, now(42000), admit("run-3"))
	}},
}
