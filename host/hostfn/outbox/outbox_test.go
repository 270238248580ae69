package outbox_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/host/hostfn/outbox"
	"github.com/hookhost/hookhost/store"
)

// bench is an outbox with a store that notes what it took.
type bench struct {
	*outbox.Outbox
	t    *testing.T
	down atomic.Bool
	hang atomic.Bool

	mu    sync.Mutex
	tries int
	taken map[string][]string // by owner
	lost  map[string]int      // by kind
	log   bytes.Buffer
}

func newBench(t *testing.T, o outbox.Options) *bench {
	b := &bench{t: t, taken: map[string][]string{}, lost: map[string]int{}}
	o.Log = slog.New(slog.NewTextHandler(&locked{b: b}, nil))
	o.Lost = func(e outbox.Entry) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.lost[e.Kind]++
	}
	b.Outbox = outbox.New(o)
	return b
}

type locked struct{ b *bench }

func (l *locked) Write(p []byte) (int, error) {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	return l.b.log.Write(p)
}

func (b *bench) logged(words string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Count(b.log.Bytes(), []byte(words))
}

func lineOf(user string) outbox.Line {
	return outbox.Line{Owner: store.Owner{Kind: store.OwnerUser, App: "app", User: user}}
}

// put puts in an entry that is known by its text.
func (b *bench) put(user, kind, text string) {
	b.Put(outbox.Entry{Kind: kind, Line: lineOf(user), Write: func(ctx context.Context) error {
		if b.hang.Load() {
			<-ctx.Done()
			return ctx.Err()
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.tries++
		if b.down.Load() {
			return fmt.Errorf("%w: connection refused", store.ErrUnavailable)
		}
		b.taken[user] = append(b.taken[user], text)
		return nil
	}})
}

func (b *bench) of(user string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.taken[user]...)
}

func (b *bench) tried() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tries
}

// start runs the outbox until stop.
func (b *bench) start() (stop func()) {
	ctx, cancel := context.WithCancel(b.t.Context())
	over := make(chan struct{})
	go func() { defer close(over); b.Run(ctx) }()
	return func() { cancel(); <-over }
}

func (b *bench) eventually(what func() bool) {
	b.t.Helper()
	require.Eventually(b.t, what, 10*time.Second, time.Millisecond)
}

func numbers(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

func TestEachOwnersWritesKeepTheirOrder(t *testing.T) {
	b := newBench(t, outbox.Options{})
	defer b.start()()
	const users, each = 50, 40
	for i := range each {
		for u := range users {
			b.put(fmt.Sprint(u), "settle", fmt.Sprint(i))
		}
	}
	b.eventually(func() bool { return b.Pending() == 0 })
	for u := range users {
		assert.Equal(t, numbers(each), b.of(fmt.Sprint(u)))
	}
	assert.Empty(t, b.lost)
}

func TestFlushWritesOneOwnersAndNoOthers(t *testing.T) {
	b := newBench(t, outbox.Options{})
	b.put("ada", "settle", "0")
	b.put("bob", "settle", "0")
	b.put("ada", "free", "1")
	require.NoError(t, b.Flush(t.Context(), lineOf("ada")))
	assert.Equal(t, numbers(2), b.of("ada"))
	assert.Empty(t, b.of("bob"))
	require.NoError(t, b.Flush(t.Context(), lineOf("nobody")))
	assert.Equal(t, 1, b.Pending())
}

func TestFlushWaitsForWhoIsWriting(t *testing.T) {
	b := newBench(t, outbox.Options{Timeout: time.Minute})
	begun, goOn := make(chan struct{}), make(chan struct{})
	b.Put(outbox.Entry{Line: lineOf("ada"), Write: func(context.Context) error {
		close(begun)
		<-goOn
		return nil
	}})
	b.put("ada", "free", "0")
	defer b.start()()
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, b.Flush(ctx, lineOf("ada")), context.DeadlineExceeded)
	close(goOn)
	require.NoError(t, b.Flush(t.Context(), lineOf("ada")))
	assert.Equal(t, numbers(1), b.of("ada"))
}

func TestFlushFailsWithTheAttemptThatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, outbox.Options{Timeout: 50 * time.Millisecond})
		b.hang.Store(true)
		stop := b.start()
		defer stop()
		b.put("ada", "settle", "1")
		time.Sleep(30 * time.Millisecond)
		begin := time.Now()
		require.ErrorIs(t, b.Flush(t.Context(), lineOf("ada")), context.DeadlineExceeded)
		assert.Equal(t, 20*time.Millisecond, time.Since(begin), "and makes none of its own")
	})
}

func TestWritesWaitForTheStoreToComeBack(t *testing.T) {
	b := newBench(t, outbox.Options{})
	b.down.Store(true)
	defer b.start()()
	for i := range 5 {
		b.put("ada", "settle", fmt.Sprint(i))
	}
	b.eventually(func() bool { return b.tried() >= 3 })
	require.ErrorIs(t, b.Drain(t.Context()), store.ErrUnavailable)
	require.ErrorContains(t, b.Drain(t.Context()), "outbox: 5 writes wait")
	assert.Equal(t, 5, b.Pending())
	assert.True(t, b.Away())
	b.down.Store(false)
	b.eventually(func() bool { return b.Pending() == 0 })
	assert.Equal(t, numbers(5), b.of("ada"))
	assert.Empty(t, b.lost)
	assert.Equal(t, 1, b.logged("writes wait for the store"), "once, not at each attempt")
	assert.Equal(t, 1, b.logged("takes writes again"))
	assert.False(t, b.Away())
}

func TestAStoreThatIsAwayIsAskedLessAndLess(t *testing.T) {
	b := newBench(t, outbox.Options{Workers: 1})
	b.down.Store(true)
	stop := b.start()
	b.put("ada", "settle", "0")
	time.Sleep(150 * time.Millisecond)
	stop()
	assert.Less(t, b.tried(), 6, "at 0, 20, 60, 140 ms")
}

func TestWhatIsLeftWhenRunEndsIsForClose(t *testing.T) {
	b := newBench(t, outbox.Options{Timeout: time.Minute})
	b.hang.Store(true)
	stop := b.start()
	b.put("ada", "settle", "0")
	stop()
	assert.Equal(t, 1, b.Pending())
	assert.Zero(t, b.logged("writes wait"), "it was not the store that broke off")
	b.hang.Store(false)
	require.NoError(t, b.Close(t.Context()))
	assert.Equal(t, numbers(1), b.of("ada"))
}

func TestAWriteThatHangsIsTriedAgain(t *testing.T) {
	b := newBench(t, outbox.Options{Timeout: 5 * time.Millisecond})
	b.hang.Store(true)
	b.put("ada", "settle", "0")
	require.ErrorIs(t, b.Drain(t.Context()), context.DeadlineExceeded)
	b.hang.Store(false)
	require.NoError(t, b.Drain(t.Context()))
	assert.Equal(t, numbers(1), b.of("ada"))
}

func TestWithoutRoomTheOldestIsGivenUpAndCounted(t *testing.T) {
	b := newBench(t, outbox.Options{Capacity: 10})
	b.down.Store(true)
	b.put("bob", "free", "0")
	for i := range 15 {
		b.put("ada", "settle", fmt.Sprint(i))
	}
	assert.Equal(t, 10, b.Pending())
	assert.Equal(t, map[string]int{"free": 1, "settle": 5}, b.lost)
	assert.Equal(t, 1, b.logged("the oldest are given up"), "once, not for each")
	b.down.Store(false)
	require.NoError(t, b.Drain(t.Context()))
	assert.Empty(t, b.of("bob"))
	assert.Equal(t, numbers(15)[5:], b.of("ada"))

	b.down.Store(true)
	for i := range 11 {
		b.put("ada", "settle", fmt.Sprint(i))
	}
	assert.Equal(t, 2, b.logged("the oldest are given up"), "another time, another line")
}

