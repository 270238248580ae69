package hostfn_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
)

func TestGuestsMayNotWriteMoreJSONThanIsQuickToRead(t *testing.T) {
	list := func(n int) string { return "[" + strings.Repeat("1,", n-1) + "1]" }
	c := newBench(t).call()
	require.Equal(t, abi.OK, c.Edit(int32(abi.EditReplace), "/a", list(60_000)))
	assert.Equal(t, abi.OverLimit, c.Edit(int32(abi.EditReplace), "/a", list(10_000)), "all of a call together")
	assert.Equal(t, abi.OverLimit, newBench(t).call().Answer(abi.AnswerJSON, list(70_000)))
	assert.Equal(t, abi.OverLimit, newBench(t).call().Edit(int32(abi.EditAdd), "/a", "["+strings.Repeat(`{"k":[]},`, 30_000)+"1]"))

	commas := `"` + strings.Repeat(`,\"[`, 100_000) + `"`
	assert.Equal(t, abi.OK, newBench(t).call().Edit(int32(abi.EditReplace), "/a", commas), "a text is one value, whatever it says")
	assert.Equal(t, abi.BadArgument, newBench(t).call().Edit(int32(abi.EditReplace), "/a", `["x"`))
}
