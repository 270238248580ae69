package manifest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const hookHash = "93a44bbb96c751218e4c00d479e4c14358122a389acca16205b1e4d0dc5f9476" // of folder's hook.wasm

func TestPinChangesNothingButTheHash(t *testing.T) {
	old := strings.Repeat("0", 64)
	for name, c := range map[string]struct{ before, after string }{
		"absent": {
			"[stage.a]\n  module   =   \"hook.wasm\"   # the module\n  role = \"observer\"\n",
			"[stage.a]\n  module   =   \"hook.wasm\"   # the module\n  sha256 = \"HASH\"\n  role = \"observer\"\n",
		},
		"present":                {"[stage.a]\nsha256=\"OLD\" # pin\nmodule=\"hook.wasm\"\n", "[stage.a]\nsha256=\"HASH\" # pin\nmodule=\"hook.wasm\"\n"},
		"single quotes":          {"[stage.a]\nmodule = 'hook.wasm'\nsha256 = 'OLD'", "[stage.a]\nmodule = 'hook.wasm'\nsha256 = 'HASH'"},
		"many quotes":            {"[stage.a]\nmodule = 'hook.wasm'\nsha256 = \"\"\"\nOLD\"\"\"\n", "[stage.a]\nmodule = 'hook.wasm'\nsha256 = \"HASH\"\n"},
		"empty":                  {"[stage.a]\nmodule = \"hook.wasm\"\nsha256 = \"\"\n", "[stage.a]\nmodule = \"hook.wasm\"\nsha256 = \"HASH\"\n"},
		"no end of line":         {"[stage.a]\nmodule = \"hook.wasm\"", "[stage.a]\nmodule = \"hook.wasm\"\nsha256 = \"HASH\""},
		"CRLF":                   {"[stage.a]\r\nmodule = \"hook.wasm\" # m\r\nrole = 1\r\n", "[stage.a]\r\nmodule = \"hook.wasm\" # m\r\nsha256 = \"HASH\"\r\nrole = 1\r\n"},
		"CRLF at the end":        {"[stage.a]\r\nmodule = \"hook.wasm\"", "[stage.a]\r\nmodule = \"hook.wasm\"\r\nsha256 = \"HASH\""},
		"inline table":           {"stage.a = { module = \"hook.wasm\", role = \"observer\" }\n", "stage.a = { module = \"hook.wasm\", sha256 = \"HASH\", role = \"observer\" }\n"},
		"last in inline table":   {"stage = { a = { module = \"hook.wasm\" } }", "stage = { a = { module = \"hook.wasm\", sha256 = \"HASH\" } }"},
		"dotted key":             {"stage.a . module = \"hook.wasm\"\n", "stage.a . module = \"hook.wasm\"\nstage.a . sha256 = \"HASH\"\n"},
		"byte order mark":        {"\xef\xbb\xbfstage.a.module = \"hook.wasm\"\n", "\xef\xbb\xbfstage.a.module = \"hook.wasm\"\nstage.a.sha256 = \"HASH\"\n"},
		"two stages, two places": {"[stage.a]\nmodule = \"hook.wasm\"\n\n[stage.b]\nsha256 = \"OLD\"\nmodule = \"hook.wasm\"\n", "[stage.a]\nmodule = \"hook.wasm\"\nsha256 = \"HASH\"\n\n[stage.b]\nsha256 = \"HASH\"\nmodule = \"hook.wasm\"\n"},
		"a key like it":          {"[stage.a]\nmodule = \"hook.wasm\"\n[stage.a.config]\nsha256 = \"OLD\"\n", "[stage.a]\nmodule = \"hook.wasm\"\nsha256 = \"HASH\"\n[stage.a.config]\nsha256 = \"OLD\"\n"},
	} {
		t.Run(name, func(t *testing.T) {
			fill := strings.NewReplacer("OLD", old, "HASH", hookHash).Replace
			path := write(t, folder(t), "hooks.toml", fill(c.before))
			changed, err := Pin(path)
			require.NoError(t, err)
			require.NotEmpty(t, changed)
			assert.Equal(t, "a", changed[0].Stage)
			assert.Equal(t, hookHash, changed[0].New)
			got, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, fill(c.after), string(got))

			again, err := Pin(path)
			require.NoError(t, err)
			assert.Empty(t, again)
			same, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, string(got), string(same))
		})
	}
}

