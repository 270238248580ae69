package wasm

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host/internal/fake"
	"github.com/hookhost/hookhost/host/wasm/image"
)

// eachImage runs a test with the images of this platform and with those that
// all have.
func eachImage(t *testing.T, test func(t *testing.T, on func(name string) *bench)) {
	for name, create := range map[string]func(uint64) (*image.Memory, error){"mapped": image.New, "copied": image.NewCopied} {
		t.Run(name, func(t *testing.T) {
			test(t, func(name string) *bench {
				b := newBench(t, name)
				b.runtime.newMemory = create
				return b
			})
		})
	}
}

func (b *bench) shared() *bench {
	b.cfg.Shared = true
	return b
}

// all gives every instance of the stage, each ready for its next call.
func (b *bench) all() []*guest {
	b.t.Helper()
	var all []*guest
	for range b.cfg.Pool {
		in, err := b.stage.pool.get(b.t.Context())
		require.NoError(b.t, err)
		all = append(all, in.(*guest))
	}
	b.t.Cleanup(func() {
		for _, g := range all {
			b.stage.pool.put(g)
		}
	})
	return all
}

const secret = "a secret of some user: 4929 1234 5678 9012"

// withSecret is an event that has it.
func withSecret(agent string) *abi.Event {
	ev := event(agent)
	ev.Subject = &fake.Subject{Texts: []abi.Leaf{{Kind: abi.LeafText, Pointer: "/0", Text: secret}}}
	return ev
}

func TestSnapshotHasNothingOfTheCallsBefore(t *testing.T) {
	for _, tt := range []struct {
		end   string
		cause chain.Cause
	}{
		{"success", 0},
		{"trap", chain.CauseTrap},
		{"loop", chain.CauseDeadline},
		{"deep", chain.CauseDepth},
		{"grow", 0},
		{"xit", chain.CauseTrap},
		{"leave", chain.CauseCancelled}, // begins with l
	} {
		t.Run(tt.end, func(t *testing.T) {
			eachImage(t, func(t *testing.T, on func(string) *bench) {
				b := on("keeps_secret").pool(3).loads()
				timeout := b.cfg.Timeout
				if tt.cause == chain.CauseDeadline {
					timeout = 20 * time.Millisecond
				}
				var calls sync.WaitGroup
				for range b.cfg.Pool {
					in, err := b.stage.pool.get(t.Context()) // so that every instance serves one
					require.NoError(t, err)
					calls.Go(func() {
						defer b.stage.pool.put(in)
						ctx, cancel := context.WithTimeout(t.Context(), timeout)
						defer cancel()
						if tt.cause == chain.CauseCancelled {
							time.AfterFunc(5*time.Millisecond, cancel)
						}
						_, err := in.call(ctx, b.stage.services.NewCall(ctx, &b.stage.facts, withSecret(tt.end)))
						assert.Equal(t, tt.cause, causeOf(err), "%v", err)
						memory, _ := in.(*guest).module.Memory().Read(0, in.(*guest).module.Memory().Size())
						assert.GreaterOrEqual(t, bytes.Count(memory, []byte(secret)), 4, "it was there")
					})
				}
				calls.Wait()
				for _, g := range b.all() {
					requireNothingOf(t, g, secret)
				}
			})
		})
	}
}

// causeOf is why a call failed, 0 if it did not.
func causeOf(err error) chain.Cause {
	var f *chain.Failure
	if !errors.As(err, &f) {
		return 0
	}
	return f.Cause
}

// requireNothingOf searches the whole state of an instance.
func requireNothingOf(t *testing.T, g *guest, secret string) {
	t.Helper()
	memory, whole := g.module.Memory().Read(0, g.module.Memory().Size())
	require.True(t, whole)
	for part := range slices.Chunk([]byte(secret), 8) {
		if len(part) == 8 {
			require.NotContains(t, string(memory), string(part))
		}
	}
	for i, global := range g.state {
		assert.Equal(t, g.stage.image.globals[i], global.Get())
		assert.NotEqual(t, binary.LittleEndian.Uint64([]byte(secret)), global.Get())
	}
}

