package cache

import (
	"context"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"
	"golang.org/x/sys/cpu"
)

// markerFile stands in every folder of entries: no other folder is taken for
// one, whatever its name.
const markerFile = "hookhost-cache"

// generationName is the form of what generation gives, for all versions,
// platforms and processors.
var generationName = regexp.MustCompile(`^code-rewriter[0-9A-Za-z.]+-wazero[0-9A-Za-z.+()-]+-[0-9a-z]+-[0-9a-z]+(-(sse41|bmi1|bmi2|popcnt|atomics))*$`)

// generation names what code depends on beside its module.
func generation(version string) string {
	parts := []string{"rewriter" + version, "wazero" + builtWith(), runtime.GOOS, runtime.GOARCH}
	return "code-" + strings.Join(append(parts, processor()...), "-")
}

// processor names the abilities that wazero compiles for where it finds them.
// Machines that differ in them and share a folder would throw each other's
// code away.
func processor() (abilities []string) {
	for _, ability := range []struct {
		name string
		has  bool
	}{
		{"sse41", cpu.X86.HasSSE41},
		{"bmi1", cpu.X86.HasBMI1},
		{"bmi2", cpu.X86.HasBMI2},
		{"popcnt", cpu.X86.HasPOPCNT},
		{"atomics", cpu.ARM64.HasATOMICS},
	} {
		if ability.has {
			abilities = append(abilities, ability.name)
		}
	}
	return abilities
}

// builtWith names the version of wazero that a program is built with, as
// wazero names it itself.
func builtWith() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, dep := range info.Deps {
		if dep.Path == "github.com/tetratelabs/wazero" {
			return dep.Version
		}
	}
	return "unknown"
}

// findVersion has wazero look up its own version, which it keeps in a
// variable without a lock: two modules that are compiled at once would race
// for it.
var findVersion = sync.OnceFunc(func() {
	ctx := context.Background()
	_ = wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler()).Close(ctx)
})
