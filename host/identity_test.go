package host_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/demo"
)

const limitOnly = `
version = 1
order = ["ratelimit"]
[limits]
plans = "plans.toml"
[stage.ratelimit]
module = "MODULE/ratelimit"
role = "responder"
grants = ["limit:turn", "limit:tokens", "limit:runs"]
`

const oneTurn = `
version = "test"
default = "free"
[plan.free]
turn = { rate = "1/day", burst = 1 }
`

// strangeUsers are ids that break keys which are pasted together: no two of
// them may share a limit, and none may keep the host from answering.
var strangeUsers = []string{
	"u-42", "}x", "a}b", "a}c", "a{b", "{a}", "{}", "x y", "a\nb", "*", "a:b", "a", ":b", "a/b", "..", "\x00", "\x00\x00",
	"\xff\xfe", "ü", "u\u0308", "用户", strings.Repeat("x", 4096), strings.Repeat("x", 10_240), "a\x00turn", "turn", "%00",
}

func TestUsersOfAnyBytesShareNothing(t *testing.T) {
	w := open(t, limitOnly, host.Options{}, demo.Reply{Text: "hello"})
	w.model.Repeat = true

	for i, user := range strangeUsers {
		t.Run(fmt.Sprintf("%d %.20q", i, user), func(t *testing.T) {
			assert.Equal(t, []string{"hello"}, w.saysTo(user), "a limit of its own")
			second := w.saysTo(user)
			require.Len(t, second, 1)
			assert.Contains(t, second[0], "faster than your plan allows")
		})
	}
}

// A decision is about a user, and the log line that tells of it says about
// which. Nothing else does.
func TestUserIDsStandInNoTraceAndInNoLogButOfDecisions(t *testing.T) {
	w := open(t, limitOnly+"refusal = \"no\"\n", host.Options{}, demo.Reply{Err: fmt.Errorf("down")})
	const user = "ada-the-user"

	demo.Run(t.Context(), w.runner, demo.Turn{User: user, Text: "hi"})
	demo.Run(t.Context(), w.runner, demo.Turn{User: user, Text: "hi"})

	decisions := 0
	for _, line := range strings.Split(w.log.String(), "\n") {
		if strings.Contains(line, `msg="limit decision"`) {
			assert.Contains(t, line, "user="+user)
			decisions++
			continue
		}
		assert.NotContains(t, line, user)
	}
	assert.Equal(t, 1, decisions, "the second turn was denied; what is allowed is for debugging")
	assert.NotContains(t, fmt.Sprintf("%+v", w.steps), user)
}
