package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/chaintest"
	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/redis/redistest"
)

func recordOf(user string) store.Record {
	return store.Record{App: "shop", User: user, Plan: "free", Time: time.Now()}
}

// One id of 10 kB makes no row of others longer.
func TestATableIsAsWideAsItsShortenedIDs(t *testing.T) {
	long := strings.Repeat("é", 5000)
	var records []store.Record
	for i := range 1000 {
		records = append(records, recordOf(fmt.Sprint("user-", i)))
	}
	records = append(records, recordOf(long+"a"), recordOf(long+"b"), recordOf("\xff"), recordOf("\xfe"), recordOf("\x1b[31m"))
	var out bytes.Buffer

	writeSpent(&out, spentOf(records, "", time.Time{}))

	ids := map[string]bool{}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for _, line := range lines[1 : len(lines)-1] {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), 160)
		ids[strings.Fields(line)[0]] = true
	}
	assert.Len(t, ids, len(records), "each user is another one")
	assert.True(t, ids[`\xff`] && ids[`\xfe`] && ids[`\x1b[31m`])
	assert.Equal(t, shortSays, lines[len(lines)-1])
}

func TestShortIDs(t *testing.T) {
	exactly := strings.Repeat("x", longestID)
	assert.Equal(t, exactly, shortID(exactly))
	assert.False(t, shortens(exactly, "ada"))
	assert.True(t, shortens("ada", exactly+"x"))
	assert.Regexp(t, `^x{24}\.\.\.#[0-9a-f]{12}$`, shortID(exactly+"x"))
	for _, other := range []string{exactly + "y", exactly + "xx", strings.Repeat("\xff", 40), strings.Repeat("é", 41)} {
		assert.NotEqual(t, shortID(exactly+"x"), shortID(other))
		assert.Equal(t, longestID, utf8.RuneCountInString(shortID(other)))
		assert.Equal(t, shortID(other), visible(shortID(other)))
	}
}

func TestEveryByteThatIsNoCharacterIsSeen(t *testing.T) {
	assert.Equal(t, `a\xff\xfeb`, visible("a\xff\xfeb"))
	assert.Equal(t, "\uFFFD", visible("\uFFFD"), "the character itself")
	assert.Equal(t, `\x1b[2J\n`, visible("\x1b[2J\n"))
}

func TestWhatTakesLongSaysHowFarItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stderr bytes.Buffer
		c := &command{FlagSet: flag.NewFlagSet("", flag.ContinueOnError), stderr: &stderr}
		users := func(pace time.Duration) ([]string, error) {
			return readMany(t.Context(), c, func(ctx context.Context) ([]string, error) {
				for read := range 5 {
					store.Progress(ctx, 1000*read, 5000)
					time.Sleep(pace)
				}
				return []string{"ada"}, nil
			})
		}
		_, err := users(100 * time.Millisecond)
		require.NoError(t, err)
		assert.Empty(t, stderr.String())

		all, err := users(600 * time.Millisecond)
		require.NoError(t, err)
		assert.Equal(t, []string{"ada"}, all)
		assert.Equal(t, "hookhost: read 2000 of 5000 users\nhookhost: read 4000 of 5000 users\n", stderr.String())
	})
}

func TestErrorsDoNotReachTheTerminalRaw(t *testing.T) {
	var out, stdout bytes.Buffer
	dir := filepath.Join(t.TempDir(), "a\x1b[31m\nb")
	require.NoError(t, os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, "hooks.toml")
	for _, text := range []string{"", "version = 1\norder = []\n\"\\u001b[2J\" = 1\n", "version = 1\norder = [\x1b[2J]\n", "order = []\nversion = 1\n[limits]\nplans = \"none.toml\"\n"} {
		if text != "" {
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		}
		for _, args := range [][]string{{"plan"}, {"lint"}, {"pin"}, {"usage"}, {"limits", "top"}} {
			run(t.Context(), append(args, "--manifest", path), &stdout, &out)
		}
	}
	report(&out, fmt.Errorf("open %s: %w", path, errors.New("no\x1b[m such file")))
	assert.NotContains(t, stdout.String()+out.String(), "\x1b")
	assert.NotContains(t, "\n"+out.String(), "\nb/hooks.toml", "no path begins a line")
	assert.Contains(t, out.String(), `a\x1b[31m\nb/hooks.toml`)
}

