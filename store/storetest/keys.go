package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/hookhost/hookhost/store"
)

// Owners are different however their parts are put together.
func Owners() []store.Owner {
	var all []store.Owner
	for _, id := range []string{
		"u-42", "}x", "a}b", "a}c", "a{b", "{a}", "{}", "x y", "a\nb", "*", "\x00", "\xff\xfe", "%", "%00", "é", "e\u0301", ":", "eu:7",
		strings.Repeat("a", 4096), strings.Repeat("a", 4095) + "b",
	} {
		all = append(all, user("shop", id))
	}
	return append(all,
		user("shop:eu", "7"), user("", "shop:eu:7"), user("shop", "7"), user("SHOP", "7"),
		store.Owner{Kind: store.OwnerUser, App: "shop", User: "7", Shadow: "limiter"},
		store.Owner{Kind: store.OwnerUser, App: "shop", User: "7", Shadow: "other"},
		user("shop", "7:limiter"),
		store.Owner{Kind: store.OwnerApp, App: "shop"},
		store.Owner{Kind: store.OwnerApp, App: "shop", Shadow: "limiter"},
		store.Owner{Kind: store.OwnerApp, App: "shop:limiter"},
		store.Owner{Kind: store.OwnerApp},
		store.Owner{Kind: store.OwnerGlobal},
		store.Owner{Kind: store.OwnerGlobal, Shadow: "limiter"},
	)
}

var keyRules = []rule{
	{"keys/no owner shares anything with another (case 020)", func(w *world) {
		b, c := every(time.Hour, 1, 100), store.Cap{Max: 100, Expires: time.Hour}
		all := Owners()
		for i, o := range all {
			assert.Equal(w, now(100-int64(i)-1), w.admitAs("same", o, take("limit", b, int64(i)+1), acquire("runs", c, "run")), "%q", o)
			_, err := w.store.AddCounter(w.ctx, o, "count", "same", int64(i))
			assert.NoError(w, err)
			assert.NoError(w, w.store.PutValue(w.ctx, store.ValueKey{Owner: o, Name: "n", Key: "k"}, fmt.Append(nil, i), time.Hour))
			got, err := w.store.Claim(w.ctx, store.ClaimKey{Owner: o, Name: "n", Key: "k"}, fmt.Sprint("holder-", i), time.Hour)
			assert.NoError(w, err)
			assert.Equal(w, store.Claimed, got.State, "%q", o)
		}
		for i, o := range all {
			assert.Equal(w, 100-int64(i)-1, w.balance(o, "limit", b), "%q", o)
			assert.EqualValues(w, 1, w.held(o, "runs"), "%q", o)
			sum, err := w.store.Counter(w.ctx, o, "count")
			assert.NoError(w, err)
			assert.EqualValues(w, i, sum, "%q", o)
			value, _, err := w.store.GetValue(w.ctx, store.ValueKey{Owner: o, Name: "n", Key: "k"})
			assert.NoError(w, err)
			assert.Equal(w, fmt.Sprint(i), string(value), "%q", o)
		}
	}},
	{"keys/one user's bucket is no user's lease set (case 020)", func(w *world) {
		b, c := every(time.Hour, 1, 5), store.Cap{Max: 1, Expires: time.Hour}
		for _, limit := range []string{"turn", "turn:lease", "lease", ""} {
			w.admit(ann, take(limit, b, 5))
			for _, o := range Owners() {
				assert.Equal(w, now(0), w.admit(o, acquire(limit, c, "run")))
			}
			assert.EqualValues(w, 0, w.balance(ann, limit, b))
		}
	}},
	{"keys/names and keys do not run into each other", func(w *world) {
		put := func(name, key, value string) {
			assert.NoError(w, w.store.PutValue(w.ctx, store.ValueKey{Owner: ann, Name: name, Key: key}, []byte(value), time.Hour))
		}
		put("a:b", "c", "one")
		put("a", "b:c", "two")
		value, _, err := w.store.GetValue(w.ctx, store.ValueKey{Owner: ann, Name: "a:b", Key: "c"})
		assert.NoError(w, err)
		assert.Equal(w, "one", string(value))
	}},
	{"keys/what an owner's kind does not use does not part it", func(w *world) {
		b := every(time.Hour, 1, 5)
		w.admit(store.Owner{Kind: store.OwnerApp, App: "shop", User: "ann"}, take("calls", b, 2))
		assert.EqualValues(w, 3, w.balance(store.Owner{Kind: store.OwnerApp, App: "shop", User: "bob"}, "calls", b))
		w.admit(store.Owner{Kind: store.OwnerGlobal, App: "shop", User: "ann"}, take("calls", b, 1))
		assert.EqualValues(w, 4, w.balance(store.Owner{Kind: store.OwnerGlobal}, "calls", b))
	}},
	{"keys/a user without an id is refused, not put together with others (case 020)", func(w *world) {
		b, c, nobody := every(time.Hour, 1, 5), store.Cap{Max: 1, Expires: time.Hour}, user("shop", "")
		key, value := store.ClaimKey{Owner: nobody}, store.ValueKey{Owner: nobody}
		calls := map[string]func() error{
			"admit": func() error {
				_, err := w.store.Admit(w.ctx, store.Admission{ID: "a", Owner: nobody, Items: []store.Item{take("turn", b, 1)}})
				return err
			},
			"settle": func() error {
				_, err := w.store.Settle(w.ctx, store.Reservation{ID: "a", Owner: nobody, Bucket: b}, 1)
				return err
			},
			"balance": func() error { _, err := w.store.Balance(w.ctx, nobody, "turn", b); return err },
			"renew": func() error {
				_, err := w.store.Renew(w.ctx, []store.Lease{{Owner: nobody, Member: "run", Cap: c}})
				return err
			},
			"free": func() error {
				_, err := w.store.Free(w.ctx, store.Lease{Owner: nobody, Member: "run", Cap: c})
				return err
			},
			"held":        func() error { _, err := w.store.Held(w.ctx, nobody, "runs"); return err },
			"claim":       func() error { _, err := w.store.Claim(w.ctx, key, "h", time.Second); return err },
			"renew claim": func() error { return w.store.RenewClaim(w.ctx, key, 1, time.Second) },
			"end claim":   func() error { return w.store.EndClaim(w.ctx, key, 1, nil, time.Second) },
			"result":      func() error { _, _, err := w.store.ClaimResult(w.ctx, key); return err },
			"get":         func() error { _, _, err := w.store.GetValue(w.ctx, value); return err },
			"put":         func() error { return w.store.PutValue(w.ctx, value, nil, time.Second) },
			"records":     func() error { _, err := w.store.Records(w.ctx, nobody); return err },
			"add":         func() error { _, err := w.store.AddCounter(w.ctx, nobody, "n", "a", 1); return err },
			"counter":     func() error { _, err := w.store.Counter(w.ctx, nobody, "n"); return err },
		}
		for name, call := range calls {
			assert.ErrorIs(w, call(), store.ErrNoUser, name)
		}
	}},
}
