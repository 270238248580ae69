package main

import (
	"context"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/hookhost/hookhost/bench/guests/knqyf/textwork"
)

// newKnqyf is the Go guest in knqyf263/go-plugin, which has no limits.
func newKnqyf(l *lab, s settings, task string) doer {
	p, err := textwork.NewTextWorkPlugin(l.ctx, textwork.WazeroRuntime(func(ctx context.Context) (wazero.Runtime, error) {
		engine := wazero.NewRuntimeWithConfig(ctx, compiler(l))
		_, err := wasi_snapshot_preview1.Instantiate(ctx, engine)
		return engine, err
	}))
	require.NoError(l, err)
	guest, err := p.Load(l.ctx, s.modulePath("knqyf"))
	require.NoError(l, err, "the guests have to be built first: make bench-guests")
	l.Cleanup(func() { _ = guest.Close(l.ctx) })
	return func(text string) (string, error) {
		reply, err := guest.Do(l.ctx, &textwork.Request{Task: task, Text: text})
		if err != nil {
			return "", err
		}
		return reply.GetText(), nil
	}
}
