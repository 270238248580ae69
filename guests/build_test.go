// Package guests_test checks what the compiled guests are made of.
package guests_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
)

const (
	here   = "github.com/hookhost/hookhost/guests/"
	golden = "github.com/hookhost/hookhost/abi/golden/guest"
)

// forWasm runs the go command as it is run to build a guest.
func forWasm(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "go %s: %s", strings.Join(args, " "), stderr.String())
	return string(out)
}

func TestGuestsDoNotNeedWhatSmallCompilersDoNotHave(t *testing.T) {
	for _, pkg := range []string{"github.com/hookhost/hookhost/abi/guest", here + "ratelimit", here + "redact", here + "meter", golden} {
		deps := strings.Fields(forWasm(t, "list", "-deps", pkg))
		require.Contains(t, deps, "github.com/hookhost/hookhost/abi")
		for _, banned := range []string{"reflect", "fmt", "encoding/json", "os", "net"} {
			assert.NotContains(t, deps, banned, "of %s", pkg)
		}
	}
}

func TestAGuestImportsOnlyTheFamiliesThatItUses(t *testing.T) {
	for name, want := range map[string][]string{
		"ratelimit": {"hookhost", "hookhost_limit"},
		"redact":    {"hookhost"},
		"meter":     {"hookhost", "hookhost_usage"},
	} {
		var modules []string
		for _, f := range importsOf(t, here+name) {
			if f.module != "wasi_snapshot_preview1" && !slices.Contains(modules, f.module) {
				modules = append(modules, f.module)
			}
		}
		slices.Sort(modules)
		assert.Equal(t, want, modules, "of %s", name)
	}
}

func TestTheGoldenGuestImportsTheWholeABI(t *testing.T) {
	var want []function
	for _, i := range abi.Imports() {
		want = append(want, function{i.Module, i.Name, string(typesOf(i.Params))})
	}
	var got []function
	for _, f := range importsOf(t, golden) {
		if strings.HasPrefix(f.module, "hookhost") {
			got = append(got, f)
		}
	}
	assert.ElementsMatch(t, want, got)
}

func typesOf(params []abi.Type) []byte {
	types := make([]byte, 0, len(params)+1)
	for _, p := range params {
		types = append(types, byte(p))
	}
	return append(types, byte(abi.I32)) // all of them return one
}

// function is an imported function: the types of its parameters and its
// result, one byte each.
type function struct{ module, name, types string }

// importsOf builds a guest and lists what it imports.
func importsOf(t *testing.T, pkg string) []function {
	t.Helper()
	file := filepath.Join(t.TempDir(), "guest.wasm")
	forWasm(t, "build", "-buildmode=c-shared", "-trimpath", "-o", file, pkg)
	module, err := os.ReadFile(file)
	require.NoError(t, err)
	return readImports(t, module)
}

// The sections of a module that are read here.
const (
	typeSection   = 1
	importSection = 2
)

func readImports(t *testing.T, module []byte) []function {
	t.Helper()
	r := &reader{t: t, rest: module[8:]} // behind magic and version
	var types []string
	var functions []function
	for len(r.rest) > 0 {
		id := r.byte()
		section := &reader{t: t, rest: r.bytes()}
		switch id {
		case typeSection:
			for range section.number() {
				require.Equal(t, byte(0x60), section.byte(), "a function type")
				types = append(types, string(section.bytes())+string(section.bytes()))
			}
		case importSection:
			for range section.number() {
				module, name := string(section.bytes()), string(section.bytes())
				require.Zero(t, section.byte(), "a function")
				functions = append(functions, function{module, name, types[section.number()]})
			}
		}
	}
	return functions
}

// reader reads the binary format of Wasm.
type reader struct {
	t    *testing.T
	rest []byte
}

func (r *reader) byte() byte {
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	require.Positive(r.t, size)
	r.rest = r.rest[size:]
	return n
}

// bytes reads a length and so many bytes.
func (r *reader) bytes() []byte {
	n := r.number()
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}
