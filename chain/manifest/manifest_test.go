package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
)

// write makes a file in the folder and returns its path.
func write(t testing.TB, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// folder makes a folder with the module hook.wasm in it.
func folder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "hook.wasm", "\x00asm\x01\x00\x00\x00")
	return dir
}

// oneStage is a manifest with one stage. top goes before the first table, body
// into the stage.
func oneStage(top, body string) string {
	if !strings.Contains(body, "role =") {
		body = "role = \"transformer\"\n" + body
	}
	return "version = 1\norder = [\"one\"]\n" + top + "\n[stage.one]\nmodule = \"hook.wasm\"\n" + body + "\n"
}

// load reads a text as the hooks.toml of a folder, with unpinned modules.
func load(t testing.TB, text string) *Manifest {
	t.Helper()
	m, err := Load(write(t, folder(t), "hooks.toml", text), Options{Dev: true})
	require.NoError(t, err)
	return m
}

func TestFullManifest(t *testing.T) {
	m, err := Load("testdata/good/full.toml", Options{})
	require.NoError(t, err)

	assert.EqualValues(t, 20, m.MaxModelCalls)
	assert.Equal(t, Store{
		URL: "rediss://store:6379/2", Namespace: "support", Timeout: 20 * time.Millisecond, Replicas: 3, Pool: 20, DialTimeout: 200 * time.Millisecond,
		Username: Secret{Name: "username", Env: "STORE_USER"}, Password: Secret{Name: "password", File: "testdata/good/store.txt"},
		CA: "testdata/good/ca.pem", Cert: "testdata/good/host.pem", Key: "/etc/host.key",
	}, m.Store)
	assert.Equal(t, Limits{Plans: "testdata/good/plans.toml", FanOut: 8}, m.Limits)
	assert.Len(t, m.Version, 16)

	require.Len(t, m.Stages, 3)
	meter, limit, redact := m.Stages[0], m.Stages[1], m.Stages[2]

	assert.Equal(t, chain.Spec{
		Name: "meter", Role: chain.Observer, Mode: chain.Enforce, Timeout: 400 * time.Millisecond,
		OnError: chain.Open, OnLoadError: chain.Open, OnStore: chain.Open, Refusal: DefaultRefusal,
	}, meter.Spec)
	assert.EqualValues(t, 16<<20, meter.Memory)
	assert.Equal(t, 4, meter.Pool)
	assert.Equal(t, []abi.Grant{{Family: "usage", Name: "write"}}, meter.Grants)
	assert.False(t, meter.Output)

	assert.Equal(t, chain.Spec{
		Name: "ratelimit", Role: chain.Responder, Mode: chain.Shadow,
		Hooks: abi.SetOf(abi.BeforeRun, abi.BeforeModel, abi.Close),
		Apps:  []string{"support"}, Agents: []string{"triage", "billing_*"}, Tools: []string{"refund"}, Models: []string{"gemini-*"},
		Timeout: time.Second,
		OnError: chain.Open, OnLoadError: chain.Closed, OnStore: chain.Local,
		Refusal: "The service is busy. Please try again shortly.",
	}, limit.Spec)
	assert.EqualValues(t, 64<<10, limit.Memory)
	assert.Equal(t, 2, limit.Pool)
	assert.True(t, limit.Output)
	assert.True(t, limit.Pinned)
	assert.Equal(t, "testdata/modules/hook.wasm", limit.Module)
	assert.Equal(t, "93a44bbb96c751218e4c00d479e4c14358122a389acca16205b1e4d0dc5f9476", limit.SHA256)
	assert.Equal(t, "\x00asm\x01\x00\x00\x00", string(limit.Code))

	assert.Equal(t, []Setting{
		{"entities.0", "card"},
		{"entities.1", "email"},
		{"entities.2", "iban"},
		{"strict", "true"},
		{"hold", "32"},
		{"share", "1.0"},
		{"since", "2026-11-30T08:00:00Z"},
		{"day", "2026-11-30"},
		{`"odd key".x`, "y"},
		{"none", "[]"},
		{"rule.0.match", "a.b"},
		{"rule.1.match", "two\nlines"},
	}, redact.Config)
	assert.Equal(t, []Secret{{Name: "pii", Env: "PII_KEY"}, {Name: "salt", File: "testdata/good/salt.txt"}}, redact.Secrets)
}

