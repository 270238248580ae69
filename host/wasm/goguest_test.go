package wasm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host/internal/fake"
)

// goJSON is a Go guest that decodes its subject and answers with it.
func goJSON(t testing.TB) *bench {
	b := newBench(t, "continue").pool(1)
	b.cfg.Module, b.cfg.Memory = compiled(t, "host/wasm/testdata/gojson"), 32<<20
	return b.loads()
}

// withDocument is an event whose subject is that JSON.
func withDocument(doc string) *abi.Event {
	ev := event("a")
	ev.Subject = &fake.Subject{Values: map[string]any{"": json.RawMessage(doc)}}
	return ev
}

// records is a document of some size with texts, numbers and objects in it.
func records(bytes int) string {
	var b strings.Builder
	b.WriteString("[")
	for i := 0; b.Len() < bytes; i++ {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `{"active":%t,"id":%d,"name":"record number %d","tags":["one","two","three"]}`, i%2 == 0, i, i)
	}
	return b.String() + "]"
}

func TestGoGuestDecodesJSON(t *testing.T) {
	b := goJSON(t)
	for _, size := range []int{1 << 10, 4 << 10, 64 << 10, 1 << 20} {
		v, err := b.stage.Call(t.Context(), withDocument(records(size)))
		require.NoError(t, err)
		require.Equal(t, records(size), string(v.Answer.JSON))
	}
}

func TestGoGuestDecodesWhatIsNested(t *testing.T) {
	b := goJSON(t)
	nested := func(depth int) string { return strings.Repeat(`[`, depth) + strings.Repeat(`]`, depth) }
	v, err := b.stage.Call(t.Context(), withDocument(nested(1000)))
	require.NoError(t, err)
	require.Equal(t, nested(1000), string(v.Answer.JSON))

	// Ten thousand levels are what encoding/json takes and the host does not
	// have to.
	if _, err := b.stage.Call(t.Context(), withDocument(nested(9999))); err != nil {
		requireCause(t, chain.CauseDepth, err)
	}
}

func TestGoGuestDoesNotGrowInAnOrdinaryCall(t *testing.T) {
	b := goJSON(t)
	for _, size := range []int{1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20} {
		in, err := b.stage.pool.get(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), b.cfg.Timeout)
		before := in.(*guest).module.Memory().Size()
		_, err = in.call(ctx, b.stage.services.NewCall(ctx, &b.stage.facts, withDocument(records(size))))
		cancel()
		require.NoError(t, err)
		after := in.(*guest).module.Memory().Size()
		t.Logf("%7d bytes of JSON: from %d to %d KiB", size, before>>10, after>>10)
		if size <= 64<<10 {
			assert.Equal(t, before, after, "%d bytes of JSON", size)
		}
		b.stage.pool.put(in)
	}
}
