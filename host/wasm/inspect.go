package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/host/wasm/meter"
)

// Info is what can be told about a module without running it.
type Info struct {
	Size      int    // bytes of the file
	SHA256    string // of the file, in hex
	ABI       int    // 0 where it exports none that is known
	Origin    Origin
	Imports   []Import
	Exports   []string   // NAME with the signature
	Grants    []string   // what a stage of this module has to be granted, in its general form
	Role      chain.Role // the least that does what its imports are for; a guest that only waits imports nothing for it
	Unheld    []string   // state that an instance cannot be reset from, so that only isolation = "none" takes the module
	Memory    uint64     // bytes to begin with
	MaxMemory uint64     // bytes that it may grow to by its own word; 0 where it does not say
}

// Import is a function that a module imports.
type Import struct {
	Name      string // MODULE.NAME
	Signature string
	Grant     string // what it needs, in its general form; empty for nothing
}

// Inspect compiles a module. It fails for what is no Wasm module, and for one
// that the sandbox cannot run. The name is the file's.
func (r *Runtime) Inspect(ctx context.Context, name string, module []byte) (info Info, err error) {
	code, err := r.compile(ctx, name, module)
	if err != nil {
		return Info{}, err
	}
	defer func() { err = errors.Join(err, code.Close(ctx)) }()
	sum := sha256.Sum256(module)
	info = Info{Size: len(module), SHA256: hex.EncodeToString(sum[:]), Origin: originOf(module), Role: chain.Observer}
	info.readImports(code.Module)
	info.readExports(code.Module)
	return info, info.readNotes(code.Notes)
}

func (info *Info) readNotes(text []byte) error {
	var notes notes
	if err := json.Unmarshal(text, &notes); err != nil {
		return fmt.Errorf("notes on the compiled module: %w", err)
	}
	for _, use := range notes.Unheld {
		info.Unheld = append(info.Unheld, fmt.Sprintf("%s in function %d, at byte %#x", use.What, use.Function, use.Offset))
	}
	return nil
}

func (info *Info) readImports(m wazero.CompiledModule) {
	table := map[string]hostfn.Function{}
	for _, f := range hostfn.Table() {
		table[f.Module+"."+f.Name] = f
	}
	needs := map[string]bool{}
	for _, f := range m.ImportedFunctions() {
		from, name, _ := f.Import()
		if from == meter.Module {
			continue
		}
		imported := Import{Name: from + "." + name, Signature: signatureOf(f).String()}
		function := table[imported.Name]
		if function.Grant != "" {
			imported.Grant = grantFor(function.Import)
			needs[imported.Grant] = true
		}
		info.Imports = append(info.Imports, imported)
		info.Role = max(info.Role, roleFor(function.Import))
	}
	info.Grants = slices.Sorted(maps.Keys(needs))
}

// grantFor is what a function needs, with NAME where the manifest names one.
func grantFor(f abi.Import) string {
	switch {
	case f.Grant != "usage":
		return grantForms[f.Grant]
	case f.Name == "sum":
		return "usage:read"
	}
	return "usage:write"
}

// roleFor is the least role in which a function is of use.
func roleFor(f abi.Import) chain.Role {
	switch f.Module + "." + f.Name {
	case "hookhost.answer", "hookhost.refuse":
		return chain.Responder
	case "hookhost.leaf_splice", "hookhost.leaf_hold", "hookhost.edit":
		return chain.Transformer
	}
	if (abi.Grant{Family: f.Grant}).Changes() && f.Grant != "" {
		return chain.Transformer // an observer may not hold the grant
	}
	return chain.Observer
}

func (info *Info) readExports(m wazero.CompiledModule) {
	exports := m.ExportedFunctions()
	for _, name := range slices.Sorted(maps.Keys(exports)) {
		if !strings.HasPrefix(name, meter.Module+".") {
			info.Exports = append(info.Exports, name+" "+signatureOf(exports[name]).String())
		}
	}
	if exports[abi.ExportABI] != nil {
		info.ABI = abi.Version
	}
	if memory := m.ExportedMemories()[abi.ExportMemory]; memory != nil {
		info.Memory = uint64(memory.Min()) << 16
		if most, said := memory.Max(); said {
			info.MaxMemory = uint64(most) << 16
		}
	}
}

// EveryGrant is one of each family, which lets any module load. None of them
// has a name, so that its functions give nothing.
func EveryGrant() []abi.Grant {
	var all []abi.Grant
	for _, family := range slices.Sorted(maps.Keys(grantForms)) {
		all = append(all, abi.Grant{Family: family})
	}
	return all
}

// Hopeless reports whether an error of Load is one that no manifest can mend.
func Hopeless(err error) bool {
	return slices.ContainsFunc([]error{ErrNotWasm, ErrInvalid, ErrCommand, ErrExport, ErrImport, ErrFeature, ErrHooks},
		func(fault error) bool { return errors.Is(err, fault) })
}

// Observed is a stage that tells what its last call used. It serves one call
// at a time.
type Observed struct {
	*Stage
	Fuel   int64  // a measure of the instructions, see package meter
	Memory uint64 // bytes of the guest's memory
}

// Call is that of the stage.
func (o *Observed) Call(ctx context.Context, ev *abi.Event) (abi.Verdict, error) {
	return o.Stage.call(ctx, ev, func(in instance) {
		g := in.(*guest)
		o.Fuel, o.Memory = g.budget.fuel, uint64(g.module.Memory().Size())
	})
}
