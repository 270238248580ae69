package redis

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hookhost/hookhost/store"
)

// answered is a call to which a server said this.
func answered(reply any) *call { return &call{script: &script{name: "admit"}, reply: reply} }

func TestAReplyOfAnUnexpectedShapeSaysWhere(t *testing.T) {
	for says, values := range map[string]any{
		"<nil> where a list":                     nil,
		"string where a list":                    "OK",
		"reply[0]: missing":                      []any{},
		"reply[0]: 0 where 1 to 4":               []any{int64(0), int64(0), int64(0), int64(0)},
		"reply[0]: 5 where 1 to 4":               []any{int64(5), int64(0), int64(0), int64(0)},
		"reply[1]: string where an integer":      []any{int64(1), "0", int64(0), int64(0)},
		"reply[2]: -1 where 0 to":                []any{int64(1), int64(0), int64(-1), int64(0)},
		"reply[3]: <nil> where an integer":       []any{int64(1), int64(0), int64(0), nil},
		"reply[3]: missing":                      []any{int64(1), int64(0), int64(0)},
		"reply[4]: more than was expected":       []any{int64(1), int64(0), int64(0), int64(0), int64(0)},
		"reply[3]: 9007199254740992 where -1000": []any{int64(1), int64(0), int64(0), int64(1 << 53)},
	} {
		reply, err := answered(values).result()
		if err == nil {
			_, err = reply.decision()
		}
		require.ErrorIs(t, err, store.ErrUnavailable, says)
		assert.ErrorContains(t, err, "redis admit: ")
		assert.ErrorContains(t, err, says)
	}
}

// readers are all that reads replies.
var readers = map[string]func(r *reply){
	"decision": func(r *reply) { _, _ = r.decision() },
	"balance":  func(r *reply) { r.units() },
	"flag":     func(r *reply) { r.yes(); r.text() },
	"number":   func(r *reply) { r.number() },
	"users":    func(r *reply) { each(r, func() { r.user() }) },
	"records":  func(r *reply) { each(r, func() { r.record(ann) }) },
	"override": func(r *reply) { each(r, func() { r.override() }) },
	"activity": func(r *reply) { r.activity(ann, time.Unix(0, 0)) },
}

func each(r *reply, read func()) {
	for r.more() {
		read()
	}
}

// FuzzReply gives every reader any reply: one value a line, integers after i,
// strings after s, and lists.
func FuzzReply(f *testing.F) {
	f.Add("i1\ni0\ni0\ni5")
	f.Add("s" + joinFields("shop", "ann"))
	f.Add("scall 17 " + encodeRecord(store.Record{ID: "op", Time: time.Unix(1, 2)}))
	f.Add("s" + joinFields("shop", "ann") + "\ns" + encodeOverride(store.Override{Plan: "pro", Until: time.Unix(1, 2)}))
	f.Add("splan\nsfree\nsminute\ns17\nst:1:5\ns2\nsturns\ns1")
	f.Add("n\nl")
	f.Fuzz(func(t *testing.T, text string) {
		values := []any{}
		for line := range strings.SplitSeq(text, "\n") {
			switch {
			case strings.HasPrefix(line, "i"):
				n, _ := strconv.ParseInt(line[1:], 10, 64)
				values = append(values, n)
			case strings.HasPrefix(line, "s"):
				values = append(values, line[1:])
			case line == "l":
				values = append(values, []any{})
			default:
				values = append(values, nil)
			}
		}
		for name, read := range readers {
			r, err := answered(values).result()
			require.NoError(t, err)
			read(r)
			if err := r.end(); err != nil {
				require.ErrorIs(t, err, store.ErrUnavailable, name)
				require.ErrorContains(t, err, "reply[", name)
			}
		}
	})
}

func FuzzFields(f *testing.F) {
	f.Add("4:shop3:ann", 2)
	f.Add("0:", 1)
	f.Add("9999999999:a", 1)
	f.Fuzz(func(t *testing.T, joined string, n int) {
		fields, err := splitFields(joined, min(max(n, 0), 100))
		if err != nil {
			return
		}
		again, err := splitFields(joinFields(fields...), len(fields))
		require.NoError(t, err)
		assert.Equal(t, fields, again)
	})
}

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	count := rapid.Ptr(rapid.Int64Range(0, store.MaxUnits), true)
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, name)) }
		r := store.Record{
			ID: text("id"), Run: text("run"), Time: time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(t, "time"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC(),
			Session: text("session"), Agent: text("agent"), Model: text("model"), Plan: text("plan"), IdempotencyKey: text("key"), Outcome: text("outcome"),
			Turn: rapid.Bool().Draw(t, "turn"), Elapsed: time.Duration(rapid.Int64().Draw(t, "elapsed")), FirstChunk: time.Duration(rapid.Int64().Draw(t, "first chunk")),
		}
		for _, n := range counts(&r.Tokens) {
			*n = count.Draw(t, "count")
		}
		got, err := decodeRecord(encodeRecord(r))
		require.NoError(t, err)
		assert.Equal(t, r, got)
	})
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add(encodeRecord(store.Record{ID: "op", Time: time.Unix(1, 2)}))
	f.Add(strings.Repeat("1:x", 18))
	f.Fuzz(func(t *testing.T, encoded string) {
		r, err := decodeRecord(encoded)
		if err != nil {
			return
		}
		again, err := decodeRecord(encodeRecord(r))
		require.NoError(t, err)
		assert.True(t, r.Time.Equal(again.Time))
		again.Time = r.Time
		assert.Equal(t, r, again)
	})
}