func TestPinMakesAManifestLoad(t *testing.T) {
	path := write(t, folder(t), "hooks.toml", oneStage("", ""))
	_, err := Load(path, Options{})
	require.ErrorContains(t, err, "not pinned")
	_, err = Pin(path)
	require.NoError(t, err)
	m, err := Load(path, Options{})
	require.NoError(t, err)
	assert.True(t, m.Stages[0].Pinned)
}

func TestPinKeepsModeAndLink(t *testing.T) {
	dir := folder(t)
	path := write(t, dir, "real.toml", oneStage("", ""))
	require.NoError(t, os.Chmod(path, 0o640))
	link := filepath.Join(dir, "hooks.toml")
	require.NoError(t, os.Symlink("real.toml", link))
	_, err := Pin(link)
	require.NoError(t, err)
	info, err := os.Lstat(link)
	require.NoError(t, err)
	assert.NotZero(t, info.Mode()&os.ModeSymlink)
	info, err = os.Stat(path)
	require.NoError(t, err)
	assert.EqualValues(t, 0o640, info.Mode().Perm())
	left, err := filepath.Glob(filepath.Join(dir, ".pin-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestPinWritesNothingWhenAModuleIsMissing(t *testing.T) {
	text := "[stage.a]\nmodule = \"hook.wasm\"\n[stage.b]\nmodule = \"nowhere.wasm\"\n[stage.c]\n[stage.d]\nmodule = \"hook.wasm\"\nsha256 = 1\n"
	path := write(t, folder(t), "hooks.toml", text)
	_, err := Pin(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "hooks.toml:4:10: stage[b] module:")
	require.ErrorContains(t, err, "hooks.toml:5:2: stage[c] module: missing")
	require.ErrorContains(t, err, "hooks.toml:8:10: stage[d] sha256: want a hash")
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, text, string(got))

	_, err = Pin(filepath.Join(t.TempDir(), "hooks.toml"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// What Pin writes is the same document but for the hashes, and pinning it
// again changes nothing.
func FuzzPin(f *testing.F) {
	full, err := os.ReadFile("testdata/good/full.toml")
	require.NoError(f, err)
	f.Add(full)
	f.Add([]byte("[stage.a]\nmodule = \"m\" # \xc3\xbc\r\nsha256 = 'x'\n[stage]\nb = { module = '''m''' }\nc.module = \"m\""))
	f.Add([]byte("stage.a.module='m'\nstage.a.sha256=\"\"\"\"\"\"\n"))
	open := func(path string) module {
		if strings.Contains(path, "missing") {
			return module{err: errors.New("missing")}
		}
		return module{hash: hookHash}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		out, changed, err := pin("hooks.toml", data, open)
		if err != nil {
			return
		}
		before, fault := parse("hooks.toml", data)
		require.Nil(t, fault)
		after, fault := parse("hooks.toml", out)
		require.Nil(t, fault, "%s", out)
		stages, _ := before.root["stage"].(map[string]any)
		for _, c := range changed {
			stages[c.Stage].(map[string]any)["sha256"] = hookHash
		}
		require.Equal(t, printed(before.root), printed(after.root))
		again, changed, err := pin("hooks.toml", out, open)
		require.NoError(t, err)
		require.Empty(t, changed)
		require.Equal(t, string(out), string(again))
	})
}

// printed makes two documents comparable: nan is not equal to itself.
func printed(root map[string]any) string { return fmt.Sprint(root) }

// A stage that is off needs no module; one that has it is pinned like others.
func TestPinPassesOverTheMissingModuleOfAStageThatIsOff(t *testing.T) {
	dir := folder(t)
	path := write(t, dir, "hooks.toml", "[stage.a]\nmodule = \"hook.wasm\"\nmode = \"off\"\n[stage.b]\nmodule = \"nowhere.wasm\"\nmode = \"off\"\n")
	pinned, err := Pin(path)
	require.NoError(t, err)
	require.Len(t, pinned, 1)
	assert.Equal(t, "a", pinned[0].Stage)
}