// The documented defaults, and that redaction and limits are closed by them.
func TestCase034Defaults(t *testing.T) {
	for role, want := range map[string]chain.Policy{
		"observer": chain.Open, "transformer": chain.Closed, "responder": chain.Closed,
	} {
		s := load(t, oneStage("", "role = \""+role+"\"")).Stages[0].Spec
		assert.Equal(t, want, s.OnError, role)
		assert.Equal(t, want, s.OnLoadError, role)
		assert.Equal(t, want, s.OnStore, role)
	}
	m := load(t, oneStage("", ""))
	assert.Equal(t, Store{URL: "memory://", Namespace: "hookhost", Timeout: 50 * time.Millisecond, Replicas: 1}, m.Store)
	assert.EqualValues(t, 500, m.MaxModelCalls)
	assert.Equal(t, Limits{FanOut: 1}, m.Limits)
	s := m.Stages[0]
	assert.Equal(t, 250*time.Millisecond, s.Spec.Timeout)
	assert.EqualValues(t, 32<<20, s.Memory)
	assert.Equal(t, 16, s.Pool)
	assert.Equal(t, DefaultRefusal, s.Spec.Refusal)
	assert.False(t, s.Pinned)
}

// A policy that is misspelt does not load, and the error names the key.
func TestCase034MisspeltPolicy(t *testing.T) {
	for _, key := range []string{"on_error", "on_load_error", "on_store_error"} {
		_, err := Parse("hooks.toml", []byte(oneStage("", key+` = "opne"`)), Options{Dev: true})
		require.ErrorContains(t, err, "hooks.toml:7:")
		require.ErrorContains(t, err, `stage[one] `+key+`: unknown policy "opne": want open, closed`)
	}
}

func TestPoliciesThatAreUnsetFollowOnError(t *testing.T) {
	s := load(t, oneStage("", `on_error = "open"`)).Stages[0].Spec
	assert.Equal(t, chain.Open, s.OnLoadError)
	assert.Equal(t, chain.Open, s.OnStore)
}

