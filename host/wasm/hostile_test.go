package wasm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/subject"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/host/internal/fake"
	"github.com/hookhost/hookhost/store"
)

// fault is one way to be a broken or hostile guest. Its fixture misbehaves at
// one hook alone, for an agent called boom.
type fault struct {
	fixture string
	cause   chain.Cause // 0 where the guest is stopped by a code and goes on
	says    string      // in the detail of the failure
	amends  string      // what becomes of the text where it goes on and amends

	atEvent  bool          // at on_event, and not at before_model
	observes bool          // as an observer, and not as a responder
	timeout  time.Duration // 0 is ample: the fault has an end of its own
	leaf     int           // bytes of the text; 0 is a short one
	grants   []string
	blocks   bool // the store does not answer, and there is a third policy
}

const (
	short = 50 * time.Millisecond // for guests that never come back
	ample = 30 * time.Second
)

var faults = []fault{
	{fixture: "loop", cause: chain.CauseDeadline, timeout: short},
	{fixture: "fan_out", cause: chain.CauseDeadline, timeout: short},
	{fixture: "memset", cause: chain.CauseDeadline, timeout: short},
	{fixture: "grow_for_nothing", cause: chain.CauseDeadline, timeout: short},
	{fixture: "random_flood", cause: chain.CauseDeadline, timeout: short},
	{fixture: "log_flood", cause: chain.CauseDeadline, timeout: short},
	{fixture: "large_reads", cause: chain.CauseDeadline, timeout: short, leaf: 3 << 20},
	{fixture: "large_gets", cause: chain.CauseDeadline, timeout: short, leaf: 3 << 20},
	{fixture: "large_gets", cause: chain.CauseDeadline, timeout: short, leaf: 64 << 20},
	{fixture: "large_hashes", cause: chain.CauseDeadline, timeout: short, grants: []string{"secret:pii"}},
	{fixture: "large_edits", cause: chain.CauseDeadline, timeout: short},

	{fixture: "teaches", cause: chain.CauseDeadline, timeout: short},

	{fixture: "stack_bomb", cause: chain.CauseDepth},
	{fixture: "wide_frames", cause: chain.CauseDepth},
	{fixture: "indirect_recursion", cause: chain.CauseDepth},

	{fixture: "memory_bomb", cause: chain.CauseMemory},
	{fixture: "large_leaf", cause: chain.CauseMemory, leaf: 64 << 20},

	{fixture: "million_calls", cause: chain.CauseHostCalls},
	{fixture: "million_yields", cause: chain.CauseHostCalls},
	{fixture: "sleeps", cause: chain.CauseHostCalls},

	{fixture: "trap", cause: chain.CauseTrap, says: "unreachable"},
	{fixture: "trap_in_amend", cause: chain.CauseTrap, says: "unreachable"},
	{fixture: "exit_in_hook", cause: chain.CauseTrap, says: "exited with code 0"},

	{fixture: "zero_verdict", cause: chain.CauseBadVerdict, says: "0x0 is no verdict"},
	{fixture: "unknown_verdict", cause: chain.CauseBadVerdict, says: "0x9 is no verdict"},
	{fixture: "amends", cause: chain.CauseBadVerdict, observes: true, says: "amend by a stage with the role observer"},
	{fixture: "wait_at_event", cause: chain.CauseBadVerdict, atEvent: true, says: "wait at on_event"},
	{fixture: "many_edits", cause: chain.CauseBadVerdict, says: "amend"},
	{fixture: "edit_nowhere", cause: chain.CauseBadVerdict, says: "amend"},

	{fixture: "store_blocks", cause: chain.CauseStore, blocks: true, grants: []string{"kv:cache"}},
	{fixture: "store_blocks_again", cause: chain.CauseStore, blocks: true, timeout: short, grants: []string{"kv:cache"}},

	{fixture: "bad_pointers", grants: []string{"kv:cache"}},
	{fixture: "overlap", grants: []string{"kv:cache"}},
	{fixture: "bad_utf8"},
	{fixture: "overlapping_splices", amends: "##rd [number] of ann"},
	{fixture: "ten_thousand"},
}

