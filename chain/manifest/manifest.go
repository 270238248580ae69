package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookhost/hookhost/abi"
)

// What holds where the manifest says nothing.
const (
	DefaultTimeout       = 250 * time.Millisecond
	DefaultMemory        = 32 << 20 // bytes
	DefaultPool          = 16       // instances
	DefaultMaxModelCalls = 500
	DefaultStoreURL      = "memory://"
	DefaultNamespace     = "hookhost" // of memory://; the others need one of their own
	DefaultStoreTimeout  = 50 * time.Millisecond
	DefaultRefusal       = "The service cannot answer right now. Please try again later."
)

// Options change how a manifest is read.
type Options struct {
	Dev     bool                    // modules need no sha256
	Native  func(stage string) bool // stages that the program brings itself have no module; nil for none
	Env     string                  // lays hooks.ENV.toml, beside hooks.toml, over it
	Overlay string                  // lays this file over it; wins over Env
	// NoModules leaves the modules alone: they need not be there, Code is nil, and
	// the version is another one than a host's. It is for those who only work with
	// the store and the limits.
	NoModules bool
}

// Manifest is a checked hooks.toml, its overlay laid over it.
type Manifest struct {
	File          string
	Overlay       string  // the file that was laid over it; empty if there is none
	Stages        []Stage // in the order in which they run; those with mode off included
	Store         Store
	Limits        Limits
	MaxModelCalls int64  // of one run, from 1
	Version       string // 16 hex digits that change with the text, the overlay or a module that runs; plans have a version of their own

	sources []*source // the overlay, if there is one, then the manifest itself
}

// Limits says where the limits' numbers are.
type Limits struct {
	Plans  string // the path of plans.toml; empty if there is none
	FanOut int64  // how many model calls of one turn go on at once, at most; from 1
}

