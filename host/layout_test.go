package host_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "github.com/hookhost/hookhost/"

// imports are the packages of this module that each folder may depend on. A
// folder stands for all below it.
var imports = map[string][]string{
	"abi":            {"abi"},
	"guests":         {"abi", "guests"},
	"store":          {"store"},
	"chain":          {"abi", "chain"},
	"chain/manifest": {"abi", "chain"},
	"host/hostfn":    {"abi", "store", "host/hostfn"},
	"host/wasm":      {"abi", "chain", "store", "host/hostfn", "host/wasm"},
	"host/adk":       {"abi", "chain", "host/adk"},
	"host/demo":      {"host/demo"},
	"host":           {"abi", "chain", "store", "host"},
	"host/chaintest": {"abi", "chain", "store", "host"},
	"cmd/hookhost":   {"abi", "chain", "store", "host", "cmd"},
}

// adkUsers are the folders that may know ADK.
var adkUsers = []string{"host", "host/adk", "host/demo", "host/chaintest", "cmd/hookhost"}

func TestImportsPointDown(t *testing.T) {
	for _, line := range strings.Split(strings.TrimSpace(list(t, "-f", "{{.ImportPath}} {{join .Deps \" \"}}", "./...")), "\n") {
		pkg, deps, _ := strings.Cut(line, " ")
		folder := strings.TrimPrefix(pkg, root)
		allowed, ok := imports[closest(folder)]
		if !assert.True(t, ok, "%s has no rule", folder) {
			continue
		}
		for _, dep := range strings.Fields(deps) {
			if own, inside := strings.CutPrefix(dep, root); inside {
				assert.True(t, below(own, allowed), "%s depends on %s", folder, own)
			}
			if strings.HasPrefix(dep, "google.golang.org/adk/") {
				assert.Contains(t, adkUsers, folder, "%s depends on ADK", folder)
			}
			if dep == "github.com/tetratelabs/wazero" {
				assert.True(t, folder == "host/wasm" || below(folder, []string{"host", "cmd"}) && folder != "host/adk" && folder != "host/demo" && folder != "host/hostfn",
					"%s depends on wazero", folder)
			}
		}
	}
}

// closest is the folder with a rule that a folder is in.
func closest(folder string) string {
	for {
		if _, ok := imports[folder]; ok {
			return folder
		}
		i := strings.LastIndex(folder, "/")
		if i < 0 {
			return folder
		}
		folder = folder[:i]
	}
}

func below(folder string, roots []string) bool {
	for _, r := range roots {
		if folder == r || strings.HasPrefix(folder, r+"/") {
			return true
		}
	}
	return false
}

func list(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	cmd.Dir = ".."
	out, err := cmd.Output()
	require.NoError(t, err)
	return string(out)
}