// TestHostile shows each fault under each policy, alone and beside a hundred
// concurrent calls of a good neighbour. It costs one call: the host answers in
// time, the neighbour's result is right, the next call works, and memory
// returns to its level.
//
// The time is measured alone, as the best of several tries: a busy machine is
// no failure. BenchmarkHostileUnderLoad has the figures under load.
func TestHostile(t *testing.T) {
	for _, f := range faults {
		t.Run(f.fixture, func(t *testing.T) {
			for _, policy := range f.policies() {
				t.Run(policy.String(), func(t *testing.T) {
					a := newArena(t, f, policy)
					level := a.level()
					t.Run("alone", func(t *testing.T) {
						a.answersInTime(t)
						a.nextCallWorks(t)
					})
					t.Run("beside good calls", func(t *testing.T) {
						a.besideGoodCalls(t, 100, func() { a.hostileCall(t) })
						a.nextCallWorks(t)
					})
					a.returnsTo(level)
				})
			}
		})
	}
}

func (f fault) policies() []chain.Policy {
	if f.blocks {
		return []chain.Policy{chain.Open, chain.Closed, chain.Local}
	}
	return []chain.Policy{chain.Open, chain.Closed}
}

// broken are modules that must not load, with the reason.
var broken = []struct {
	name   string
	module func(*testing.T) []byte
	is     error
	says   string
}{
	{"exit_in_start", nil, ErrStart, "exited with code 3"},
	{"exit_zero_in_start", nil, ErrStart, "exited with code 0"},
	{"exit_in_initialize", nil, ErrStart, "exited with code 4"},
	{"exit_in_configure", nil, ErrStart, "exited with code 5"},
	{"trap_in_configure", nil, ErrStart, "unreachable"},
	{"ungranted", nil, ErrNotGranted, "hookhost_limit.take needs the grant limit:NAME"},
	{"big_memory", nil, ErrMemory, "67108864"},
	{"refused/big_table", nil, ErrInvalid, "table of 100000000 elements"},
	{"refused/many_tables", nil, ErrMemory, "9 tables of 90 elements"},
	{"refused/many_elements", nil, ErrMemory, "2 tables of 140000 elements"},
	{"refused/many_globals", nil, ErrMemory, "4097 globals"},
	{"refused/table_bomb", nil, ErrUnheld, "table.grow"},
	{"stripped of its exports", strippedOfExports, ErrExport, "hookhost_call"},
	{"truncated", func(t *testing.T) []byte { return truncated(fixture(t, "ten_thousand")) }, ErrInvalid, ""},
}

func truncated(module []byte) []byte { return module[:len(module)/2] }

// strippedOfExports takes the section of the exports out of a module.
func strippedOfExports(t *testing.T) []byte {
	t.Helper()
	module := fixture(t, "mask_c")
	const header, exports = 8, 7
	stripped := bytes.Clone(module[:header])
	for at := header; at < len(module); {
		size, n := binary.Uvarint(module[at+1:])
		end := at + 1 + n + int(size)
		if module[at] != exports {
			stripped = append(stripped, module[at:end]...)
		}
		at = end
	}
	require.Less(t, len(stripped), len(module))
	return stripped
}

// TestHostileModules shows what does not load in the place of a stage, under
// each policy for that.
func TestHostileModules(t *testing.T) {
	for _, m := range broken {
		t.Run(m.name, func(t *testing.T) {
			for _, policy := range []chain.Policy{chain.Open, chain.Closed} {
				t.Run(policy.String(), func(t *testing.T) {
					a := &arena{
						t: t, policy: policy, store: fake.NewStore(), log: &lockedLog{}, maps: mapsOfImages(t),
						fault: fault{cause: chain.CauseLoad, says: m.says},
					}
					module := m.module
					if module == nil {
						module = func(t *testing.T) []byte { return fixture(t, m.name) }
					}
					_, err := a.tryToLoad("hostile", module(t), ample)
					require.ErrorIs(t, err, m.is)
					require.Equal(t, a.maps, mapsOfImages(t), "maps of images, once it was refused")
					a.begin(chain.Broken(abi.AllHooks, err))
					a.besideGoodCalls(t, 100, func() {})
					level := a.footprint()
					t.Run("alone", func(t *testing.T) { a.answersInTime(t) })
					t.Run("beside good calls", func(t *testing.T) {
						a.besideGoodCalls(t, 100, func() { a.hostileCall(t) })
					})
					a.returnsTo(level)
				})
			}
		})
	}
}

