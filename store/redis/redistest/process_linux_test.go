package redistest_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store/redis/redistest"
)

// The child is this test: it starts a server, says where and is killed.
func TestServerIsGoneWithAKilledTestBinary(t *testing.T) {
	const child = "REDISTEST_CHILD"
	if os.Getenv(child) != "" {
		_, err := os.Stdout.WriteString("at " + redistest.Single(t).Addr + "\n")
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
	}
	redistest.Require(t)
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), child+"=1")
	out, err := cmd.Output()
	require.Error(t, err)
	_, addr, found := strings.Cut(string(out), "at ")
	require.True(t, found, "%s", out)
	refusesSoon(t, strings.TrimSpace(addr))
}
