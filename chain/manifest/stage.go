package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
)

// Stage is what the manifest says about one stage and its module.
type Stage struct {
	Spec    chain.Spec
	Module  string // the path of the module; empty for a native stage
	Code    []byte // the module, as it was read for the hash; not to be changed; nil for a stage that is off
	SHA256  string // of Code, in hex
	Pinned  bool   // the manifest gives the hash
	Grants  []abi.Grant
	Config  []Setting // in the order of the document
	Secrets []Secret
	Memory  int64 // bytes that an instance may have, whole Wasm pages
	Pool    int   // instances at most
	Output  bool  // the guest's output and log are shown, not only counted

	Isolation Isolation
}

// Isolation says what a call of a stage may find of the calls before it in the
// memory of its instance.
type Isolation uint8

// The kinds of isolation.
const (
	IsolationCall Isolation = 1 + iota // nothing
	IsolationNone                      // what they left there
)

// UnmarshalText reads a kind of isolation by its name.
func (i *Isolation) UnmarshalText(text []byte) error {
	switch string(text) {
	case "call":
		*i = IsolationCall
	case "none":
		*i = IsolationNone
	default:
		return fmt.Errorf("unknown isolation %q: want call, none", text)
	}
	return nil
}

// stageReader reads the stages of one manifest.
type stageReader struct {
	defaults  defaults
	dev       bool
	native    func(stage string) bool
	noModules bool
	modules   map[string]module // read once, however many stages a module serves
}

func (r *stageReader) read(t *table, name string, store Store) Stage {
	defer t.close()
	s := Stage{
		Spec:   readSpec(t, name, r.defaults),
		Grants: readList(t, "grants", asGrant),
		Memory: read(t, "memory", r.defaults.memory, asMemory),
		Pool:   int(read(t, "pool", r.defaults.pool, asPool)),
		Output: read(t, "output", false, asBool),

		Isolation: read(t, "isolation", IsolationCall, as[Isolation]),
	}
	switch {
	case r.noModules:
		t.known = append(t.known, "module", "sha256")
	case r.native == nil || !r.native(name):
		r.readModule(t, &s)
	}
	s.Config = readConfig(t)
	s.Secrets = readSecrets(t.sub("secrets"))

	checkGrants(t, s)
	checkSecrets(t, s)
	checkTimeout(t, s, store)
	return s
}

// checkTimeout keeps a slow store from looking like a slow stage: the policies
// tell the two apart.
func checkTimeout(t *table, s Stage, store Store) {
	if l := t.layerOf("timeout"); l != nil {
		if _, err := asTimeout(l.values["timeout"]); err != nil {
			return // blamed already
		}
	}
	if s.Spec.Timeout <= store.Timeout {
		t.errorf([]string{"timeout"}, "%s is not above the store's timeout of %s: raise it or lower store.timeout",
			short(s.Spec.Timeout), short(store.Timeout))
	}
}

func readSpec(t *table, name string, d defaults) chain.Spec {
	s := chain.Spec{
		Name:    name,
		Role:    need(t, "role", "want observer, transformer, responder", as[chain.Role]),
		Mode:    read(t, "mode", chain.Enforce, as[chain.Mode]),
		Hooks:   readHooks(t),
		Apps:    readGlobs(t, "apps"),
		Agents:  readGlobs(t, "agents"),
		Tools:   readGlobs(t, "tools"),
		Models:  readGlobs(t, "models"),
		Timeout: read(t, "timeout", d.timeout, asTimeout),
		Refusal: read(t, "refusal", DefaultRefusal, asPublicText),
	}
	s.OnError = read(t, "on_error", defaultPolicy(s.Role), asSkipOrClose)
	s.OnLoadError = read(t, "on_load_error", s.OnError, asSkipOrClose)
	s.OnStore = read(t, "on_store_error", s.OnError, as[chain.Policy])
	return s
}

func defaultPolicy(r chain.Role) chain.Policy {
	if r == chain.Observer {
		return chain.Open
	}
	return chain.Closed
}

// asSkipOrClose wants a policy for a failure that has nothing to do with the
// store.
func asSkipOrClose(v any) (chain.Policy, error) {
	p, err := as[chain.Policy](v)
	if err == nil && p == chain.Local {
		return 0, errors.New(`"local" is for on_store_error only: want open, closed`)
	}
	if err != nil {
		return 0, fmt.Errorf("%s", strings.TrimSuffix(err.Error(), ", "+chain.Local.String()))
	}
	return p, nil
}

func readHooks(t *table) abi.HookSet {
	hooks := readList(t, "hooks", asHook)
	if hooks != nil && len(hooks) == 0 {
		t.empty("hooks")
	}
	return abi.SetOf(hooks...)
}