// However much of a module is missing, it is refused by name and nothing
// breaks.
func TestHostileModuleCutAnywhere(t *testing.T) {
	for _, name := range []string{"mask_c", "trap_then_next", "fan_out"} {
		module := fixture(t, name)
		b := newBench(t, name)
		for n := range module {
			b.cfg.Module = module[:n]
			stage, err := b.runtime.Load(t.Context(), b.cfg, b.services)
			if err == nil { // what is missing are whole sections at the end
				require.NoError(t, stage.Close(t.Context()))
				continue
			}
			assert.True(t, errors.Is(err, ErrNotWasm) || errors.Is(err, ErrInvalid) || errors.Is(err, ErrExport), "%s, %d bytes: %v", name, n, err)
		}
	}
}

// arena is a chain of two stages in which a hostile guest stands before a good
// neighbour, which masks numbers, and an observer looks on behind both.
type arena struct {
	t        testing.TB
	fault    fault
	policy   chain.Policy
	store    *fake.Store
	log      *lockedLog
	ledger   *chain.Ledger
	stages   []*Stage
	maps     int      // of images, before there were stages
	observed sync.Map // what the observer saw last, by run
	failures sync.Map // what failed first, by run
}

const (
	cardText   = "card 4111 of ann"
	maskedCard = "card [number] of ann"
	refusal    = "The service is busy."
)

func newArena(t testing.TB, f fault, policy chain.Policy) *arena {
	t.Helper()
	a := &arena{t: t, fault: f, policy: policy, store: fake.NewStore(), log: &lockedLog{}, maps: mapsOfImages(t)}
	a.begin(a.load("hostile", f.fixture, a.timeout(), f.grants...))
	return a
}

// begin puts the chain together around the hostile stage.
func (a *arena) begin(hostile chain.Stage) {
	a.t.Helper()
	spec := func(name string, role chain.Role, timeout time.Duration) chain.Spec {
		return chain.Spec{
			Name: name, Role: role, Mode: chain.Enforce, Timeout: timeout,
			OnError: chain.Closed, OnLoadError: chain.Closed, OnStore: chain.Closed, Refusal: refusal,
		}
	}
	first := spec("hostile", chain.Responder, a.timeout())
	if a.fault.observes {
		first.Role = chain.Observer
	}
	first.Agents = []string{"boom"}
	first.OnError, first.OnLoadError, first.OnStore = a.policy, a.policy, a.policy
	neighbour := spec("neighbour", chain.Transformer, ample)
	if a.fault.leaf > 0 {
		neighbour.Agents = []string{"good"} // it takes leaves of a few KB
	}
	version, err := chain.New("v1", 0,
		chain.Entry{Spec: first, Stage: hostile},
		chain.Entry{Spec: neighbour, Stage: a.load("neighbour", "mask_c", ample)},
		chain.Entry{Spec: spec("observer", chain.Observer, ample), Stage: (*onlooker)(a)},
	)
	require.NoError(a.t, err)
	a.ledger = chain.NewLedger(version, chain.WallClock{}, chain.Tracer{Step: a.trace})
	a.t.Cleanup(func() {
		require.NoError(a.t, a.ledger.Close(context.Background()).Retire(context.Background()))
		assert.Equal(a.t, a.maps, mapsOfImages(a.t), "maps of images, once all is closed")
		assert.NotContains(a.t, a.log.String(), "panic")
	})
}

func (a *arena) timeout() time.Duration {
	if a.fault.timeout == 0 {
		return ample
	}
	return a.fault.timeout
}

func (a *arena) load(name, module string, timeout time.Duration, grants ...string) *Stage {
	a.t.Helper()
	stage, err := a.tryToLoad(name, fixture(a.t, module), timeout, grants...)
	require.NoError(a.t, err)
	a.stages = append(a.stages, stage)
	return stage
}

