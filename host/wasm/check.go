package wasm

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/wasm/meter"
)

func checkMagic(module []byte) error {
	if !bytes.HasPrefix(module, []byte("\x00asm")) {
		return ErrNotWasm
	}
	return nil
}

// check looks at the module before anything of it runs. All faults are told
// at once.
func (s *Stage) check() error {
	exports := s.code.Module.ExportedFunctions()
	_, command := exports["_start"]
	if _, ours := exports[abi.ExportCall]; command && !ours {
		return ErrCommand
	}
	return errors.Join(checkExports(s.code.Module), s.checkImports(), checkMemory(s.code.Module, s.cfg.Memory), s.checkSize(), s.checkState())
}

// checkState refuses state that would go from one call to the next.
func (s *Stage) checkState() error {
	if s.cfg.Shared || len(s.notes.Unheld) == 0 {
		return nil
	}
	var errs []error
	for _, use := range s.notes.Unheld[:min(len(s.notes.Unheld), maxUses)] {
		errs = append(errs, fmt.Errorf("%w: %s in function %d, at byte %#x", ErrUnheld, use.What, use.Function, use.Offset))
	}
	return errors.Join(errs...)
}

// maxUses is how many uses of one thing are told.
const maxUses = 5

type signature struct{ params, results []api.ValueType }

func (t signature) String() string {
	names := func(types []api.ValueType) string {
		list := make([]string, len(types))
		for i, v := range types {
			list[i] = api.ValueTypeName(v)
		}
		return "(" + strings.Join(list, ", ") + ")"
	}
	return names(t.params) + " -> " + names(t.results)
}

func signatureOf(f api.FunctionDefinition) signature {
	return signature{f.ParamTypes(), f.ResultTypes()}
}

func (t signature) equal(o signature) bool {
	return slices.Equal(t.params, o.params) && slices.Equal(t.results, o.results)
}

var i32, i64 = []api.ValueType{api.ValueTypeI32}, []api.ValueType{api.ValueTypeI64}

var abiExports = []struct {
	name     string
	sig      signature
	required bool
}{
	{abi.ExportABI, signature{nil, i64}, true},
	{abi.ExportCall, signature{i32, i64}, true},
	{abi.ExportConfigure, signature{nil, i32}, false},
	{abi.ExportInitialize, signature{nil, nil}, false},
	{"_start", signature{nil, nil}, false},
}

func checkExports(m wazero.CompiledModule) error {
	var errs []error
	functions := m.ExportedFunctions()
	for _, want := range abiExports {
		have, found := functions[want.name]
		switch {
		case !found && want.required:
			errs = append(errs, fmt.Errorf("%w: %s %s is missing", ErrExport, want.name, want.sig))
		case found && !signatureOf(have).equal(want.sig):
			errs = append(errs, fmt.Errorf("%w: %s is %s and should be %s", ErrExport, want.name, signatureOf(have), want.sig))
		}
	}
	if m.ExportedMemories()[abi.ExportMemory] == nil {
		errs = append(errs, fmt.Errorf("%w: %s is missing", ErrExport, abi.ExportMemory))
	}
	return errors.Join(errs...)
}

func checkMemory(m wazero.CompiledModule, limit uint64) error {
	if len(m.ImportedMemories()) > 0 {
		return fmt.Errorf("%w: a memory", ErrImport)
	}
	for _, memory := range m.ExportedMemories() {
		if least := uint64(memory.Min()) << 16; least > limit {
			return fmt.Errorf("%w: %d bytes to begin with, and the limit is %d", ErrMemory, least, limit)
		}
	}
	return nil
}

// What an instance may have beside its memory. A guest has one table of some
// thousand elements and a dozen globals; the most of these cost an instance 8
// MiB and a millisecond to make.
const (
	maxTables    = 8
	maxElements  = 1 << 17 // of all tables
	maxVariables = 4096    // globals
)

func (s *Stage) checkSize() error {
	n := &s.notes
	if n.Tables > maxTables || n.Elements > maxElements || n.Variables > maxVariables {
		return fmt.Errorf("%w: %d tables of %d elements and %d globals, and at most there are %d, %d and %d",
			ErrMemory, n.Tables, n.Elements, n.Variables, maxTables, maxElements, maxVariables)
	}
	return nil
}

// checkImports sees to it that every import exists and is granted.
func (s *Stage) checkImports() error {
	var errs []error
	for _, imported := range s.code.Module.ImportedFunctions() {
		module, name, _ := imported.Import()
		if module == meter.Module {
			continue
		}
		f := hostFunctions()[module+"."+name]
		switch {
		case f == nil:
			errs = append(errs, fmt.Errorf("%w: %s", ErrImport, onOneLine(module+"."+name)))
		case !signatureOf(imported).equal(f.sig):
			errs = append(errs, fmt.Errorf("%w: %s is imported as %s and is %s", ErrImport, f.fullName(), signatureOf(imported), f.sig))
		case f.grant != "" && !s.hasFamily(f.grant):
			errs = append(errs, fmt.Errorf("%w: %s needs the grant %s", ErrNotGranted, f.fullName(), grantForms[f.grant]))
		}
	}
	return errors.Join(errs...)
}

// onOneLine is a name that anybody gave, as it would stand in a text of Go: it
// cannot look like another fault.
func onOneLine(name string) string {
	quoted := strconv.Quote(name)
	return quoted[1 : len(quoted)-1]
}

var grantForms = map[string]string{
	"limit": "limit:NAME", "usage": "usage:read or usage:write", "kv": "kv:NAME", "claim": "claim:NAME", "secret": "secret:NAME",
}

func (s *Stage) hasFamily(family string) bool {
	return slices.ContainsFunc(s.cfg.Grants, func(g abi.Grant) bool { return g.Family == family })
}
