package hostfn_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/hostfn"
)

func newSecretBench(t *testing.T, grants ...string) *bench {
	b := newBench(t, grants...)
	b.stage.Secrets = map[string][]byte{"pii": []byte(secret), "other": []byte(secret)}
	return b
}

func TestASecretIsUsedToHash(t *testing.T) {
	c := newSecretBench(t, "secret:pii").call()
	for _, data := range []string{"", "4111", strings.Repeat("x", 3<<20)} {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(data))
		out := make([]byte, 40)
		require.EqualValues(t, 32, c.HMACSHA256("pii", data, out))
		assert.Equal(t, mac.Sum(nil), out[:32])
		assert.Equal(t, make([]byte, 8), out[32:])
	}
	assert.Equal(t, abi.BadArgument, c.HMACSHA256("pii", "x", make([]byte, 31)))
	assert.Equal(t, abi.NotGranted, c.HMACSHA256("other", "x", make([]byte, 32)), "each has a grant of its own")
}

func TestHashingEndsWithTheCall(t *testing.T) {
	b := newSecretBench(t, "secret:pii")
	ctx, cancel := context.WithCancel(t.Context())
	c := b.services.NewCall(ctx, b.stage, b.ev)
	cancel()
	out := make([]byte, 32)
	assert.Equal(t, abi.Unavailable, c.HMACSHA256("pii", "x", out))
	assert.Equal(t, make([]byte, 32), out)
}

// No function gives the bytes of a secret, whatever it is asked for by the
// secret's name, at any hook: not to the guest's memory, not to the log, not to
// a note or to an edit.
func TestNoFunctionReadsASecret(t *testing.T) {
	names := []string{"pii", "secret", "secrets", "secrets.pii", "secret:pii", "stage.probe.secrets.pii", "/secrets/pii", "/session/state/pii", ""}
	b := newSecretBench(t, "secret:pii", "secret:other", "usage:read", "usage:write", "kv:pii", "claim:pii", "limit:pii", "session:read", "session:write", "actions")
	b.stage.Output = true
	b.stage.Config = []hostfn.Setting{{Key: "entities", Text: "card"}}
	called := 0
	for _, hook := range append(abi.Hooks(), abi.Configure) {
		for _, f := range hostfn.Table() {
			for _, name := range names {
				c := b.at(hook).call()
				if hook == abi.Configure {
					c = b.services.NewCall(t.Context(), b.stage, nil)
				}
				m := make(memory, 4096)
				copy(m, name)
				stack := argumentsNaming(f, name)
				for range 2 { // the second one may find what the first one wrote
					callWith(f, c, m, stack...)
				}
				called++
				require.NotContains(t, string(m), secret, "%s.%s at %s by %q", f.Module, f.Name, hook, name)
				v, err := c.Verdict(abi.Amend, 0)
				require.NoError(t, err)
				for _, note := range v.Notes {
					require.NotContains(t, note.Key+note.Value, secret)
				}
				for _, edit := range v.Edits {
					require.NotContains(t, edit.Text+string(edit.Value), secret)
				}
			}
		}
	}
	require.Equal(t, len(hostfn.Table())*len(names)*15, called)
	assert.NotContains(t, b.log.String(), secret)
}

// argumentsNaming passes the name wherever a function takes one, room where it
// writes, and 1 for each number.
func argumentsNaming(f hostfn.Function, name string) []uint64 {
	args := make([]uint64, 0, len(f.Params))
	for len(args) < len(f.Params) {
		left := len(f.Params) - len(args)
		pair := left > 1 && f.Params[len(args)] == abi.I32 && f.Params[len(args)+1] == abi.I32
		switch {
		case pair && left == 2 && writes[f.Module+"."+f.Name]:
			args = append(args, 1024, 3000)
		case pair && left%2 == 0:
			args = append(args, 0, uint64(len(name)))
		default:
			args = append(args, 1)
		}
	}
	return args
}