func (a *arena) tryToLoad(name string, module []byte, timeout time.Duration, grants ...string) (*Stage, error) {
	log := slog.New(slog.NewTextHandler(a.log, nil))
	cfg := Config{
		Name: name, Module: module, Timeout: timeout, Memory: 4 << 20, Pool: 4, Output: true,
		Secrets: map[string][]byte{"pii": []byte("key")},
	}
	for _, text := range grants {
		g, ok := abi.ParseGrant(text)
		require.True(a.t, ok, text)
		cfg.Grants = append(cfg.Grants, g)
	}
	services := &hostfn.Services{
		Store: a.store, StoreTimeout: 10 * time.Millisecond, Log: log,
		Plans: fake.Plans{"turn": {Bucket: &store.Bucket{Units: 1, Per: time.Second, Burst: 100}}},
	}
	return New(Options{CacheDir: cacheDir, Log: log}).Load(a.t.Context(), cfg, services)
}

// lockedLog is written by many calls at once.
type lockedLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// size is what the text takes.
func (l *lockedLog) size() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return uint64(l.buf.Cap())
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (a *arena) trace(s chain.Step) {
	if s.Cause != 0 {
		a.failures.LoadOrStore(s.Run, s)
	}
}

// onlooker is the observer, a stage in Go.
type onlooker arena

func (*onlooker) Hooks() abi.HookSet {
	return abi.SetOf(abi.OnEvent, abi.BeforeModel, abi.AfterModel)
}

func (o *onlooker) Call(_ context.Context, ev *abi.Event) (abi.Verdict, error) {
	o.observed.Store(ev.Run.ID(), textOf(ev.Subject))
	return abi.Verdict{Kind: abi.Continue}, nil
}

func (*onlooker) Close(context.Context) error { return nil }

// said is a value with a text, and with a list that has no leaves.
func said(text string) abi.Subject {
	return subject.New(map[string]any{"a": text, "list": []any{}}, func(v any, emit func(abi.Leaf)) {
		emit(abi.Leaf{Kind: abi.LeafText, Pointer: "/a", Text: v.(map[string]any)["a"].(string)})
	})
}

func textOf(s abi.Subject) string {
	if s == nil {
		return ""
	}
	return s.Value().(map[string]any)["a"].(string)
}

func decode(a abi.Answer) (abi.Subject, error) {
	switch {
	case a.Refusal != nil:
		return said(a.Refusal.Text), nil
	case a.JSON != nil:
		return nil, errors.New("an answer is a text")
	}
	return said(a.Text), nil
}

// result is what came of one hook of one run.
type result struct {
	outcome  chain.Outcome
	observed string
	failure  *chain.Step
	took     time.Duration
}

// err is why a stage failed, if one did.
func (r result) err() error {
	if r.failure == nil {
		return nil
	}
	return r.failure.Err
}

// at dispatches one hook in a run of its own.
func (a *arena) at(hook abi.Hook, agent, text string) (r result) {
	run := a.ledger.Begin(abi.Event{App: "app", User: "user", Session: "s"})
	defer func() {
		run.Finish(context.Background(), false)
		a.failures.Delete(run.ID()) // with what failed at its end
	}()
	op := run.Root()
	if kind := hook.Operation(); kind != abi.OpRun {
		op, _ = run.Open(kind, abi.Event{Agent: agent, Model: "m"})
	}
	ev := &abi.Event{Agent: agent, Subject: said(text)}
	if abi.Allowed(hook, abi.Respond) {
		ev.Decode = decode
	}
	began := time.Now()
	r.outcome = op.Dispatch(context.Background(), hook, ev)
	r.took = time.Since(began)
	if seen, ok := a.observed.LoadAndDelete(run.ID()); ok {
		r.observed = seen.(string)
	}
	if step, ok := a.failures.LoadAndDelete(run.ID()); ok {
		step := step.(chain.Step)
		r.failure = &step
	}
	return r
}