func TestWhatIsBeingWrittenIsNotGivenUp(t *testing.T) {
	b := newBench(t, outbox.Options{Capacity: 2, Timeout: time.Minute})
	begun, goOn := make(chan struct{}), make(chan struct{})
	b.Put(outbox.Entry{Kind: "first", Line: lineOf("ada"), Write: func(context.Context) error {
		close(begun)
		<-goOn
		return nil
	}})
	defer b.start()()
	<-begun
	for i := range 3 {
		b.put("ada", "settle", fmt.Sprint(i))
	}
	assert.Equal(t, map[string]int{"settle": 2}, b.lost)
	close(goOn)
	require.NoError(t, b.Flush(t.Context(), lineOf("ada")))
	assert.Equal(t, []string{"2"}, b.of("ada"))
}

func TestWhatTheStoreRefusesIsCountedAndInNobodysWay(t *testing.T) {
	b := newBench(t, outbox.Options{})
	b.Put(outbox.Entry{Kind: "settle", Line: lineOf("ada"), Write: func(context.Context) error { return store.ErrUnknownID }})
	b.put("ada", "free", "0")
	require.NoError(t, b.Drain(t.Context()))
	assert.Equal(t, numbers(1), b.of("ada"))
	assert.Equal(t, map[string]int{"settle": 1}, b.lost)
}

func TestCloseGivesTheStoreTheTimeOfItsContext(t *testing.T) {
	b := newBench(t, outbox.Options{})
	b.down.Store(true)
	b.put("ada", "settle", "0")
	time.AfterFunc(50*time.Millisecond, func() { b.down.Store(false) })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, b.Close(ctx))
	assert.Equal(t, numbers(1), b.of("ada"))
	b.put("ada", "settle", "1")
	assert.Equal(t, map[string]int{"settle": 1}, b.lost, "after the end")
	assert.Zero(t, b.Pending())
}

func TestCloseSaysHowManyWritesItGaveUp(t *testing.T) {
	b := newBench(t, outbox.Options{})
	b.down.Store(true)
	for i := range 3 {
		b.put("ada", "settle", fmt.Sprint(i))
	}
	b.put("bob", "record", "0")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	err := b.Close(ctx)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, "outbox: gave up 4 writes")
	assert.Equal(t, map[string]int{"settle": 3, "record": 1}, b.lost)
}

// Of many that put in, flush and drain while the store comes and goes, each
// write is done once and in order.
func TestNothingIsLostOrDoneTwiceInACrowd(t *testing.T) {
	b := newBench(t, outbox.Options{Capacity: 1 << 20})
	defer b.start()()
	var crowd sync.WaitGroup
	const each = 200
	for u := range 8 {
		crowd.Go(func() {
			user := fmt.Sprint(u)
			for i := range each {
				b.put(user, "settle", fmt.Sprint(i))
				if i%5 == u%5 {
					b.down.Store(i%10 > 5)
					_ = b.Flush(t.Context(), lineOf(user))
				}
			}
		})
	}
	crowd.Wait()
	b.down.Store(false)
	require.NoError(t, b.Drain(t.Context()))
	for u := range 8 {
		assert.Equal(t, numbers(each), b.of(fmt.Sprint(u)))
	}
	assert.Zero(t, b.Pending())
}

// obstruct puts in an entry that fails whatever the store does otherwise.
func (b *bench) obstruct(user, kind string) {
	b.Put(outbox.Entry{Kind: kind, Line: lineOf(user), Write: func(context.Context) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.tries++
		return fmt.Errorf("%w: WRONGTYPE", store.ErrUnavailable)
	}})
}

func TestAKeyInTheWayHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := known(t)
		defer b.start()()
		b.Put(outbox.Entry{Kind: "record", Line: lineOf("ada"), Write: func(context.Context) error {
			return fmt.Errorf("%w: records: %w", store.ErrUnavailable, store.ErrInTheWay)
		}})
		time.Sleep(10 * time.Second)
		assert.False(t, b.Away(), "the store answered")
		b.put("bob", "free", "0")
		synctest.Wait()
		assert.Equal(t, numbers(1), b.of("bob"), "at once")
		assert.Zero(t, b.logged("writes wait for the store"))
		time.Sleep(time.Minute)
		assert.Equal(t, 1, b.losses("record"))
	})
}

