package golden

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/golden/script"
	"github.com/hookhost/hookhost/abi/guest"
	"github.com/hookhost/hookhost/abi/guest/guesttest"
)

// decided is what Plans comes to in the case about limits.
func decided() []guesttest.Decision {
	return []guesttest.Decision{
		{Kind: abi.Admitted, ID: 1},
		{Kind: abi.Denied, Limit: 1, Wait: time.Minute},
		{Kind: abi.Admitted, ID: 2},
		{Kind: abi.NeverFits},
		{Kind: abi.Delayed, Wait: 1010 * time.Millisecond, ID: 3},
	}
}

func TestNative(t *testing.T) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			h := &guesttest.Host{
				Stage: Stage, OpID: OpID, RunID: RunID, Event: c.Event, Leaves: c.AllLeaves(), Documents: c.Documents,
				Config: Config(), Secrets: map[string]string{"pii": Secret}, Decisions: decided(),
			}
			v, ok := h.Call(script.Hooks(), c.Event.Hook)
			require.Equal(t, !c.Bad, ok)
			if !c.Bad {
				assert.Equal(t, c.Want, v)
			}
		})
	}
}

func TestTheGoldenGuestWantsEveryHook(t *testing.T) {
	assert.Equal(t, uint64(abi.AllHooks), guest.Module{Hooks: script.Hooks()}.ABI())
}

func TestAConfigurationIsRejected(t *testing.T) {
	h := &guesttest.Host{Config: map[string]string{"reject": "it has to be"}}
	require.False(t, h.Configure(script.Hooks()))
	assert.Equal(t, []abi.Note{{Key: "reject", Value: "it has to be"}}, h.Rejected)
	assert.True(t, (&guesttest.Host{}).Configure(script.Hooks()))
}

func TestEveryGrantOfTheCasesIsOne(t *testing.T) {
	for _, text := range Grants() {
		_, ok := abi.ParseGrant(text)
		assert.True(t, ok, text)
	}
}