// hostileCall makes the call that goes wrong, and checks what the chain makes
// of it.
func (a *arena) hostileCall(t testing.TB) time.Duration {
	t.Helper()
	a.store.Slow(a.fault.blocks)
	defer a.store.Slow(false)
	hook, sent := abi.BeforeModel, cardText
	if a.fault.atEvent {
		hook = abi.OnEvent
	}
	if a.fault.leaf > 0 {
		sent = strings.Repeat("x", a.fault.leaf)
	}
	r := a.patiently(hook, sent)
	if a.fault.cause == 0 {
		require.NoError(t, r.err())
		a.goesOn(t, r, cmp.Or(a.fault.amends, maskedCard))
		return r.took
	}
	require.Error(t, r.err())
	require.Equal(t, "hostile", r.failure.Stage)
	require.Equal(t, a.fault.cause, r.failure.Cause, "%v", r.failure.Err)
	require.ErrorContains(t, r.failure.Err, a.fault.says)
	require.ErrorIs(t, r.failure.Err, chain.ErrFailed)
	if a.policy != chain.Closed {
		require.Equal(t, chain.Open, r.failure.Policy)
		require.Nil(t, r.outcome.Denial)
		a.goesOn(t, r, maskedCard)
		return r.took
	}
	require.Equal(t, chain.Closed, r.failure.Policy)
	require.Equal(t, refusal, r.observed, "an observer still looks on")
	if a.fault.atEvent {
		require.Equal(t, refusal, textOf(r.outcome.Subject))
		return r.took
	}
	require.Equal(t, &chain.Denial{Stage: "hostile", Failed: true, Refusal: abi.Refusal{Code: "stage_failed", Text: refusal}}, r.outcome.Denial)
	require.Equal(t, refusal, textOf(r.outcome.Answer))
	return r.took
}

// patiently calls the hostile stage until it is called: on a busy machine its
// little time may be over before it has an instance.
func (a *arena) patiently(hook abi.Hook, text string) (r result) {
	for range 20 {
		if r = a.at(hook, "boom", text); r.failure == nil || r.failure.Cause != chain.CausePoolFull {
			break
		}
	}
	return r
}

// goesOn checks the result of the neighbour, which is not called with large
// leaves.
func (a *arena) goesOn(t testing.TB, r result, want string) {
	t.Helper()
	if a.fault.leaf > 0 {
		require.Nil(t, r.outcome.Subject)
		return
	}
	require.Equal(t, want, textOf(r.outcome.Subject))
	require.Equal(t, want, r.observed)
}

// answersInTime holds the best of several tries against the bound.
func (a *arena) answersInTime(t testing.TB) {
	t.Helper()
	best, bound := a.hostileCall(t), a.timeout()+10*time.Millisecond
	for tries := 1; best > bound && tries < 10; tries++ {
		best = min(best, a.hostileCall(t))
	}
	if !raced {
		require.LessOrEqual(t, best, bound)
	}
}

// nextCallWorks calls the same stage where it does nothing wrong.
func (a *arena) nextCallWorks(t testing.TB) {
	t.Helper()
	r := a.patiently(abi.AfterModel, cardText)
	require.NoError(t, r.err())
	a.goesOn(t, r, maskedCard)
}

// besideGoodCalls does something while n others call the neighbour alone.
func (a *arena) besideGoodCalls(t testing.TB, n int, do func()) {
	t.Helper()
	beside(t, n, func() bool {
		r := a.at(abi.BeforeModel, "good", cardText)
		return assert.NoError(t, r.err()) && assert.Equal(t, maskedCard, textOf(r.outcome.Subject))
	}, do)
}

// beside does something while n others make good calls, each of them at least
// one before, and all of them until it is done. Between two calls they pause:
// they are callers, and not the only ones.
func beside(t testing.TB, n int, good func() bool, do func()) {
	t.Helper()
	var done atomic.Bool
	var calling, over sync.WaitGroup
	calling.Add(n)
	for range n {
		over.Go(func() {
			right := good()
			calling.Done()
			for right && !done.Load() {
				time.Sleep(5 * time.Millisecond)
				right = good()
			}
		})
	}
	defer over.Wait()
	defer done.Store(true)
	calling.Wait()
	do()
}

