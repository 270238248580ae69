// Package redistest starts real Redis servers for tests: one alone, a master
// under sentinels, a cluster, and a proxy that disturbs the wire to one. All of
// them are gone with the test that started them.
package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	binary = "redis-server"
	// required is a list of what must not be skipped, with commas.
	required = "HOOKHOST_TEST_REQUIRE"
)

// Require skips the test where there is no redis-server. With "redis" in
// HOOKHOST_TEST_REQUIRE it fails instead.
func Require(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath(binary); err == nil {
		return
	}
	if slices.Contains(strings.Split(os.Getenv(required), ","), "redis") {
		t.Fatalf("%s: %s is not in PATH, and %s asks for it", t.Name(), binary, required)
	}
	fmt.Fprintf(os.Stderr, "SKIPPED %s: %s is not in PATH\n", t.Name(), binary)
	t.Skipf("%s is not in PATH: nothing of %s was tested", binary, t.Name())
}

// eventually waits until something is so, and fails the test if it never is.
func eventually(t testing.TB, within time.Duration, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !so(); time.Sleep(20 * time.Millisecond) {
		require.True(t, time.Now().Before(end), "%s: not within %s", what, within)
	}
}
