package meter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// TestSpec runs the WebAssembly spec suite, as wazero's module brings it along,
// twice in step: as it is and under the meter. Every module is accepted or
// refused alike and every invocation gives the same values or the same trap,
// with slices so small that nearly every charge asks for the next.
func TestSpec(t *testing.T) {
	var all tally
	for _, s := range []struct {
		name     string
		features api.CoreFeatures
		change   func([]byte) []byte
	}{
		{"v1", api.CoreFeaturesV2, nil},
		{"v2", api.CoreFeaturesV2, nil},
		{"tail-call", api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall, nil},
		{"extended-const", api.CoreFeaturesV2 | experimental.CoreFeaturesExtendedConst, nil},
		{"threads", api.CoreFeaturesV2 | experimental.CoreFeaturesThreads, unshared},
	} {
		t.Run(s.name, func(t *testing.T) {
			paths, err := filepath.Glob(filepath.Join(suite(t), s.name, "testdata", "*.json"))
			require.NoError(t, err)
			require.NotEmpty(t, paths, "the suite has no %s", s.name)
			var sum tally
			for _, path := range paths {
				sum.add(runScript(t, path, s.features, s.change))
			}
			t.Log(sum)
			assert.Positive(t, sum.modules)
			assert.Positive(t, sum.invocations)
			assert.Positive(t, sum.traps)
			assert.Zero(t, sum.differences)
			all.add(sum)
		})
	}
	t.Log(all)
}

// suite is the folder of the spec suite. It is part of the module that the
// sandbox is built on; without it nothing here is proven, so this is no skip.
func suite(t *testing.T) string {
	t.Helper()
	dir, err := wazeroDir(t.Context())
	require.NoError(t, err, "the source of wazero, which holds the spec suite, cannot be found by `go list -m`")
	dir = filepath.Join(dir, "internal", "integration_test", "spectest")
	_, err = os.Stat(dir)
	require.NoError(t, err, "the source of wazero is there without the spec suite")
	return dir
}

func wazeroDir(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	return strings.TrimSpace(string(out)), err
}

// tally counts what a script came to.
type tally struct {
	modules     int // run
	refused     int // by the engine, both ways
	declined    int // valid, but refused by Rewrite, by name
	invocations int
	traps       int // among the invocations
	differences int
}

func (s *tally) add(o tally) {
	s.modules += o.modules
	s.refused += o.refused
	s.declined += o.declined
	s.invocations += o.invocations
	s.traps += o.traps
	s.differences += o.differences
}

func (s tally) String() string {
	return fmt.Sprintf("%d modules run, %d refused both ways, %d declined by the meter; %d invocations (%d traps): %d differences",
		s.modules, s.refused, s.declined, s.invocations, s.traps, s.differences)
}

// script is what wast2json makes of one file of the suite.
type script struct {
	Commands []struct {
		Type       string
		Line       int
		Name       string
		Filename   string
		As         string
		ModuleType string `json:"module_type"`
		Action     struct {
			Type, Field, Module string
			Args                []specValue
		}
	}
}

type specValue struct {
	Type     string
	LaneType string `json:"lane_type"`
	Value    any
}

// words gives an argument as the engine takes it.
func (v specValue) words(t *testing.T) []uint64 {
	if lanes, ok := v.Value.([]any); ok {
		width, err := strconv.Atoi(v.LaneType[1:])
		require.NoError(t, err)
		words := make([]uint64, 2)
		for i, lane := range lanes {
			at := i * width
			words[at/64] |= specNumber(t, lane.(string), width) << (at % 64)
		}
		return words
	}
	text, _ := v.Value.(string)
	switch {
	case text == "" || text == "null":
		return []uint64{0}
	case v.Type == "externref": // 0 is null to the engine
		return []uint64{specNumber(t, text, 64) + 1}
	}
	width, err := strconv.Atoi(v.Type[1:])
	require.NoError(t, err)
	return []uint64{specNumber(t, text, width)}
}

func specNumber(t *testing.T, text string, width int) uint64 {
	if strings.HasPrefix(text, "-") {
		n, err := strconv.ParseInt(text, 10, width)
		require.NoError(t, err)
		return uint64(n) & (1<<width - 1)
	}
	n, err := strconv.ParseUint(text, 10, width)
	require.NoError(t, err)
	return n
}

// side is one of the two that run in step.
type side struct {
	runtime wazero.Runtime
	metered bool
	modules map[string]api.Module
	last    api.Module
}

var errDeclined = errors.New("declined")

func newSide(t *testing.T, dir string, features api.CoreFeatures, metered bool) *side {
	r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigCompiler().WithCoreFeatures(features))
	t.Cleanup(func() { _ = r.Close(context.WithoutCancel(t.Context())) })
	host, err := os.ReadFile(filepath.Join(dir, "..", "..", "testdata", "spectest.wasm"))
	require.NoError(t, err)
	_, err = r.Instantiate(t.Context(), host)
	require.NoError(t, err)
	b := endless()
	b.slice = 8
	withMeter(t, r, b)
	return &side{runtime: r, metered: metered, modules: map[string]api.Module{}}
}

