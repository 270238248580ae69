package main

import (
	"context"
	_ "embed"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

//go:embed peer_lua.lua
var luaTasks string

// newLua is the work in Lua, on gopher-lua, which looks at a context before
// each of its instructions.
func newLua(l *lab, _ settings, task string) doer {
	state := lua.NewState()
	l.Cleanup(state.Close)
	require.NoError(l, state.DoString(luaTasks))
	do := lua.P{Fn: state.GetGlobal(task), NRet: 1, Protect: true}
	return func(text string) (string, error) {
		ctx, cancel := context.WithTimeout(l.ctx, callTimeout)
		defer cancel()
		state.SetContext(ctx)
		if err := state.CallByParam(do, lua.LString(text)); err != nil {
			return "", err
		}
		defer state.Pop(1)
		return lua.LVAsString(state.Get(-1)), nil
	}
}