// The names in a module are anybody's.
func TestAnImportCannotLookLikeALineOfInspect(t *testing.T) {
	const name = "now\n  starts\t\x1b[2J"
	module := "\x00asm\x01\x00\x00\x00" + "\x01\x04\x01\x60\x00\x00" + // () -> ()
		"\x02" + string(rune(len(name)+8)) + "\x01\x03env" + string(rune(len(name))) + name + "\x00\x00"
	path := filepath.Join(t.TempDir(), "odd.wasm")
	require.NoError(t, os.WriteFile(path, []byte(module), 0o600))
	var stdout, stderr bytes.Buffer
	assert.Equal(t, exitFailed, run(t.Context(), []string{"inspect", path, "--cache-dir", chaintest.CacheDir()}, &stdout, &stderr), stderr.String())
	assert.Contains(t, stdout.String(), "\nno host takes it\n")
	assert.Contains(t, stdout.String(), `  unknown import: env.now\n  starts\t\x1b[2J`+"\n")
	assert.NotContains(t, stdout.String(), "\n  starts")
	assert.NotContains(t, stdout.String(), "\x1b")
}

// twice is a scenario that starts two hosts with a module.
const twice = `order = ["redact"]
[stage.redact]
module = %q
role = "transformer"

[agent]
shapes = ["llm", "loop"]
iterations = 1

[[reply]]
text = "Hello."
[[turn]]
text = "Hi"
[turn.expect]
user_reads = ["Hello."]
`

func TestEveryCommandThatCompilesSaysOnceThatNothingIsKept(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	manifest, module := filepath.Join(root, "hooks.toml"), filepath.Join(root, "guests", "redact", "redact.wasm")
	file := filepath.Join(t.TempDir(), "a\x1b[31mfile")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	scenario := filepath.Join(t.TempDir(), "two.toml")
	require.NoError(t, os.WriteFile(scenario, fmt.Appendf(nil, twice, module), 0o600))
	for _, args := range [][]string{
		{"plan", "--dev", "--manifest", manifest},
		{"inspect", module},
		{"inspect", module, "--dev", "--manifest", manifest},
		{"run", "--dev", "--manifest", manifest, "--message", "hi"},
		{"run", "--dev", "--verbose", "--manifest", manifest, "--message", "hi"},
		{"test", scenario},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			args := slices.Insert(slices.Clone(args), 1, "--cache-dir", filepath.Join(file, "below"))
			assert.Equal(t, exitOK, run(t.Context(), args, &stdout, &stderr), "%s%s", stdout.String(), stderr.String())
			assert.Equal(t, 1, strings.Count(stderr.String(), "modules are not kept"), "%s", stderr.String())
			assert.Regexp(t, `(?m)^hookhost: compiled modules are not kept: the next start compiles them again: .*a\\x1b\[31mfile.*: not a directory$`, stderr.String())
		})
	}
}

// What is in the way of one user is skipped, and stderr says so.
func TestUsersWhoseDataCannotBeReadAreSkipped(t *testing.T) {
	server := redistest.Single(t)
	dir := onRedis(t, server.URL(), "1s")
	h, err := host.Open(t.Context(), filepath.Join(dir, "hooks.toml"), host.Options{Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	for _, user := range []string{"ada", "eve"} {
		_, err := h.Store().Record(t.Context(), store.Record{ID: user, App: "support", User: user, Plan: "free", Time: time.Now(), Turn: true})
		require.NoError(t, err)
	}
	require.NoError(t, h.Close(t.Context()))
	for _, key := range []string{"n:{u:support:eve}:records", "n:{u:support:eve}:activity"} {
		server.Do(t, "DEL", key)
		server.Do(t, "SET", key, "x")
	}
	for _, args := range [][]string{{"usage"}, {"limits", "top"}, {"limits", "suggest", "--plan", "free"}} {
		out := process(t, dir, args...)
		assert.Contains(t, out, "hookhost: redis: incomplete: 1 users' ", args)
		assert.Contains(t, out, "a key of another program is in the way", args)
		assert.NotContains(t, out, "eve", args)
	}
	assert.Regexp(t, `(?m)^ada +support +free `, process(t, dir, "usage"))
}
