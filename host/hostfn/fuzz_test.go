package hostfn_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/subject"
	"github.com/hookhost/hookhost/host/hostfn"
)

// writes are the functions whose last two arguments are a buffer that they
// write to. The others write nothing.
var writes = map[string]bool{
	"hookhost.head": true, "hookhost.text": true, "hookhost.leaf": true, "hookhost.leaf_path": true, "hookhost.leaf_read": true,
	"hookhost.get": true, "hookhost.state_get": true, "hookhost.state_add": true, "hookhost.config": true, "hookhost.config_key": true,
	"hookhost_limit.admit": true, "hookhost_limit.take": true, "hookhost_usage.sum": true, "hookhost_kv.get": true,
	"hookhost_claim.claim": true, "hookhost_claim.result": true, "hookhost_secret.hmac_sha256": true,
}

// words are what a guest finds in its memory, so that what it passes is not
// always nonsense.
var words = []string{
	"turn", "tokens", "runs", "calls", "turn\nruns", "cache", "jobs", "pii", "other", "", "key",
	"/a", "/n", "/r", "/list/0", "/list/-", "/list/9", "/object/x~1y", "/actions/x", "/session/state/k", "nowhere", "/~2",
	`"text"`, `{"a":[1,null]}`, `[`, "null", "\xff\xfe", "Gr\u00fc\u00dfe", "policy.no", "Not now.", strings.Repeat("k", abi.MaxKey+1),
}

// program is a guest made of bytes.
type program struct {
	bytes []byte
	at    map[string]uint64 // where each word is
}

func (p *program) next() byte {
	if len(p.bytes) == 0 {
		return 0
	}
	b := p.bytes[0]
	p.bytes = p.bytes[1:]
	return b
}

// args makes the arguments of a function: pointers and lengths of words, and
// numbers small, at the edges and any.
func (p *program) args(params []abi.Type) []uint64 {
	args := make([]uint64, 0, len(params)+1)
	for len(args) < len(params) {
		switch how, left := p.next(), len(params)-len(args); {
		case how < 128 && left > 1 && params[len(args)] == abi.I32 && params[len(args)+1] == abi.I32:
			w := words[int(p.next())%len(words)]
			args = append(args, p.at[w], uint64(len(w)))
		case how < 200:
			args = append(args, uint64(p.next()))
		case how < 220:
			args = append(args, []uint64{1 << 31, 1<<32 - 1, 1<<32 - 16, 1 << 63, 1<<63 - 1, 1<<64 - 1, 1 << 24, 1<<24 + 1}[p.next()%8])
		case how < 240:
			args = append(args, uint64(p.next())<<8|uint64(p.next()))
		default:
			var v [8]byte
			for i := range v {
				v[i] = p.next()
			}
			args = append(args, binary.LittleEndian.Uint64(v[:]))
		}
	}
	return args
}

func subjectOfFuzz() abi.Subject {
	value := map[string]any{
		"a": "Gr\u00fc\u00dfe an alle", "n": 42.0, "r": "fixed", "list": []any{"x", 1.5, nil}, "object": map[string]any{"x/y": true},
		"actions": map[string]any{"x": "guarded"},
	}
	return subject.New(value, func(v any, emit func(abi.Leaf)) {
		subject.Scalars(v.(map[string]any), "", func(at, text string, number bool) {
			if strings.HasPrefix(at, "/actions") {
				return // by a pointer alone
			}
			emit(abi.Leaf{Kind: abi.LeafText, Pointer: at, Text: text, Number: number, ReadOnly: at == "/r"})
		})
	})
}