// instantiate gives why a module was not.
func (s *side) instantiate(ctx context.Context, module []byte, name string) (api.Module, error) {
	if s.metered {
		rewritten, err := Rewrite(module)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errDeclined, err)
		}
		module = rewritten.Module
	}
	m, err := s.runtime.InstantiateWithConfig(ctx, module, wazero.NewModuleConfig().WithName(name).WithStartFunctions())
	if err != nil || !s.metered {
		return m, err
	}
	enough(m)
	if _, err = m.ExportedFunction(Start).Call(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

func (s *side) named(name string) api.Module {
	if name != "" {
		return s.modules[name]
	}
	return s.last
}

// trapKind is what is compared of an error. Both kinds of exhaustion are one.
func trapKind(err error) string {
	if err == nil {
		return ""
	}
	if errors.Is(err, errDeep) {
		return "stack overflow"
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	if i := strings.LastIndex(first, ": "); i >= 0 {
		return first[i+len(": "):]
	}
	return first
}

// trapped says whether a module was refused by a trap in its start.
func trapped(err error) bool {
	return strings.Contains(err.Error(), "wasm error") || strings.Contains(err.Error(), "out of bounds memory access")
}

func runScript(t *testing.T, path string, features api.CoreFeatures, change func([]byte) []byte) (sum tally) {
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	var s script
	require.NoError(t, json.Unmarshal(raw, &s))
	dir := filepath.Dir(path)
	plain, metered := newSide(t, dir, features, false), newSide(t, dir, features, true)
	defer func() {
		_ = plain.runtime.Close(t.Context())
		_ = metered.runtime.Close(t.Context())
	}()

	for i, c := range s.Commands {
		differ := func(format string, args ...any) {
			sum.differences++
			t.Errorf("%s:%d %s: %s", filepath.Base(path), c.Line, c.Type, fmt.Sprintf(format, args...))
		}
		load := func(name string) (a, b api.Module, ok bool) {
			module, err := os.ReadFile(filepath.Join(dir, c.Filename))
			require.NoError(t, err)
			if change != nil {
				module = change(module)
			}
			a, before := plain.instantiate(t.Context(), module, name)
			b, after := metered.instantiate(t.Context(), module, name)
			switch {
			case before == nil && after == nil:
				sum.modules++
				return a, b, true
			case before != nil && after != nil:
				sum.refused++
				if x, y := trapKind(before), trapKind(after); trapped(before) && x != y {
					differ("traps %q and %q", x, y)
				}
			case errors.Is(after, errDeclined) && !errors.Is(after, ErrMalformed):
				sum.declined++
				t.Logf("%s:%d declined: %v", filepath.Base(path), c.Line, after)
			default:
				differ("instantiated with %v and %v", before, after)
			}
			return nil, nil, false
		}

		switch c.Type {
		case "module":
			name := ""
			if next := i + 1; next < len(s.Commands) && s.Commands[next].Type == "register" {
				name = s.Commands[next].As
			}
			plain.last, metered.last, _ = load(name)
			if c.Name != "" {
				plain.modules[c.Name], metered.modules[c.Name] = plain.last, metered.last
			}
		case "assert_malformed", "assert_invalid", "assert_unlinkable", "assert_uninstantiable":
			if c.ModuleType != "text" {
				load("")
			}
		case "assert_return", "assert_trap", "assert_exhaustion", "action":
			a, b := plain.named(c.Action.Module), metered.named(c.Action.Module)
			if a == nil {
				continue // declined
			}
			sum.invocations++
			if c.Action.Type == "get" {
				if x, y := a.ExportedGlobal(c.Action.Field).Get(), b.ExportedGlobal(c.Action.Field).Get(); x != y {
					differ("global %s is %#x and %#x", c.Action.Field, x, y)
				}
				continue
			}
			var args []uint64
			for _, v := range c.Action.Args {
				args = append(args, v.words(t)...)
			}
			f := b.ExportedFunction(c.Action.Field)
			enough(b)
			x, before := a.ExportedFunction(c.Action.Field).Call(t.Context(), args...)
			y, after := f.Call(t.Context(), args...)
			if trapKind(before) != trapKind(after) {
				differ("%s: traps %q and %q", c.Action.Field, trapKind(before), trapKind(after))
			}
			if before != nil {
				sum.traps++
			} else if !sameValues(f.Definition().ResultTypes(), x, y) {
				differ("%s: results %#x and %#x", c.Action.Field, x, y)
			}
			if x, y := contents(a), contents(b); !bytes.Equal(x, y) {
				differ("%s: memories of %d and %d bytes", c.Action.Field, len(x), len(y))
			}
		case "register":
		default:
			t.Fatalf("unknown command %s", c.Type)
		}
	}
	return sum
}

// sameValues compares results by their bits; function references are addresses,
// of which it is known only whether they are null.
func sameValues(types []api.ValueType, a, b []uint64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if len(types) == len(a) && types[i] == typeFunc {
			if (a[i] == 0) != (b[i] == 0) {
				return false
			}
		} else if a[i] != b[i] {
			return false
		}
	}
	return true
}

// contents are the first MiB and the size of a memory.
func contents(m api.Module) []byte {
	memory := m.Memory()
	if reflect.ValueOf(memory).IsNil() { // a typed one
		return nil
	}
	size := memory.Size()
	head, _ := memory.Read(0, min(size, 1<<20))
	return append(strconv.AppendUint(nil, uint64(size), 10), head...)
}

// unshared makes the memories of a module unshared, which the meter does not
// take, so that atomic instructions are run nonetheless.
func unshared(module []byte) []byte {
	r := reader{module, 8}
	for r.more() {
		id := r.byte()
		content := r.limit(r.u32())
		r.at = len(content.in)
		if id == sectionMemory && content.u32() == 1 && content.in[content.at] == 3 {
			changed := bytes.Clone(module)
			changed[content.at] = 1
			return changed
		}
	}
	return module
}