// fields has one entry for each key of a manifest: the text that sets it and
// where the value arrives.
var fields = map[string]struct {
	top, body string
	want      any
	got       func(*Manifest) any
}{
	"max_model_calls":    {"max_model_calls = 7", "", int64(7), func(m *Manifest) any { return m.MaxModelCalls }},
	"store.url":          {"[store]\nurl = \"rediss://h\"\nnamespace = \"ns\"", "", "rediss://h", func(m *Manifest) any { return m.Store.URL }},
	"store.namespace":    {"[store]\nnamespace = \"ns\"", "", "ns", func(m *Manifest) any { return m.Store.Namespace }},
	"store.timeout":      {"[store]\ntimeout = \"7ms\"", "", 7 * time.Millisecond, func(m *Manifest) any { return m.Store.Timeout }},
	"store.replicas":     {"[store]\nreplicas = 7", "", 7, func(m *Manifest) any { return m.Store.Replicas }},
	"store.pool":         {"[store]\npool = 7", "", 7, func(m *Manifest) any { return m.Store.Pool }},
	"store.dial_timeout": {"[store]\ndial_timeout = \"7ms\"", "", 7 * time.Millisecond, func(m *Manifest) any { return m.Store.DialTimeout }},
	"store.username":     {"[store]\nusername = \"env:A\"", "", Secret{Name: "username", Env: "A"}, func(m *Manifest) any { return m.Store.Username }},
	"store.password":     {"[store]\npassword = \"env:A\"", "", Secret{Name: "password", Env: "A"}, func(m *Manifest) any { return m.Store.Password }},
	"store.ca":           {"[store]\nca = \"/ca.pem\"", "", "/ca.pem", func(m *Manifest) any { return m.Store.CA }},
	"store.cert":         {"[store]\ncert = \"/c.pem\"\nkey = \"/k.pem\"", "", "/c.pem", func(m *Manifest) any { return m.Store.Cert }},
	"store.key":          {"[store]\ncert = \"/c.pem\"\nkey = \"/k.pem\"", "", "/k.pem", func(m *Manifest) any { return m.Store.Key }},
	"limits.fan_out":     {"[limits]\nfan_out = 7", "", int64(7), func(m *Manifest) any { return m.Limits.FanOut }},
	"limits.plans":       {"[limits]\nplans = \"p.toml\"", "", "p.toml", func(m *Manifest) any { return filepath.Base(m.Limits.Plans) }},

	"defaults.timeout": {"[defaults]\ntimeout = \"77ms\"", "", 77 * time.Millisecond, func(m *Manifest) any { return m.Stages[0].Spec.Timeout }},
	"defaults.memory":  {"[defaults]\nmemory = \"1MiB\"", "", int64(1 << 20), func(m *Manifest) any { return m.Stages[0].Memory }},
	"defaults.pool":    {"[defaults]\npool = 7", "", 7, func(m *Manifest) any { return m.Stages[0].Pool }},

	"stage.role":           {"", `role = "responder"`, chain.Responder, func(m *Manifest) any { return m.Stages[0].Spec.Role }},
	"stage.mode":           {"", `mode = "off"`, chain.Off, func(m *Manifest) any { return m.Stages[0].Spec.Mode }},
	"stage.hooks":          {"", `hooks = ["close"]`, abi.SetOf(abi.Close), func(m *Manifest) any { return m.Stages[0].Spec.Hooks }},
	"stage.apps":           {"", `apps = ["a*"]`, []string{"a*"}, func(m *Manifest) any { return m.Stages[0].Spec.Apps }},
	"stage.agents":         {"", `agents = ["a*"]`, []string{"a*"}, func(m *Manifest) any { return m.Stages[0].Spec.Agents }},
	"stage.tools":          {"", `tools = ["a*"]`, []string{"a*"}, func(m *Manifest) any { return m.Stages[0].Spec.Tools }},
	"stage.models":         {"", `models = ["a*"]`, []string{"a*"}, func(m *Manifest) any { return m.Stages[0].Spec.Models }},
	"stage.timeout":        {"", `timeout = "1m"`, time.Minute, func(m *Manifest) any { return m.Stages[0].Spec.Timeout }},
	"stage.refusal":        {"", `refusal = "no"`, "no", func(m *Manifest) any { return m.Stages[0].Spec.Refusal }},
	"stage.on_error":       {"", `on_error = "open"`, chain.Open, func(m *Manifest) any { return m.Stages[0].Spec.OnError }},
	"stage.on_load_error":  {"", `on_load_error = "open"`, chain.Open, func(m *Manifest) any { return m.Stages[0].Spec.OnLoadError }},
	"stage.on_store_error": {"", `on_store_error = "open"`, chain.Open, func(m *Manifest) any { return m.Stages[0].Spec.OnStore }},
	"stage.grants":         {"", `grants = ["actions"]`, []abi.Grant{{Family: "actions"}}, func(m *Manifest) any { return m.Stages[0].Grants }},
	"stage.memory":         {"", `memory = "2GiB"`, int64(2 << 30), func(m *Manifest) any { return m.Stages[0].Memory }},
	"stage.pool":           {"", `pool = 3`, 3, func(m *Manifest) any { return m.Stages[0].Pool }},
	"stage.isolation":      {"", `isolation = "none"`, IsolationNone, func(m *Manifest) any { return m.Stages[0].Isolation }},
	"stage.output":         {"", `output = true`, true, func(m *Manifest) any { return m.Stages[0].Output }},
	"stage.module":         {"", "", "hook.wasm", func(m *Manifest) any { return filepath.Base(m.Stages[0].Module) }},
	"stage.sha256": {
		"", `sha256 = "93a44bbb96c751218e4c00d479e4c14358122a389acca16205b1e4d0dc5f9476"`, true,
		func(m *Manifest) any { return m.Stages[0].Pinned },
	},
	"stage.config":  {"", `config = { a = 1 }`, []Setting{{"a", "1"}}, func(m *Manifest) any { return m.Stages[0].Config }},
	"stage.secrets": {"", "grants = [\"secret:a\"]\nsecrets = { a = \"env:A\" }", []Secret{{Name: "a", Env: "A"}}, func(m *Manifest) any { return m.Stages[0].Secrets }},
}