// Load reads the manifest at path, the overlay that the options name and the
// modules. What is wrong with them comes back as *Errors, all at once.
func Load(path string, o Options) (*Manifest, error) {
	data, err := ReadFile(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return Parse(path, data, o)
}

// Parse is Load for a text at hand. The name is the path that errors show and
// that the paths in the text are relative to.
func Parse(name string, data []byte, o Options) (*Manifest, error) {
	var f faults
	base, fault := parse(name, data)
	if fault != nil {
		f = append(f, fault)
	}
	over, fault := overlay(name, o)
	if fault != nil {
		f = append(f, fault)
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	sources := []*source{base}
	if over != nil {
		over.restrict(&f, base)
		sources = []*source{over, base}
	}
	m := &Manifest{File: name, sources: sources}
	if over != nil {
		m.Overlay = over.file
	}
	m.read(rootTable(&f, sources...), o)
	if err := f.err(); err != nil {
		return nil, err
	}
	m.Version = m.version()
	return m, nil
}

func unreadable(path string, err error) error {
	return &Errors{All: []*Error{(&Error{File: path}).describe("cannot be read: %w", reason(err))}}
}

// reason takes the path, which the error names already, out of a file error.
func reason(err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

func (m *Manifest) read(t *table, o Options) {
	need(t, "version", "write version = 1", asVersion)
	m.MaxModelCalls = read(t, "max_model_calls", DefaultMaxModelCalls, asInt(1, 1e6))
	m.Store = readStore(t.sub("store"))
	m.Limits = readLimits(t.sub("limits"))
	d := readDefaults(t.sub("defaults"))

	if !t.has("order") {
		t.errorf([]string{"order"}, "missing: list the stages in the order in which they run")
	}
	order := readList(t, "order", asName)
	stages := t.sub("stage")
	t.close()

	r := stageReader{defaults: d, dev: o.Dev, native: o.Native, noModules: o.NoModules, modules: map[string]module{}}
	listed, _ := t.layers[len(t.layers)-1].values["order"].([]any)
	for i, element := range listed {
		if name, _ := element.(string); abi.ValidName(name) && !stages.has(name) {
			t.errorf([]string{"order", strconv.Itoa(i)}, "no table [stage.%s]: write one or take the name out", name)
		}
	}
	for _, name := range order {
		if stages.has(name) {
			s := stages.sub(name).about("stage[" + name + "]")
			s.stage = name
			m.Stages = append(m.Stages, r.read(s, name, m.Store))
		}
	}
	for _, name := range stages.keys() {
		if !slices.Contains(order, name) {
			stages.sub(name).unlisted(name)
		}
	}
}

func asVersion(v any) (int64, error) {
	if n, _ := v.(int64); n != 1 {
		return 0, fmt.Errorf("%v is no version that this host reads: want 1", quote(v))
	}
	return 1, nil
}

// unlisted blames a stage that order leaves out.
func (t *table) unlisted(name string) {
	if !abi.ValidName(name) {
		t.errorf(nil, "%q is no name: want 1 to 64 of a-z, 0-9, _ and -", name)
		return
	}
	t.about("stage[" + name + "]").stage = name
	t.errorf(nil, `not in order: add it there; one that must not run stands there too, and has mode = "off"`)
}

func readLimits(t *table) Limits {
	defer t.close()
	return Limits{
		Plans:  readPath(t, "plans"),
		FanOut: read(t, "fan_out", 1, asInt(1, 1000)),
	}
}

// readPath takes the path of a file, relative to the one that names it.
func readPath(t *table, key string) string {
	path := read(t, key, "", asText)
	if path == "" {
		return ""
	}
	return t.sourceOf([]string{key}).beside(path)
}

// defaults are what a stage takes where it says nothing.
type defaults struct {
	timeout time.Duration
	memory  int64
	pool    int64
}

var (
	asTimeout = asDuration(time.Millisecond, 5*time.Minute)
	asPool    = asInt(1, 1024)
)

func readDefaults(t *table) defaults {
	defer t.close()
	return defaults{
		timeout: read(t, "timeout", DefaultTimeout, asTimeout),
		memory:  read(t, "memory", DefaultMemory, asMemory),
		pool:    read(t, "pool", DefaultPool, asPool),
	}
}

func (m *Manifest) version() string {
	h := sha256.New()
	for _, s := range m.sources {
		sum := sha256.Sum256(s.data)
		h.Write(sum[:])
	}
	for _, s := range m.Stages {
		h.Write([]byte(s.SHA256))
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// Errorf makes an error at a key of a stage, for those who find a fault later:
// imports beyond the grants, a module of another ABI, a guest that refuses its
// configuration. The key is dotted, below the stage: "grants", "module",
// "config.entities.0". One that the manifest does not have is blamed on the
// table around it; an empty one on the stage.
func (m *Manifest) Errorf(stage, key, format string, args ...any) *Error {
	e := m.faultAt("stage."+stage, key)
	e.Stage, e.Key, e.subject = stage, key, "stage["+stage+"]"
	return e.describe(format, args...)
}

// StoreErrorf is Errorf for a key of [store]: a password that is not there, a
// store that does not answer.
func (m *Manifest) StoreErrorf(key, format string, args ...any) *Error {
	e := m.faultAt("store", key)
	e.Key = "store." + key
	return e.describe(format, args...)
}

// faultAt looks for the key, in the overlay first, then for what is around it.
func (m *Manifest) faultAt(table, key string) *Error {
	for ; key != ""; key = parent(key) {
		for _, s := range m.sources {
			if at, found := s.places[table+"."+key]; found {
				return s.placeFault(at)
			}
		}
	}
	base := m.sources[len(m.sources)-1]
	if at, found := base.places[table]; found {
		return base.placeFault(at)
	}
	return &Error{File: m.File}
}

// parent takes the last part off a dotted key.
func parent(key string) string { return key[:max(0, strings.LastIndexByte(key, '.'))] }