// FuzzHostFunctions runs a guest made of bytes: any functions in any order
// with any arguments, from any hook to any other, with the store there, away
// and slow. Each gives a length or a documented code, writes nothing but its
// buffer, and nothing at all where it gives a code; whatever verdict follows
// can be made and applied.
func FuzzHostFunctions(f *testing.F) {
	table := hostfn.Table()
	for at := range table {
		which := byte(at)
		f.Add([]byte{byte(abi.BeforeModel), which, 0, 11, 0, 22, 0, 23, 130, 5})
		f.Add([]byte{0, which, 0, 0, 0, 1, 0, 2, 0, 3})
		f.Add([]byte{byte(abi.OnEvent), which, 0, 5, 0, 10, 150, 64, 150, 8, 251, byte(abi.AfterModel), which, 205, 1, 205, 2, 205, 1, 205, 1})
		f.Add([]byte{byte(abi.OnModelChunk), 252, which, 0, 4, 210, 0, 210, 1, 253, which, 130, 1, 130, 2, 130, 3, 130, 4, 130, 5})
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		b := newBench(t, "usage:read", "usage:write", "kv:cache", "claim:jobs", "secret:pii",
			"limit:turn", "limit:tokens", "limit:runs", "limit:calls:app", "session:read", "session:write")
		b.stage.Secrets = map[string][]byte{"pii": []byte(secret)}
		b.stage.Config = []hostfn.Setting{{Key: "key", Text: "value"}}
		b.stage.Output = true

		const fence = 64
		whole := bytes.Repeat([]byte{0xa5}, fence)
		p := &program{bytes: code, at: map[string]uint64{}}
		for _, w := range words {
			p.at[w] = uint64(len(whole) - fence)
			whole = append(whole, w...)
		}
		end := len(whole)
		whole = append(whole, whole[:fence]...)
		m := memory(whole[fence:end])

		c := b.enters(t, abi.Hook(p.next()))
		for calls := 0; len(p.bytes) > 0 && calls < 64; calls++ {
			switch which := p.next(); which {
			case 251:
				b.leaves(t, c)
				c = b.enters(t, abi.Hook(p.next()))
			case 252:
				b.store.Down(true)
			case 253:
				b.store.Down(false)
			default:
				fn := table[int(which)%len(table)]
				name, args, before := fn.Module+"."+fn.Name, p.args(fn.Params), bytes.Clone(whole)
				got := callWith(fn, c, m, args...)
				requireDocumented(t, name, got)
				var from, to int
				if got > 0 && writes[name] {
					at := len(fn.Params) - 2
					from = fence + int(uint32(args[at]))
					to = from + min(int(got), int(uint32(args[at+1])))
				}
				if from < to {
					require.LessOrEqual(t, to, end)
					copy(before[from:to], whole[from:to])
				}
				require.Equal(t, before, whole, "%s wrote outside its buffer", name)
				require.NotContains(t, string(whole), secret, "%s gave a secret away", name)
			}
		}
		b.leaves(t, c)
		require.NotContains(t, b.log.String(), "panicked")
		require.NotContains(t, b.log.String(), secret)
	})
}

const secret = "a secret that no guest may read"

func requireDocumented(t *testing.T, name string, code abi.Code) {
	t.Helper()
	if code >= 0 {
		require.LessOrEqual(t, code, int32(abi.MaxValue), name)
		return
	}
	require.NotEqual(t, "code?", abi.CodeName(code), "%s gave %d", name, code)
}

// enters makes a call at a hook; what is none is configure.
func (b *bench) enters(t *testing.T, hook abi.Hook) *hostfn.Call {
	if hook == 0 || hook > abi.Close {
		return b.services.NewCall(t.Context(), b.stage, nil)
	}
	b.at(hook)
	b.ev.Subject = subjectOfFuzz()
	b.ev.State = func(key string) (any, bool) { return key, key == "k" }
	b.ev.SetState = func(string, any) error { return nil }
	return b.call()
}

// leaves takes each verdict that the guest could give now, and applies it.
func (b *bench) leaves(t *testing.T, c *hostfn.Call) {
	for _, kind := range []abi.Kind{abi.Continue, abi.Amend, abi.Respond, abi.Wait, abi.Fail} {
		v, err := c.Verdict(kind, 1)
		if err != nil {
			require.ErrorIs(t, err, hostfn.ErrBadVerdict)
			require.Equal(t, abi.Respond, kind)
			continue
		}
		if c.Hook() == abi.Configure || len(v.Edits) == 0 {
			continue
		}
		next, err := b.ev.Subject.Apply(v.Edits)
		if err != nil {
			continue // a bad verdict, which is the stage's failure
		}
		require.Equal(t, map[string]any{"x": "guarded"}, next.Value().(map[string]any)["actions"], "what needs a grant")
	}
}
