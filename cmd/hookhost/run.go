package main

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/demo"
	"github.com/hookhost/hookhost/store"
)

//go:embed demo.toml
var demoScript []byte

// demoMessages go with demoScript: one turn that shows the masking, and a
// burst that runs into the limit of turns.
var demoMessages = []string{
	"I paid order A-77 with 4111 1111 1111 1111, my mail is ada@example.com. Can I get a refund?",
	"Thank you!", "Are you there?", "Hello?", "Hello??", "HELLO???",
}

// demoApp is the name that the demo agent runs under.
const demoApp = "support"

type runFlags struct {
	messages texts
	user     string
	session  string
	script   string
	manifest string
	env      string
	cacheDir string
	trace    bool
	stream   bool
	json     bool
	dev      bool
	verbose  bool
}

// texts is a flag that can be given several times.
type texts []string

func (t *texts) String() string { return fmt.Sprint([]string(*t)) }

func (t *texts) Set(s string) error {
	*t = append(*t, s)
	return nil
}

func runTurns(ctx context.Context, c *command) error {
	var f runFlags
	c.Var(&f.messages, "message", "what the user says, `TEXT`; once for each turn")
	c.StringVar(&f.user, "user", "ada", "the user `ID`")
	c.StringVar(&f.session, "session", "s-1", "the session `ID`")
	c.StringVar(&f.script, "script", "", "a TOML `FILE` with the model's replies")
	c.StringVar(&f.manifest, "manifest", "hooks.toml", "the manifest, a `FILE`")
	c.StringVar(&f.env, "env", "", "lay hooks.`ENV`.toml over the manifest")
	c.StringVar(&f.cacheDir, "cache-dir", "", "the `FOLDER` for compiled modules (default: hookhost in the user's cache folder)")
	c.BoolVar(&f.trace, "trace", false, "show for each turn which stage ran where, its verdict and its time")
	c.BoolVar(&f.stream, "stream", false, "stream the replies")
	c.BoolVar(&f.json, "json", false, "write one JSON object a line")
	c.BoolVar(&f.dev, "dev", false, "run modules that the manifest does not pin by their hash")
	c.BoolVar(&f.verbose, "verbose", false, "show the host's log")
	if err := c.parse("run [flags]", "Runs turns of a demo agent through the chain, with a model that replies from a\nscript. Without --message and --script it plays a conversation that shows what\nthe shipped chain does."); err != nil {
		return err
	}
	if err := c.noArguments(); err != nil {
		return err
	}
	return f.play(ctx, c)
}

func (f *runFlags) play(ctx context.Context, c *command) (err error) {
	replies, err := f.replies()
	if err != nil {
		return err
	}
	messages := f.messages
	if len(messages) == 0 {
		messages = demoMessages
	}
	out := newPrinter(c.stdout, f.json, f.trace)
	h, err := f.open(ctx, c, out)
	if err != nil {
		return err
	}
	defer func() {
		if closed := h.Close(context.WithoutCancel(ctx)); err == nil {
			err = closed
		}
	}()
	conversation, err := f.runner(h, replies)
	if err != nil {
		return err
	}
	for _, message := range messages {
		f.turn(ctx, conversation, message, out)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return f.usage(ctx, h, out)
}

func (f *runFlags) replies() ([]demo.Reply, error) {
	script := demoScript
	if f.script != "" {
		var err error
		if script, err = manifest.ReadFile(f.script); err != nil {
			return nil, fmt.Errorf("script: %w", err)
		}
	}
	replies, err := demo.ParseScript(script)
	if err != nil {
		return nil, fmt.Errorf("script[%s]: %w", f.script, err)
	}
	return replies, nil
}

func (f *runFlags) open(ctx context.Context, c *command, out *printer) (*host.Host, error) {
	level := slog.LevelError
	if f.verbose {
		level = slog.LevelInfo
	}
	return host.Open(ctx, f.manifest, host.Options{
		Dev: f.dev, Env: f.env, CacheDir: f.cacheDir, Trace: chain.Tracer{Step: out.step, Span: out.span},
		Log: slog.New(slog.NewTextHandler(c.stderr, &slog.HandlerOptions{Level: level})), Compiling: c.compiling, CacheWarning: c.cacheWarning,
	})
}

func (f *runFlags) runner(h *host.Host, replies []demo.Reply) (*runner.Runner, error) {
	desk := new(demo.Desk)
	root, err := demo.Agent(demo.LLM, &demo.Model{Replies: replies, Repeat: true}, desk.Tools()...)
	if err != nil {
		return nil, err
	}
	return runner.New(runner.Config{
		AppName: demoApp, Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{h.Plugin()}},
	})
}

func (f *runFlags) turn(ctx context.Context, r *runner.Runner, message string, out *printer) {
	mode := agent.StreamingModeNone
	if f.stream {
		mode = agent.StreamingModeSSE
	}
	out.turn(f.user, message)
	said := genai.NewContentFromText(message, genai.RoleUser)
	for ev, err := range r.Run(ctx, f.user, f.session, said, agent.RunConfig{StreamingMode: mode}) {
		if err != nil {
			out.failed(err)
			continue
		}
		out.event(ev)
	}
	out.endTurn()
}

// usage prints what the user's model calls came to, and what is left.
func (f *runFlags) usage(ctx context.Context, h *host.Host, out *printer) error {
	if err := h.Drain(ctx); err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	owner := store.Owner{Kind: store.OwnerUser, App: demoApp, User: f.user}
	records, err := h.Store().Records(ctx, owner)
	if err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	left := make(map[string]int64)
	for _, name := range []string{"turn", "tokens"} {
		limit, ok := h.Limit(ctx, demoApp, f.user, name)
		if !ok || limit.Bucket == nil {
			continue
		}
		if left[name], err = h.Store().Balance(ctx, owner, name, *limit.Bucket); err != nil {
			return fmt.Errorf("balance[%s]: %w", name, err)
		}
	}
	out.usage(f.user, records, left)
	return nil
}
