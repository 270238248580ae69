package redis

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/redis/redistest"
)

// The README says what things cost in Redis. This is where the figures are
// from: MEMORY USAGE, with ids of a usual length.
func TestWhatTheREADMESaysOfMemoryIsSo(t *testing.T) {
	server := redistest.Single(t)
	s := opened(t, server.URL(), func(c *Config) { c.Namespace = "production" })
	o := store.Owner{Kind: store.OwnerUser, App: "helpdesk", User: "user-00042"}
	id := func(i int) string { return fmt.Sprintf("3f2b8c1e-5a7d-4e9f-8b6a-%012d", i) }
	b := store.Bucket{Units: 60000, Per: time.Minute, Burst: 60000}
	keys := s.owned(o)

	admit := func(i int, items ...store.Item) {
		_, err := s.Admit(ctx, store.Admission{ID: id(i), Owner: o, Items: items})
		require.NoError(t, err)
	}
	charge := func(limit string, reserve time.Duration) store.Item {
		return store.Item{Limit: limit, Take: &store.Take{Bucket: b, Cost: 6000, Reserve: reserve}}
	}
	lease := func(i int) store.Item {
		return store.Item{Limit: "runs", Acquire: &store.Acquire{Cap: store.Cap{Max: 100, Expires: time.Minute}, Member: id(i)}}
	}
	size := func(key string) int64 {
		n, is := server.Do(t, "MEMORY", "USAGE", key, "SAMPLES", 0).(int64)
		require.True(t, is, key)
		return n
	}

	admit(1, charge("turn", 0))
	decision := size(keys.operation(id(1)))
	admit(2, charge("tokens", time.Minute))
	open := size(keys.operation(id(2)))
	buckets := size(keys.buckets())
	admit(3, lease(3))
	first := size(keys.leases("runs"))
	for i := range 10 {
		admit(4+i, lease(4+i))
	}
	further := (size(keys.leases("runs")) - first) / 10

	total := int64(1234)
	at := time.Now().Truncate(time.Minute)
	record := func(i int) {
		_, err := s.Record(ctx, store.Record{
			ID: id(100 + i), Run: id(1), Time: at.Add(time.Duration(i) * time.Minute), App: o.App, User: o.User, Session: id(2),
			Agent: "desk", Model: "gemini-2.5-flash", Plan: "free", Outcome: "done", Turn: true, Tokens: store.Tokens{Prompt: &total, Candidates: &total, Total: &total},
		})
		require.NoError(t, err)
	}
	const records = 200
	for i := range records {
		record(i)
	}
	perRecord := (size(keys.records()) + size(keys.recordOrder())) / records

	stated := regexp.MustCompile(`(?m)^\| (.+?) \| ([0-9]+) bytes \|$`).FindAllStringSubmatch(readme, -1)
	measured := map[string]int64{
		"a user with a turn bucket and a token bucket, neither full": buckets,
		"an open reservation, its decision included":                 open,
		"a decision, for a minute":                                   decision,
		"the first lease of a limit":                                 first,
		"each further lease":                                         further,
		"a usage record":                                             perRecord,
	}
	require.Len(t, stated, len(measured), "%v", measured)
	for _, row := range stated {
		bytes, err := strconv.ParseInt(row[2], 10, 64)
		require.NoError(t, err)
		real, known := measured[strings.TrimSpace(row[1])]
		require.True(t, known, row[1])
		assert.InEpsilon(t, real, bytes, 0.1, row[1])
	}
}
