package host_test

import (
	"context"
	"fmt"
	"log/slog"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/chaintest"
	"github.com/hookhost/hookhost/host/demo"
)

// An existing ADK program takes three lines: Open, Close, and the plugin in
// the runner's configuration.
func Example() {
	ctx := context.Background()

	h, err := host.Open(ctx, "../hooks.toml", host.Options{Dev: true, CacheDir: chaintest.CacheDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close(ctx)

	assistant, err := demo.Agent(demo.LLM, &demo.Model{Replies: []demo.Reply{
		{Text: "You paid with 4111 1111 1111 1111."},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := runner.New(runner.Config{
		AppName: "shop", Agent: assistant, SessionService: session.InMemoryService(), AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{h.Plugin()}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	message := genai.NewContentFromText("How did I pay?", genai.RoleUser)
	for ev, err := range r.Run(ctx, "ada", "session-1", message, agent.RunConfig{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(demo.Text(ev.Content))
	}
	// Output: You paid with [CARD].
}