func TestSnapshotOfAGoGuestHasNothingOfTheCallsBefore(t *testing.T) {
	b := newBench(t, "continue").set("entities.0", "card").pool(2)
	b.cfg.Module, b.cfg.Memory = compiled(t, "guests/redact"), 32<<20
	b.loads()
	ev := withSecret("a")
	ev.Hook = abi.AfterModel
	for range 6 {
		_, err := b.stage.Call(t.Context(), ev)
		require.NoError(t, err)
	}
	for _, g := range b.all() {
		requireNothingOf(t, g, secret)
	}
}

func TestSnapshotEachCallBeginsAsTheFirst(t *testing.T) {
	eachImage(t, func(t *testing.T, on func(string) *bench) {
		b := on("counts").pool(2).loads()
		for range 50 {
			v, err := b.call("a")
			require.NoError(t, err)
			require.Equal(t, time.Millisecond, v.Wait)
		}
	})
}

func TestSnapshotIsNotGoneBackToWhereCallsShare(t *testing.T) {
	eachImage(t, func(t *testing.T, on func(string) *bench) {
		b := on("counts").shared().pool(1).loads()
		for i := range 2 * sharedCalls {
			v, err := b.call("a")
			require.NoError(t, err)
			require.Equal(t, time.Duration(i%sharedCalls+1)*time.Millisecond, v.Wait, "once in a thousand calls")
		}
	})
	t.Run("but after a failure", func(t *testing.T) {
		b := newBench(t, "trap_then_next").shared().pool(1).loads()
		_, err := b.call("boom")
		requireCause(t, chain.CauseTrap, err)
		b.answers("ok 0")
	})
}

func TestSnapshotDiscardsWhatGrew(t *testing.T) {
	eachImage(t, func(t *testing.T, on func(string) *bench) {
		b := on("memory_refused").pool(1).loads()
		for range 5 {
			_, err := b.call("a")
			require.NoError(t, err)
			require.Eventually(t, func() bool { return b.stage.pool.load().size == 0 }, time.Second, time.Millisecond)
		}
		for _, g := range b.all() {
			assert.EqualValues(t, 64<<10, g.module.Memory().Size())
		}
	})
}

func TestSnapshotRefusesByNameWhatItDoesNotHold(t *testing.T) {
	err := newBench(t, "table_set").refuses()
	require.ErrorIs(t, err, ErrUnheld)
	assert.ErrorContains(t, err, "table.set in function 2")
	assert.ErrorContains(t, err, `isolation = "none"`)

	b := newBench(t, "table_set").shared().pool(1).loads()
	for range 3 {
		_, err := b.call("a")
		require.NoError(t, err)
		b.fails(chain.CauseTrap) // and the instance is exchanged for one that has its table
	}
}

func TestSnapshotDoesNotRepeatTheClockOrRandomNumbers(t *testing.T) {
	b := newBench(t, "draws").pool(4).loads()
	random, clock := map[string]bool{}, map[uint64]bool{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			last := uint64(0)
			for range 250 {
				ev := event("a")
				_, err := b.stage.Call(t.Context(), ev)
				if !assert.NoError(t, err) {
					return
				}
				drawn, _ := ev.Op.Get("probe", "k")
				now := binary.LittleEndian.Uint64(drawn[8:])
				assert.Greater(t, now, last, "time goes on")
				last = now
				mu.Lock()
				assert.False(t, random[string(drawn[:8])], "no number comes twice")
				random[string(drawn[:8])], clock[now] = true, true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	assert.Len(t, random, 1000)
	assert.Greater(t, len(clock), 900, "nor, nearly, does an instant")
}

// imageMap is in the name of every map of an image: one of each image, and one
// of each instance of it.
const imageMap = "hookhost-image"
