package guest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/guest"
	"github.com/hookhost/hookhost/abi/guest/guesttest"
)

// codename is the hook that a reader of the documentation meets first.
var codename = guest.Hooks{
	AfterModel: func(c *guest.Call) guest.Verdict {
		for leaf := range c.Leaves() {
			if s := leaf.Text(); strings.Contains(s, "Project Heron") {
				leaf.Replace(strings.ReplaceAll(s, "Project Heron", "[codename]"))
			}
		}
		return c.Done()
	},
	BeforeTool: func(c *guest.Call) guest.Verdict {
		if c.Tool() == "refund" && c.Config("refunds") != "allowed" {
			return c.Refuse("policy.refund", "Refunds need an approval.", 0)
		}
		return guest.Continue
	},
}

func TestTheHooksWantedAreThoseThatAreSet(t *testing.T) {
	assert.Equal(t, uint64(abi.SetOf(abi.AfterModel, abi.BeforeTool)), guest.Module{Hooks: codename}.ABI())
}

func TestAHookThatWasNotAskedForIsNoVerdict(t *testing.T) {
	assert.Zero(t, guest.Module{Hooks: codename, Host: nil}.Call(abi.BeforeRun))
	assert.Zero(t, guest.Module{Hooks: codename, Host: nil}.Call(abi.Hook(200)))
}

func TestDone(t *testing.T) {
	for text, want := range map[string]abi.Kind{
		"on Project Heron, and Project Heron": abi.Amend,
		"nothing to see":                      abi.Continue,
	} {
		h := &guesttest.Host{Leaves: []abi.Leaf{{Pointer: "/0", Text: text}}}
		v, ok := h.Call(codename, abi.AfterModel)
		require.True(t, ok)
		assert.Equal(t, want, v.Kind)
		assert.NotContains(t, h.Texts()[0], "Heron")
	}
}

func TestDoneFailsWhenWhatItSawMayBeIncomplete(t *testing.T) {
	for _, function := range []string{"hookhost.leaf", "hookhost.leaf_read", "hookhost.leaf_splice"} {
		h := &guesttest.Host{
			Leaves: []abi.Leaf{{Pointer: "/0", Text: "Project Heron"}},
			Codes:  map[string]abi.Code{function: abi.OverLimit},
		}
		v, ok := h.Call(codename, abi.AfterModel)
		require.True(t, ok)
		assert.Equal(t, abi.Fail, v.Kind, "of %s", function)
	}
}

func TestRefuse(t *testing.T) {
	h := &guesttest.Host{Event: abi.Event{Tool: "refund"}}
	v, ok := h.Call(codename, abi.BeforeTool)
	require.True(t, ok)
	assert.Equal(t, &abi.Refusal{Code: "policy.refund", Text: "Refunds need an approval."}, v.Answer.Refusal)

	h.Config = map[string]string{"refunds": "allowed"}
	v, ok = h.Call(codename, abi.BeforeTool)
	require.True(t, ok)
	assert.Equal(t, abi.Continue, v.Kind)
}

func TestWaitsAndRetriesAreRoundedUp(t *testing.T) {
	waits := func(d time.Duration) abi.Verdict {
		v, ok := new(guesttest.Host).Call(guest.Hooks{
			BeforeModel: func(c *guest.Call) guest.Verdict { return c.Wait(d) },
		}, abi.BeforeModel)
		require.True(t, ok)
		return v
	}
	assert.Equal(t, abi.Verdict{Kind: abi.Wait, Wait: 2 * time.Millisecond}, waits(1001*time.Microsecond))
	assert.Equal(t, abi.Verdict{Kind: abi.Wait, Wait: abi.MaxWait}, waits(abi.MaxWait))
	assert.Equal(t, abi.Verdict{Kind: abi.Continue}, waits(0))
	assert.Equal(t, abi.Verdict{Kind: abi.Fail}, waits(abi.MaxWait+1))
}

func TestQuote(t *testing.T) {
	assert.Equal(t, `"a\"b\\c\u000a\u001fé"`, guest.Quote("a\"b\\c\n\x1fé"))
}

func TestErrorsAreValues(t *testing.T) {
	h := &guesttest.Host{Codes: map[string]abi.Code{"hookhost_kv.get": abi.Unavailable}}
	var err error
	_, _ = h.Call(guest.Hooks{BeforeRun: func(c *guest.Call) guest.Verdict {
		_, err = c.KVGet("cache", "k")
		return guest.Continue
	}}, abi.BeforeRun)
	assert.Equal(t, guest.ErrUnavailable, err)
	assert.EqualError(t, err, "unavailable")
}

// headHost answers head with any bytes.
type headHost struct {
	guest.Host
	bytes []byte
}

func (h headHost) Head(buf []byte) int32 { return int32(copy(buf, h.bytes)) }

func FuzzHead(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, abi.HeadSize))
	f.Fuzz(func(t *testing.T, record []byte) {
		m := guest.Module{Host: headHost{bytes: record}, Hooks: guest.Hooks{Close: func(c *guest.Call) guest.Verdict {
			_ = c.Reason().String() + c.Source().String() + c.Operation().String()
			c.Usage()
			c.FirstChunk()
			return guest.Continue
		}}}
		if m.Call(abi.Close) != uint64(guest.Continue) {
			t.Fatal("no verdict")
		}
	})
}
