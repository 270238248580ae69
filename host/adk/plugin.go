// Package adk puts a chain behind one ADK plugin. It turns callbacks into
// events for the chain and outcomes back into what ADK does with them; what
// ADK really does is in docs/adk.md, and pinned by the tests named TestFact.
package adk

import (
	"log/slog"

	"google.golang.org/adk/v2/plugin"

	"github.com/hookhost/hookhost/chain"
)

// Name is the plugin's name in the runner.
const Name = "hookhost"

// New makes the plugin that runs the ledger's chain. Every callback is
// registered, also where no stage asks for the hook: a run that is denied has
// to be answered wherever ADK lets one answer.
func New(ledger *chain.Ledger, log *slog.Logger) (*plugin.Plugin, error) {
	a := &adapter{ledger: ledger, log: log, runs: make(map[any]*run)}
	return plugin.New(plugin.Config{
		Name:                  Name,
		OnUserMessageCallback: a.onUserMessage,
		BeforeRunCallback:     a.beforeRun,
		AfterRunCallback:      a.afterRun,
		OnEventCallback:       a.onEvent,
		BeforeAgentCallback:   a.beforeAgent,
		AfterAgentCallback:    a.afterAgent,
		BeforeModelCallback:   a.beforeModel,
		AfterModelCallback:    a.afterModel,
		OnModelErrorCallback:  a.onModelError,
		BeforeToolCallback:    a.beforeTool,
		AfterToolCallback:     a.afterTool,
		OnToolErrorCallback:   a.onToolError,
	})
}

// unavailable is what is read where the host itself broke. Nothing fails
// open: a panic in a callback refuses.
const unavailable = "The service is not available. Please try again shortly."

// caught logs a panic of a callback. The value is not logged: it could carry
// what a user wrote.
func (a *adapter) caught(callback string, panicked any) {
	a.log.Error("callback panicked", "callback", callback, "type", typeName(panicked))
}
