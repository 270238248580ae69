package main

import (
	"fmt"
	"time"

	extism "github.com/extism/go-sdk"
	"github.com/stretchr/testify/require"
)

// newExtism is the Go guest in Extism, with its timeout on.
func newExtism(l *lab, s settings, task string) doer {
	plugin, err := extism.NewPlugin(l.ctx, extism.Manifest{
		Wasm:    []extism.Wasm{extism.WasmData{Data: s.module(l, "extism")}},
		Timeout: uint64(callTimeout / time.Millisecond),
	}, extism.PluginConfig{EnableWasi: true, RuntimeConfig: compiler(l)}, nil)
	require.NoError(l, err)
	l.Cleanup(func() { _ = plugin.Close(l.ctx) })
	return func(text string) (string, error) {
		code, out, err := plugin.CallWithContext(l.ctx, task, []byte(text))
		if err == nil && code != 0 {
			err = fmt.Errorf("extism: the guest returned %d", code)
		}
		return string(out), err
	}
}