func TestEveryFieldArrives(t *testing.T) {
	for key, field := range fields {
		t.Run(key, func(t *testing.T) {
			assert.Equal(t, field.want, field.got(load(t, oneStage(field.top, field.body))))
		})
	}
}

// What the reader allows is what TestEveryFieldArrives tests.
func TestNoFieldIsForgotten(t *testing.T) {
	known := func(text, prefix string) {
		_, err := Parse("hooks.toml", []byte(text), Options{Dev: true})
		require.Error(t, err)
		_, names, found := strings.Cut(err.Error(), "unknown key: want ")
		require.True(t, found, err)
		names, _, _ = strings.Cut(names, "\n")
		for _, name := range strings.Split(names, ", ") {
			switch prefix + name {
			case "version", "order", "store", "limits", "defaults", "stage": // seen in every test, or tables
			default:
				assert.Contains(t, fields, prefix+name)
			}
		}
	}
	known(oneStage("bad = 1", ""), "")
	known(oneStage("[store]\nbad = 1", ""), "store.")
	known(oneStage("[limits]\nbad = 1", ""), "limits.")
	known(oneStage("[defaults]\nbad = 1", ""), "defaults.")
	known(oneStage("", "bad = 1"), "stage.")
}

func TestOneModuleServesSeveralStages(t *testing.T) {
	m := load(t, "version = 1\norder = [\"b\", \"a\"]\n[stage]\n"+
		"a = { module = \"hook.wasm\", role = \"observer\" }\nb = { module = \"hook.wasm\", role = \"responder\" }\n")
	require.Len(t, m.Stages, 2)
	assert.Equal(t, "b", m.Stages[0].Spec.Name, "order decides, not the place of the table")
	assert.Same(t, &m.Stages[0].Code[0], &m.Stages[1].Code[0], "read once")
}

func TestEmptyChainIsAllowed(t *testing.T) {
	assert.Empty(t, load(t, "version = 1\norder = []\n").Stages)
}

func TestVersionChangesWithTextOverlayAndModule(t *testing.T) {
	dir := folder(t)
	path := write(t, dir, "hooks.toml", oneStage("", ""))
	seen := map[string]string{}
	check := func(what string, o Options) {
		o.Dev = true
		m, err := Load(path, o)
		require.NoError(t, err)
		assert.NotContains(t, seen, m.Version, what)
		seen[m.Version] = what
	}
	check("as it was", Options{})
	overlay := write(t, dir, "hooks.prod.toml", "max_model_calls = 3\n")
	check("overlay", Options{Overlay: overlay})
	write(t, dir, "hook.wasm", "another")
	check("module", Options{})
	write(t, dir, "hooks.toml", oneStage("# a comment", ""))
	check("text", Options{})
}

// A stage that is off runs nowhere: neither its module nor its hash matters.
func TestOffNeedsNoModule(t *testing.T) {
	const body = "sha256 = \"0000000000000000000000000000000000000000000000000000000000000000\"\n"
	for name, text := range map[string]string{
		"absent":       strings.Replace(oneStage("", "MODE"), "hook.wasm", "nowhere.wasm", 1),
		"another hash": oneStage("", body+"MODE"),
		"unpinned":     oneStage("", "MODE"),
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			_, err := Load(write(t, dir, "on.toml", strings.ReplaceAll(text, "MODE", "")), Options{})
			require.Error(t, err)

			m, err := Load(write(t, dir, "off.toml", strings.ReplaceAll(text, "MODE", `mode = "off"`)), Options{})
			require.NoError(t, err)
			assert.Equal(t, chain.Off, m.Stages[0].Spec.Mode)

			write(t, dir, "on.prod.toml", "[stage.one]\nmode = \"off\"\n")
			m, err = Load(filepath.Join(dir, "on.toml"), Options{Env: "prod"})
			require.NoError(t, err, "an overlay can put it off too")
			assert.Equal(t, chain.Off, m.Stages[0].Spec.Mode)
			assert.Equal(t, filepath.Join(dir, "on.prod.toml"), m.Overlay)

			write(t, dir, "off.prod.toml", "[stage.one]\nmode = \"enforce\"\n")
			_, err = Load(filepath.Join(dir, "off.toml"), Options{Env: "prod"})
			require.Error(t, err, "and on again, where it needs its module")
		})
	}
}

