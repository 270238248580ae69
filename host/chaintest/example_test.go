package chaintest_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/chaintest"
	"github.com/hookhost/hookhost/host/demo"
)

// A cache that answers ends the chain before the model, and before the agent's
// own callback. The meter in front of it saw the call begin, and hears that it
// is over.
func ExampleRecorder() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	manifest := filepath.Join(dir, "hooks.toml")
	if err := os.WriteFile(manifest, []byte(`
version = 1
order = ["meter", "cache", "audit"]
[stage.meter]
role = "observer"
[stage.cache]
role = "responder"
[stage.audit]
role = "transformer"
`), 0o600); err != nil {
		panic(err)
	}

	var rec chaintest.Recorder
	h, err := host.Open(ctx, manifest, host.Options{
		Log: slog.New(slog.DiscardHandler), Trace: chain.Tracer{Step: rec.Step}, Wrap: rec.Wrap,
		Native: map[string]chain.Stage{
			"meter": stage{hooks: abi.SetOf(abi.BeforeModel, abi.AfterModel, abi.Close)},
			"cache": stage{hooks: abi.SetOf(abi.BeforeModel), answer: "From the cache."},
			"audit": stage{hooks: abi.SetOf(abi.BeforeModel)},
		},
	})
	if err != nil {
		panic(err)
	}
	defer h.Close(ctx)

	m := &demo.Model{Replies: []demo.Reply{{Text: "From the model."}}}
	root, err := demo.Tree{Shape: demo.LLM, Model: m, Each: rec.Watch}.Agent()
	if err != nil {
		panic(err)
	}
	r, err := runner.New(runner.Config{
		AppName: "app", Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{h.Plugin()}},
	})
	if err != nil {
		panic(err)
	}
	out := demo.Run(ctx, r, demo.Turn{Text: "Hello"})

	fmt.Println(out.Texts(), "after", len(m.Requests()), "model calls")
	for _, line := range rec.Trace("before_model", "after_model", "close") {
		fmt.Println(line)
	}
	// Output:
	// [From the cache.] after 0 model calls
	// before_model meter continue
	// before_model cache respond
	// close meter continue model answered
}

// stage is a hook written in Go that goes on, or answers.
type stage struct {
	hooks  abi.HookSet
	answer string
}

func (s stage) Hooks() abi.HookSet { return s.hooks }

func (s stage) Call(context.Context, *abi.Event) (abi.Verdict, error) {
	if s.answer == "" {
		return abi.Verdict{Kind: abi.Continue}, nil
	}
	return abi.Verdict{Kind: abi.Respond, Answer: abi.Answer{Text: s.answer}}, nil
}

func (s stage) Close(context.Context) error { return nil }