// known is an outbox that is told whether the store is away.
func known(t *testing.T) *bench {
	var b *bench
	b = newBench(t, outbox.Options{Away: func() bool { return b.down.Load() }})
	return b
}

func (b *bench) losses(kind string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost[kind]
}

func TestWhatIsStuckIsGivenUpSoThatTheRestIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := known(t)
		defer b.start()()
		b.obstruct("ada", "settle")
		b.put("ada", "free", "0")
		b.obstruct("ada", "settle")
		b.put("ada", "free", "1")
		b.put("bob", "free", "0")
		time.Sleep(time.Second)
		assert.Equal(t, numbers(1), b.of("bob"), "which are in nobody's way")

		time.Sleep(58 * time.Second)
		assert.Empty(t, b.of("ada"))
		assert.Zero(t, b.losses("settle"))
		time.Sleep(4 * time.Second)

		assert.Equal(t, numbers(2), b.of("ada"))
		assert.Equal(t, 2, b.losses("settle"), "the second did not wait as long once more")
		assert.Equal(t, 2, b.logged("a write is given up"))
		assert.Equal(t, 2, b.logged("while the store was not away: store unavailable: WRONGTYPE"), "and why")
		assert.Less(t, b.tried(), 60, "ever less often")
		assert.Zero(t, b.Pending())

		b.obstruct("ada", "settle")
		time.Sleep(58 * time.Second)
		assert.Equal(t, 1, b.Pending(), "the line had become empty: all is forgiven")
		time.Sleep(4 * time.Second)
		assert.Zero(t, b.Pending())
	})
}

func TestOneThatIsStuckDoesNotSlowTheOthersDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := known(t)
		defer b.start()()
		b.obstruct("ada", "settle")
		time.Sleep(time.Second)
		b.put("bob", "free", "0")
		time.Sleep(2 * time.Second)
		for i := range 50 {
			b.put("bob", "free", fmt.Sprint(i+1))
			time.Sleep(time.Second / 2)
			require.Len(t, b.of("bob"), i+2)
		}
		assert.Equal(t, 1, b.logged("writes wait for the store"), "not at each of its failures")
		assert.Equal(t, 1, b.logged("takes writes again"))
	})
}

func TestWhileTheStoreIsAwayNothingIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := known(t)
		defer b.start()()
		b.down.Store(true)
		b.put("ada", "settle", "0")
		time.Sleep(24 * time.Hour)
		assert.Equal(t, 1, b.Pending())
		b.down.Store(false)
		time.Sleep(3 * time.Second)
		assert.Equal(t, numbers(1), b.of("ada"))
	})
}

// The time in which the store was away is not counted as time in which it was
// not.
func TestAnOutageIsNoTimeInWhichAnEntryWasStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := known(t)
		defer b.start()()
		b.obstruct("ada", "settle")
		time.Sleep(40 * time.Second)
		b.down.Store(true)
		time.Sleep(time.Hour)
		b.down.Store(false)
		time.Sleep(15 * time.Second)
		assert.Equal(t, 1, b.Pending())
		time.Sleep(15 * time.Second)
		assert.Equal(t, 1, b.losses("settle"))
	})
}

func TestWhereNobodyKnowsOfTheStoreNothingIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, outbox.Options{})
		defer b.start()()
		b.obstruct("ada", "settle")
		time.Sleep(time.Hour)
		assert.Equal(t, 1, b.Pending())
	})
}

func TestWhoBreaksOffAFlushSpoilsItForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := outbox.New(outbox.Options{Timeout: 50 * time.Millisecond, Log: slog.New(slog.DiscardHandler)})
		line := outbox.Line{Owner: store.Owner{Kind: store.OwnerUser, User: "ada"}}
		o.Put(outbox.Entry{Kind: "settle", Line: line, Write: func(ctx context.Context) error {
			select {
			case <-time.After(10 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}})
		gone, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		var other sync.WaitGroup
		other.Go(func() { assert.Error(t, o.Flush(gone, line)) })
		time.Sleep(time.Millisecond)
		assert.NoError(t, o.Flush(t.Context(), line))
		assert.Zero(t, o.Pending())
		other.Wait()
	})
}