// Who only works with the store needs neither the modules nor the stages that
// a program brings.
func TestModulesCanBeLeftAlone(t *testing.T) {
	path := write(t, t.TempDir(), "hooks.toml", "version = 1\norder = [\"a\", \"b\"]\n"+
		"[stage.a]\nmodule = \"nowhere.wasm\"\nrole = \"observer\"\n[stage.b]\nrole = \"observer\"\n")
	_, err := Load(path, Options{})
	require.Error(t, err)

	m, err := Load(path, Options{NoModules: true})
	require.NoError(t, err)
	assert.Len(t, m.Stages, 2)
	assert.Nil(t, m.Stages[0].Code)
}

func TestOverlayWins(t *testing.T) {
	dir := folder(t)
	path := write(t, dir, "hooks.toml", oneStage("max_model_calls = 5\n[store]\nnamespace = \"base\"\nreplicas = 2", "mode = \"enforce\"\nmemory = \"1MiB\""))
	write(t, dir, "hooks.prod.toml", `
max_model_calls = 9
[store]
namespace = "prod"
[limits]
plans = "plans.prod.toml"
[stage.one]
mode = "shadow"
timeout = "2s"
refusal = "later"
on_error = "open"
on_load_error = "closed"
on_store_error = "closed"
`)
	m, err := Load(path, Options{Dev: true, Env: "prod"})
	require.NoError(t, err)
	assert.EqualValues(t, 9, m.MaxModelCalls)
	assert.Equal(t, "prod", m.Store.Namespace)
	assert.Equal(t, 2, m.Store.Replicas, "what the overlay leaves alone stays")
	assert.Equal(t, filepath.Join(dir, "plans.prod.toml"), m.Limits.Plans)
	s := m.Stages[0]
	assert.Equal(t, chain.Shadow, s.Spec.Mode)
	assert.Equal(t, 2*time.Second, s.Spec.Timeout)
	assert.Equal(t, "later", s.Spec.Refusal)
	assert.Equal(t, []chain.Policy{chain.Open, chain.Closed, chain.Closed}, []chain.Policy{s.Spec.OnError, s.Spec.OnLoadError, s.Spec.OnStore})
	assert.EqualValues(t, 1<<20, s.Memory)

	assert.Contains(t, m.Errorf("one", "mode", "x").Error(), "hooks.prod.toml:8:8: stage[one] mode: x", "blamed where it was set")
	assert.Contains(t, m.Errorf("one", "memory", "x").Error(), "hooks.toml:11:10: stage[one] memory: x")
}

func TestErrorsOfOthersGetAPosition(t *testing.T) {
	m, err := Load("testdata/good/full.toml", Options{})
	require.NoError(t, err)
	for key, want := range map[string]string{
		"":                     "48:2: stage[redact]: no",
		"module":               "49:10: stage[redact] module: no",
		"grants.1":             "52:25: stage[redact] grants.1: no",
		"config.entities.2":    "54:30: stage[redact] config.entities.2: no",
		`config."odd key".x`:   `60:15: stage[redact] config."odd key".x: no`,
		"config.rule.1.match":  "65:9: stage[redact] config.rule.1.match: no",
		"config.rule.1.absent": "64:3: stage[redact] config.rule.1.absent: no",
		"config.entities.9":    "54:12: stage[redact] config.entities.9: no",
		"config.missing":       "53:2: stage[redact] config.missing: no",
		"nothing.like.it":      "48:2: stage[redact] nothing.like.it: no",
	} {
		assert.Equal(t, "testdata/good/full.toml:"+want, m.Errorf("redact", key, "no").Error())
	}
	cause := m.Errorf("redact", "module", "cannot run: %w", os.ErrInvalid)
	require.ErrorIs(t, cause, os.ErrInvalid)
	assert.Equal(t, "testdata/good/full.toml: stage[ghost] x: no", m.Errorf("ghost", "x", "no").Error())
}

