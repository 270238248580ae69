package host_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/host"
)

// BenchmarkSecondStart starts a host with three Go guests that are compiled
// already.
func BenchmarkSecondStart(b *testing.B) {
	o := host.Options{Dev: true, CacheDir: b.TempDir(), Log: slog.New(slog.DiscardHandler)}
	start := func() {
		h, err := host.Open(b.Context(), filepath.Join("..", "hooks.toml"), o)
		require.NoError(b, err)
		require.NoError(b, h.Close(b.Context()))
	}
	start()
	for b.Loop() {
		start()
	}
}
