package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/chaintest"
	"github.com/hookhost/hookhost/host/demo"
)

// between is a meter provider that does something at the time that a host asks
// for its meter: after it has read the manifest and compared the hashes, and
// before it loads the modules.
type between struct {
	metric.MeterProvider
	do func()
}

func (b between) Meter(name string, options ...metric.MeterOption) metric.Meter {
	b.do()
	return b.MeterProvider.Meter(name, options...)
}

// TestTheBytesThatWereHashedAreTheOnesThatRun swaps a pinned module for
// another one as soon as its hash was compared.
func TestTheBytesThatWereHashedAreTheOnesThatRun(t *testing.T) {
	dir := t.TempDir()
	pinned, err := os.ReadFile(module(t, "redact"))
	require.NoError(t, err)
	other, err := os.ReadFile(fixture(t, "continue"))
	require.NoError(t, err)
	file := filepath.Join(dir, "redact.wasm")
	require.NoError(t, os.WriteFile(file, pinned, 0o600))
	path := write(t, dir, strings.Replace(redactOnly, "MODULE/redact", "redact.wasm", 1))
	_, err = manifest.Pin(path)
	require.NoError(t, err)

	var once sync.Once
	swapped := false
	w := openAt(t, path, host.Options{Meter: between{noop.NewMeterProvider(), func() {
		once.Do(func() {
			require.NoError(t, os.WriteFile(file, other, 0o600))
			swapped = true
		})
	}}}, demo.Reply{Text: "4111 1111 1111 1111"})

	require.True(t, swapped)
	assert.Equal(t, []string{"[CARD]"}, w.says("hi"), "the module that was pinned")
	assert.ErrorContains(t, w.host.Reload(t.Context()), "the module is another one")
	_, err = host.Open(t.Context(), path, host.Options{CacheDir: chaintest.CacheDir()})
	assert.ErrorContains(t, err, "the module is another one")
}