func TestRenderKeepsTabsAndWideCharacters(t *testing.T) {
	_, err := Parse("hooks.toml", []byte("\tversion = 1 # ünïcode\norder = [\"one\"]\n[stage.one]\nmodule='x'\nrole='observer'\n\trefusal = \"\" # ü\n"), Options{Dev: true})
	var all *Errors
	require.ErrorAs(t, err, &all)
	assert.Contains(t, all.Render(), "hooks.toml:6:12: stage[one] refusal: empty: write a text or leave the key out\n"+
		"  6 | \trefusal = \"\" # ü\n"+
		"    | \t          ^^\n")
}

func TestByteOrderMarkAndCRLF(t *testing.T) {
	text := "\xef\xbb\xbf" + strings.ReplaceAll(oneStage("", "roel = 1"), "\n", "\r\n")
	_, err := Parse("hooks.toml", []byte(text), Options{Dev: true})
	require.ErrorContains(t, err, "hooks.toml:7:1: stage[one] roel: unknown key")
	_, err = Parse("hooks.toml", []byte("\xef\xbb\xbfversion = \r\n"), Options{})
	require.ErrorContains(t, err, "hooks.toml:1:")
}

func TestSecrets(t *testing.T) {
	dir := folder(t)
	write(t, dir, "key.txt", "from the file\r\n")
	text := oneStage("", "grants = [\"secret:a\", \"secret:b\"]\nsecrets = { a = \"env:HOOKHOST_TEST_A\", b = \"file:key.txt\" }")
	m, err := Load(write(t, dir, "hooks.toml", text), Options{Dev: true})
	require.NoError(t, err, "loading needs no secret")

	t.Setenv("HOOKHOST_TEST_A", "from the environment")
	got, err := m.ReadSecrets(&m.Stages[0])
	require.NoError(t, err)
	assert.Equal(t, map[string][]byte{"a": []byte("from the environment"), "b": []byte("from the file")}, got)

	t.Setenv("HOOKHOST_TEST_A", "")
	write(t, dir, "key.txt", "\n")
	_, err = m.ReadSecrets(&m.Stages[0])
	var all *Errors
	require.ErrorAs(t, err, &all)
	require.Len(t, all.All, 2)
	require.ErrorContains(t, err, "hooks.toml:8:17: stage[one] secrets.a: the environment variable HOOKHOST_TEST_A is not set")
	require.ErrorContains(t, err, "is empty")

	require.NoError(t, os.Remove(filepath.Join(dir, "key.txt")))
	_, err = m.ReadSecrets(&m.Stages[0])
	require.ErrorContains(t, err, "stage[one] secrets.b:")
}

func TestModuleOfTooManyBytes(t *testing.T) {
	dir := folder(t)
	require.NoError(t, os.Truncate(filepath.Join(dir, "hook.wasm"), MaxModule+1))
	_, err := Load(write(t, dir, "hooks.toml", oneStage("", "")), Options{Dev: true})
	require.ErrorContains(t, err, fmt.Sprintf("more than %d bytes", MaxModule))
}

// Whatever the text, reading it ends in a manifest or in errors that say where.
func FuzzParse(f *testing.F) {
	full, err := os.ReadFile("testdata/good/full.toml")
	require.NoError(f, err)
	f.Add(full)
	bad, err := filepath.Glob("testdata/bad/*.toml")
	require.NoError(f, err)
	for _, path := range bad {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(data)
	}
	dir := folder(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse(filepath.Join(dir, "hooks.toml"), data, Options{Dev: true})
		if err == nil {
			require.NotEmpty(t, m.Version)
			return
		}
		var all *Errors
		require.ErrorAs(t, err, &all)
		require.NotEmpty(t, all.All)
		require.NotEmpty(t, all.Render())
	})
}
