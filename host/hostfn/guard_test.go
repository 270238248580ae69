package hostfn_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/subject"
)

// said is embedded in an event as a response is in ADK's.
type said struct {
	Text string `json:"text"`
}

type event struct {
	said
	Author  string  `json:"author"`
	Actions actions `json:"actions"`
}

type actions struct {
	Delta map[string]any `json:"stateDelta"`
}

func (b *bench) onEvent() *bench {
	b.at(abi.OnEvent)
	b.ev.Subject = subject.New(&event{said{"hi"}, "helper", actions{map[string]any{"k": "v"}}}, func(any, func(abi.Leaf)) {})
	return b
}

// Whatever pointer a stage without the grant edits at, no verdict of it has
// other actions.
func TestActionsCannotBeReachedWithoutTheGrant(t *testing.T) {
	whole := `{"text":"x","author":"x","actions":{"stateDelta":{"stolen":"yes"}},"stateDelta":{"stolen":"yes"}}`
	for _, pointer := range []string{
		"", "/", "/actions", "/actions/", "/actions/stateDelta", "/actions/stateDelta/k", "/actions/stateDelta/stolen",
		"/Actions", "/ACTIONS/stateDelta", "//actions", "/actions~0", "/actions~1stateDelta", "/~0actions", "/said", "/author/actions",
	} {
		for _, op := range []abi.EditOp{abi.EditAdd, abi.EditReplace, abi.EditRemove} {
			b := newBench(t).onEvent()
			c := b.call()
			if c.Edit(int32(op), pointer, whole) != abi.OK {
				continue
			}
			v, err := c.Verdict(abi.Amend, 0)
			require.NoError(t, err)
			next, err := b.ev.Subject.Apply(v.Edits)
			if err == nil {
				assert.Equal(t, map[string]any{"k": "v"}, next.Value().(*event).Actions.Delta, "%d at %q", op, pointer)
			}
		}
	}
}

func TestEditsOfAGuardedRootSayWhatIsMissing(t *testing.T) {
	for pointer, code := range map[string]abi.Code{
		"/actions":              abi.NotGranted,
		"/actions/stateDelta":   abi.NotGranted,
		"/session":              abi.NotGranted,
		"/session/state":        abi.NotGranted,
		"/session/state/k":      abi.NotGranted,
		"":                      abi.BadArgument,
		"/author":               abi.OK,
		"/actionsOfAnotherKind": abi.OK,
	} {
		assert.Equal(t, code, newBench(t).onEvent().call().Edit(int32(abi.EditAdd), pointer, `"x"`), pointer)
	}
	granted := newBench(t, "actions", "session:write").onEvent()
	granted.ev.SetState = func(string, any) error { return nil }
	for pointer, code := range map[string]abi.Code{
		"/actions":            abi.OK,
		"/actions/stateDelta": abi.OK,
		"/session/state/k":    abi.OK,
		"/session":            abi.BadArgument,
		"/session/state":      abi.BadArgument,
		"":                    abi.BadArgument,
	} {
		assert.Equal(t, code, granted.call().Edit(int32(abi.EditAdd), pointer, `"x"`), pointer)
	}
}

func TestAWholeEventIsReadWithoutWhatIsNotGranted(t *testing.T) {
	c := newBench(t).onEvent().call()
	got, _ := text(func(buf []byte) int32 { return c.Get("", buf) })
	assert.JSONEq(t, `{"text":"hi","author":"helper"}`, got)

	c = newBench(t, "actions").onEvent().call()
	got, _ = text(func(buf []byte) int32 { return c.Get("", buf) })
	assert.JSONEq(t, `{"text":"hi","author":"helper","actions":{"stateDelta":{"k":"v"}}}`, got)

	b := newBench(t).at(abi.BeforeTool)
	b.ev.Subject = subject.New(map[string]any{"actions": "of a tool"}, func(any, func(abi.Leaf)) {})
	c = b.call()
	got, _ = text(func(buf []byte) int32 { return c.Get("", buf) })
	assert.JSONEq(t, `{"actions":"of a tool"}`, got, "an argument of that name is no root")
}
