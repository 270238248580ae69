package abi_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
)

// row is a row of the tables of functions: | `module` | `name(types)` | grant | hooks | ...
var row = regexp.MustCompile("(?m)^\\| `(hookhost[a-z_]*)\\.([a-z0-9_]+)\\(([^)]*)\\)` \\| ([^|]+) \\| ([^|]+) \\|")

func TestTheSpecificationNamesEveryFunction(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var got []string
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		got = append(got, m[1]+"."+m[2]+"("+types(m[3])+") "+m[4]+" "+m[5])
	}
	var want []string
	for _, i := range abi.Imports() {
		params := ""
		for _, p := range i.Params {
			params += map[abi.Type]string{abi.I32: "i32 ", abi.I64: "i64 "}[p]
		}
		want = append(want, i.Module+"."+i.Name+"("+params+") "+grant(i.Grant)+" "+hooks(i.Hooks))
	}
	assert.Equal(t, want, got)
}

// types spells out the short forms: a name of a buffer stands for two values.
func types(params string) string {
	out := ""
	for _, m := range regexp.MustCompile(`([a-z_0-9]+)(: i32|: i64|)`).FindAllStringSubmatch(params, -1) {
		switch m[2] {
		case "":
			out += "i32 i32 "
		default:
			out += m[2][2:] + " "
		}
	}
	return out
}

func grant(family string) string {
	if family == "" {
		return "-"
	}
	return family
}

func hooks(s abi.HookSet) string {
	switch s {
	case abi.AllHooks:
		return "any"
	case abi.AllHooks | abi.SetOf(abi.Configure):
		return "any, configure"
	case abi.SetOf(abi.Configure):
		return "configure"
	case abi.SetOf(abi.OnModelChunk):
		return "on_model_chunk"
	}
	return "?"
}
