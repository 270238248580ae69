package manifest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCredentialsAreReadWhenTheStoreIsOpened(t *testing.T) {
	dir := folder(t)
	path := write(t, dir, "hooks.toml", oneStage("[store]\nurl = \"redis://db\"\nnamespace = \"n\"\n"+
		"username = \"env:HOOKHOST_TEST_USER\"\npassword = \"file:password.txt\"", ""))
	m, err := Load(path, Options{Dev: true})
	require.NoError(t, err, "loading needs neither")

	_, _, err = m.ReadCredentials()
	require.ErrorContains(t, err, "hooks.toml:6:12: store.username: the environment variable HOOKHOST_TEST_USER is not set")
	require.ErrorContains(t, err, "hooks.toml:7:12: store.password: "+filepath.Join(dir, "password.txt")+" cannot be read")

	t.Setenv("HOOKHOST_TEST_USER", "support")
	write(t, dir, "password.txt", "p w\n")
	username, password, err := m.ReadCredentials()
	require.NoError(t, err)
	assert.Equal(t, "support", username)
	assert.Equal(t, "p w", password)

	username, password, err = load(t, oneStage("", "")).ReadCredentials()
	require.NoError(t, err)
	assert.Empty(t, username+password)
}

// An environment can go over to another store as a whole: what belongs to a
// shared one is no fault of memory://.
func TestAnOverlayChangesAllOfTheStore(t *testing.T) {
	dir := folder(t)
	path := write(t, dir, "hooks.toml", oneStage(`
[store]
url = "rediss://db"
namespace = "n"
password = "env:A"
ca = "ca.pem"`, ""))
	write(t, dir, "hooks.dev.toml", "[store]\nurl = \"memory://\"\n")
	m, err := Load(path, Options{Dev: true, Env: "dev"})
	require.NoError(t, err)
	assert.False(t, m.Store.Shared())

	sub := filepath.Join(dir, "prod")
	require.NoError(t, os.Mkdir(sub, 0o700))
	overlay := write(t, sub, "store.toml", `
[store]
url = "rediss+cluster://prod"
namespace = "prod"
timeout = "10ms"
replicas = 9
pool = 30
dial_timeout = "1s"
username = "env:B"
password = "file:b.txt"
ca = "b.pem"
cert = "c.pem"
key = "d.pem"
`)
	m, err = Load(path, Options{Dev: true, Overlay: overlay})
	require.NoError(t, err)
	assert.True(t, m.Store.Shared())
	assert.Equal(t, filepath.Join(sub, "b.txt"), m.Store.Password.File, "relative to the file that names it")
	assert.Equal(t, filepath.Join(sub, "b.pem"), m.Store.CA)
}

func TestTheNamespaceIsMissedWhereTheOverlayBringsTheStore(t *testing.T) {
	dir := folder(t)
	path := write(t, dir, "hooks.toml", oneStage("", ""))
	overlay := write(t, dir, "hooks.prod.toml", "[store]\nurl = \"redis://db\"\n")
	_, err := Load(path, Options{Dev: true, Env: "prod"})
	require.ErrorContains(t, err, overlay+":1:2: store.namespace: missing")
}

func TestWhereHidesWhatMayBeSecret(t *testing.T) {
	for url, want := range map[string]string{
		"memory://": "memory://",
		"redis://ada:geheim@db:6379/2?protocol=3":     "redis://db:6379/2",
		"redis+sentinel://s?sentinel_password=geheim": "redis+sentinel://s",
	} {
		assert.Equal(t, want, Store{URL: url}.Where())
	}
}

func TestLintOfTheStore(t *testing.T) {
	for text, want := range map[string]string{
		"url = \"redis://ada:geheim@db\"\nnamespace = \"n\"":                       RulePasswordInURL,
		"url = \"redis+sentinel://s?sentinel_password=geheim\"\nnamespace = \"n\"": RulePasswordInURL,
		"url = \"redis://ada@db\"\nnamespace = \"n\"":                              "",
		"url = \"redis://db\"\nnamespace = \"n\"\nreplicas = 2":                    "",
		"replicas = 2": RuleStoreNotShared,
		"replicas = 1": "",
	} {
		found := Lint(load(t, oneStage("[store]\n"+text, "mode = \"off\"")), LintInput{})
		if want == "" {
			assert.Empty(t, found, text)
			continue
		}
		require.Len(t, found, 1, text)
		assert.Equal(t, want, found[0].Rule)
		assert.Equal(t, Warning, found[0].Level)
		assert.Positive(t, found[0].At.Line)
		assert.NotContains(t, found[0].At.Render(), "geheim")
	}
}