func readGlobs(t *table, key string) []string {
	globs := readList(t, key, asGlob)
	if globs != nil && len(globs) == 0 {
		t.empty(key)
	}
	return globs
}

// empty blames a list that says nothing, unless its elements were blamed.
func (t *table) empty(key string) {
	if l := t.layerOf(key); len(l.values[key].([]any)) == 0 {
		t.errorf([]string{key}, "an empty list would match nothing: leave the key out to match all")
	}
}

// checkGrants sees to it that a stage holds no grant that its role forbids or
// that its policy lacks.
func checkGrants(t *table, s Stage) {
	limits := false
	for i, g := range rawGrants(t) {
		limits = limits || g.Family == "limit"
		if s.Spec.Role == chain.Observer && g.Changes() {
			t.errorf([]string{"grants", fmt.Sprint(i)}, "an observer may not hold %s, which changes what others see: take the grant out or make the stage a transformer or responder", g)
		}
	}
	if s.Spec.OnStore == chain.Local && !limits {
		t.errorf([]string{"on_store_error"}, "local needs a limit: without a limit:NAME grant want open or closed")
	}
}

// checkSecrets sees to it that each secret has a grant and each grant a
// secret.
func checkSecrets(t *table, s Stage) {
	for i, g := range rawGrants(t) {
		named := func(x Secret) bool { return x.Name == g.Name }
		if g.Family == "secret" && !slices.ContainsFunc(s.Secrets, named) && !t.hasIn("secrets", g.Name) {
			t.errorf([]string{"grants", fmt.Sprint(i)}, "no secret of that name: add %s = \"env:VAR\" or \"file:PATH\" to [stage.%s.secrets]", g.Name, s.Spec.Name)
		}
	}
	for _, x := range s.Secrets {
		if !slices.Contains(s.Grants, abi.Grant{Family: "secret", Name: x.Name}) {
			t.errorf([]string{"secrets", x.Name}, "not granted: add \"secret:%s\" to the stage's grants or take the secret out", x.Name)
		}
	}
}

// rawGrants gives the grants by their place in the document, without those
// that do not parse.
func rawGrants(t *table) map[int]abi.Grant {
	grants := map[int]abi.Grant{}
	if l := t.layerOf("grants"); l != nil {
		elements, _ := l.values["grants"].([]any)
		for i, element := range elements {
			if g, err := asGrant(element); err == nil {
				grants[i] = g
			}
		}
	}
	return grants
}

// hasIn reports whether the table at key has the name.
func (t *table) hasIn(key, name string) bool {
	l := t.layerOf(key)
	if l == nil {
		return false
	}
	values, _ := l.values[key].(map[string]any)
	return values[name] != nil
}

// module is a file of Wasm.
type module struct {
	code []byte
	hash string
	err  error
}

// MaxModule bounds the size of a module's file, in bytes.
const MaxModule = 64 << 20

// readModule reads the stage's module and compares its hash. That of a stage
// that is off runs nowhere, so it needs not be there.
func (r *stageReader) readModule(t *table, s *Stage) {
	path := need(t, "module", "give the path of the .wasm file", asText)
	pin := read(t, "sha256", "", asHash)
	s.Pinned = pin != ""
	if path == "" {
		return
	}
	s.Module = t.sourceOf([]string{"module"}).beside(path)
	if s.Spec.Mode == chain.Off {
		return
	}
	m, known := r.modules[s.Module]
	if !known {
		m = openModule(s.Module)
		r.modules[s.Module] = m
	}
	s.Code, s.SHA256 = m.code, m.hash
	switch {
	case m.err != nil:
		t.errorf([]string{"module"}, "%s cannot be read: %w", s.Module, m.err)
	case s.Pinned && pin != m.hash:
		t.errorf([]string{"sha256"}, "the module is another one, with the hash %s: run hookhost pin if that is meant", m.hash)
	case !t.has("sha256") && !r.dev:
		t.errorf([]string{"module"}, "not pinned: run hookhost pin, or pass --dev (in Go Options.Dev) while the module changes")
	}
}

// ReadModule reads a file of at most MaxModule bytes, as Load reads modules.
func ReadModule(path string) ([]byte, error) { return readFile(path, MaxModule) }

func openModule(path string) module {
	code, err := ReadModule(path)
	if err != nil {
		return module{err: reason(err)}
	}
	sum := sha256.Sum256(code)
	return module{code: code, hash: hex.EncodeToString(sum[:])}
}

func asHash(v any) (string, error) {
	s, is := v.(string)
	if !is {
		return "", mismatch("a hash", v)
	}
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != sha256.Size || s != strings.ToLower(s) {
		return "", errors.New("no SHA-256: want 64 digits of 0-9 and a-f, as hookhost pin writes them")
	}
	return s, nil
}