// TestCasesUnderLoad has the tests of these cases run beside a hundred good
// callers of another stage.
func TestCasesUnderLoad(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"039": TestCase039ATrapCostsOneCall,
		"041": TestCase041StartAndExit,
		"044": TestCase044TheStoreIsAwayForAWhile,
	} {
		t.Run(name, func(t *testing.T) {
			neighbour := newBench(t, "mask_c").within(ample).pool(4).loads()
			ev := event("good")
			ev.Subject = &fake.Subject{Texts: []abi.Leaf{{Kind: abi.LeafText, Pointer: "/a", Text: cardText}}}
			want := abi.Verdict{Kind: abi.Amend, Edits: []abi.Edit{{Op: abi.EditSplice, Pointer: "/a", Start: 5, End: 9, Text: "[number]"}}}
			beside(t, 100, func() bool {
				v, err := neighbour.send(ev)
				return assert.NoError(t, err) && assert.Equal(t, want, v)
			}, func() { test(t) })
		})
	}
}

// BenchmarkHostileUnderLoad measures how long after its time a guest that
// never comes back is answered for, beside a hundred good callers, and how long
// those wait for theirs.
func BenchmarkHostileUnderLoad(b *testing.B) {
	for _, f := range faults {
		if f.cause != chain.CauseDeadline {
			continue
		}
		b.Run(f.fixture, func(b *testing.B) {
			a := newArena(b, f, chain.Open)
			var late, good []time.Duration
			var mu sync.Mutex
			beside(b, 100, func() bool {
				r := a.at(abi.BeforeModel, "good", cardText)
				mu.Lock()
				defer mu.Unlock()
				good = append(good, r.took)
				return assert.NoError(b, r.err())
			}, func() {
				for b.Loop() {
					late = append(late, a.hostileCall(b)-a.timeout())
				}
			})
			for name, of := range map[string][]time.Duration{"late": late, "good": good} {
				slices.Sort(of)
				for _, percent := range []int{50, 99} {
					took := of[(len(of)-1)*percent/100]
					b.ReportMetric(float64(took.Microseconds())/1000, fmt.Sprintf("ms-%s-p%d", name, percent))
				}
			}
		})
	}
}

// level is taken after the stages were called for the first time.
func (a *arena) level() (heap uint64) {
	a.t.Helper()
	a.besideGoodCalls(a.t, 100, func() { a.nextCallWorks(a.t) })
	return a.footprint()
}

// returnsTo allows for the instances that a pool makes after the level was
// taken: their stacks are on the heap. A leaf of megabytes must be gone.
func (a *arena) returnsTo(level uint64) {
	a.t.Helper()
	assert.Less(a.t, a.footprint(), level+2<<20, "bytes of the heap")
}

// footprint is what lives on the heap when all is quiet, without the log. By
// then there is no instance but those that the pools keep.
func (a *arena) footprint() (heap uint64) {
	a.t.Helper()
	require.EventuallyWithT(a.t, func(t *assert.CollectT) {
		maps := 0
		for _, s := range a.stages {
			instances, idle := s.pool.kept()
			assert.Equal(t, instances, idle, "instances of which no call has the use")
			maps += 1 + instances // the image itself is mapped as well
		}
		if runtime.GOOS == "linux" {
			assert.Equal(t, a.maps+maps, mapsOfImages(a.t), "maps of images")
		}
	}, 10*time.Second, 10*time.Millisecond)
	heap, _ = inUse()
	return heap - a.log.size()
}

// kept counts the instances of a pool, and those that wait for a call.
func (p *pool) kept() (instances, clean int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total, len(p.clean)
}

// mapsOfImages counts them where the kernel lists them.
func mapsOfImages(t testing.TB) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return bytes.Count(maps, []byte(imageMap))
}

// What a guest prints and logs costs it time and the log a bounded part of it.
func TestAFloodOfOutputIsCounted(t *testing.T) {
	b := newBench(t, "log_flood").within(ample)
	b.cfg.Output = true
	v, err := b.loads().call("a")
	require.NoError(t, err, "2 GB of output are no failure where there is time for them")
	assert.Equal(t, abi.Continue, v.Kind)
	lines := strings.Count(b.log.String(), "guest: xxx")
	assert.Positive(t, lines)
	assert.LessOrEqual(t, lines, 64)
	assert.Less(t, b.log.Len(), 64*5<<10)
	assert.GreaterOrEqual(t, b.stage.Dropped(), int64(1024-64))
}
