package host_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/chaintest"
	"github.com/hookhost/hookhost/host/demo"
	"github.com/hookhost/hookhost/store"
)

// module is the path of a shipped guest.
func module(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "guests", name, name+".wasm"))
	require.NoError(t, err)
	_, err = os.Stat(path)
	require.NoError(t, err, "the guests have to be built first: make guests")
	return path
}

// goldenModule builds the guest that does what a message tells it.
func goldenModule(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "golden.wasm")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-trimpath", "-o", path, "../abi/golden/guest")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// world is a host on a manifest in a folder of its own, with a scripted agent
// in front of it.
type world struct {
	t        *testing.T
	path     string
	host     *host.Host
	model    *demo.Model
	sessions session.Service
	runner   *runner.Runner
	log      journal

	mu    sync.Mutex
	steps []chain.Step
}

// journal is a log that is read while a host goes on to write it.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

const redactOnly = `
version = 1
order = ["redact"]
[stage.redact]
module = "MODULE/redact"
role = "transformer"
`

var fixtureName = regexp.MustCompile(`FIXTURE/\w+`)

// write puts a manifest in the world's folder. MODULE/X stands for the
// module of the guest X, FIXTURE/X for that of the fixture X.
func write(t *testing.T, dir, text string) string {
	t.Helper()
	for _, g := range []string{"meter", "ratelimit", "redact"} {
		text = strings.ReplaceAll(text, "MODULE/"+g, module(t, g))
	}
	if strings.Contains(text, "MODULE/golden") {
		text = strings.ReplaceAll(text, "MODULE/golden", goldenModule(t))
	}
	text = fixtureName.ReplaceAllStringFunc(text, func(name string) string {
		return fixture(t, strings.TrimPrefix(name, "FIXTURE/"))
	})
	writePlans(t, dir, oneTurn)
	path := filepath.Join(dir, "hooks.toml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func writePlans(t *testing.T, dir, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plans.toml"), []byte(text), 0o600))
}

func open(t *testing.T, text string, o host.Options, replies ...demo.Reply) *world {
	t.Helper()
	return openAt(t, write(t, t.TempDir(), text), o, replies...)
}

// openOn is open with other plans than oneTurn.
func openOn(t *testing.T, plans, text string, o host.Options, replies ...demo.Reply) *world {
	t.Helper()
	path := write(t, t.TempDir(), text)
	writePlans(t, filepath.Dir(path), plans)
	return openAt(t, path, o, replies...)
}

func openAt(t *testing.T, path string, o host.Options, replies ...demo.Reply) *world {
	t.Helper()
	w := &world{t: t, path: path, model: &demo.Model{Replies: replies}, sessions: session.InMemoryService()}
	o.Dev, o.CacheDir = true, chaintest.CacheDir()
	o.Log = slog.New(slog.NewTextHandler(&w.log, nil))
	o.Trace.Step = func(s chain.Step) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.steps = append(w.steps, s)
	}
	h, err := host.Open(t.Context(), w.path, o)
	require.NoError(t, err)
	w.host = h
	t.Cleanup(func() { require.NoError(t, h.Close(context.WithoutCancel(t.Context()))) })
	root, err := demo.Agent(demo.LLM, w.model)
	require.NoError(t, err)
	w.runner, err = runner.New(runner.Config{
		AppName: "app", Agent: root, SessionService: w.sessions, AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{h.Plugin()}},
	})
	require.NoError(t, err)
	return w
}

// says is what the agent answers to a turn.
func (w *world) says(text string) []string {
	w.t.Helper()
	out := demo.Run(w.t.Context(), w.runner, demo.Turn{Text: text})
	require.NoError(w.t, out.Err())
	return out.Texts()
}

// saysTo is what the agent answers to a turn of this user.
func (w *world) saysTo(user string) []string {
	w.t.Helper()
	return w.answers(user, "hi")
}

// answers is what the agent answers to a message of this user.
func (w *world) answers(user, text string) []string {
	w.t.Helper()
	message := genai.NewContentFromText(text, genai.RoleUser)
	var texts []string
	for ev, err := range w.runner.Run(w.t.Context(), user, "session", message, agent.RunConfig{}) {
		require.NoError(w.t, err)
		if text := demo.Text(ev.Content); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// tells sends the golden guest steps, and gives what each of them came to.
func (w *world) tells(user string, steps ...string) []string {
	w.t.Helper()
	w.mu.Lock()
	before := len(w.steps)
	w.mu.Unlock()
	w.answers(user, strings.Join(append(steps, "continue"), "\n"))
	w.mu.Lock()
	defer w.mu.Unlock()
	var results []string
	for _, s := range w.steps[before:] {
		for _, note := range s.Notes {
			results = append(results, note.Value)
		}
	}
	return results
}

// balance is what a bucket of the owner holds, when all was written.
func (w *world) balance(owner store.Owner, limit string) int64 {
	w.t.Helper()
	require.NoError(w.t, w.host.Drain(context.WithoutCancel(w.t.Context())))
	l, defined := w.host.Limit(context.WithoutCancel(w.t.Context()), owner.App, owner.User, limit)
	require.True(w.t, defined, limit)
	n, err := w.host.Store().Balance(context.WithoutCancel(w.t.Context()), owner, limit, *l.Bucket)
	require.NoError(w.t, err)
	return n
}

// lines are the steps so far, as a trace writes them.
func (w *world) lines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := make([]string, len(w.steps))
	for i, s := range w.steps {
		lines[i] = s.Line()
	}
	return lines
}

func ownerOf(user string) store.Owner {
	return store.Owner{Kind: store.OwnerUser, App: "app", User: user}
}

// versions are those of the chains that the steps so far ran on.
func (w *world) versions() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, s := range w.steps {
		if len(all) == 0 || all[len(all)-1] != s.Version {
			all = append(all, s.Version)
		}
	}
	return all
}
