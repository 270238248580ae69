package main

import (
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/bench/guests/knqyf/textwork"
)

// newKnqyf is the Go guest in knqyf263/go-plugin, which has no limits.
func newKnqyf(l *lab, s settings, task string) doer {
	p, err := textwork.NewTextWorkPlugin(l.ctx)
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
