// Package host puts a chain of sandboxed hooks behind one ADK plugin.
//
//	h, err := host.Open(ctx, "hooks.toml", host.Options{})
//	if err != nil {
//		return err
//	}
//	defer h.Close(ctx)
//	runner.New(runner.Config{ ...,
//		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{h.Plugin()}}})
//
// Register it first: ADK asks plugins in order and stops at the first that
// answers, so one before it can hide hooks from the whole chain.
package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"google.golang.org/adk/v2/plugin"

	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/host/adk"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/host/wasm"
	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/memory"
)

// Host runs the chain of one manifest. Its methods may be called by many
// goroutines at once.
type Host struct {
	path     string
	options  Options
	log      *slog.Logger
	store    store.Store
	services *hostfn.Services
	plans    *plans
	fleet    *processes
	runtime  *wasm.Runtime
	failures failures
	ledger   *chain.Ledger
	plugin   *plugin.Plugin

	stopped    context.Context // done when the host closes
	stop       context.CancelFunc
	background sync.WaitGroup // of what goes on until then

	reload   sync.Mutex // one at a time, and none after Close
	manifest *manifest.Manifest
	closed   bool
	retiring sync.WaitGroup
	retired  []error // what old chains failed with when they closed; under reload
}

// Open reads the manifest at path, loads its modules and starts the host. All
// faults of the manifest come back at once, as *manifest.Errors.
func Open(ctx context.Context, path string, o Options) (*Host, error) {
	h, first, err := prepare(ctx, path, o)
	if err != nil {
		return nil, err
	}
	m := h.manifest
	h.ledger = chain.NewLedger(first, o.clock(), chain.Tracer{Step: h.trace, Span: o.Trace.Span})
	if h.plugin, err = adk.New(h.ledger, h.log); err != nil {
		return nil, errors.Join(err, first.Retire(ctx), h.store.Close(ctx))
	}
	h.poll(ctx)
	h.start()
	h.warn(m, h.plans.file())
	h.log.Info("host started", "manifest", m.File, "version", m.Version, "plans", h.plans.Version(), "stages", len(m.Stages))
	h.log.Info("no stage sees what ADK shows to no plugin", "roads", Roads())
	h.log.Info("the user id is trusted as the caller of the runner gives it: derive it from a verified principal")
	return h, nil
}

// prepare makes a host up to the chain that it begins with. Nothing runs yet but
// the store.
func prepare(ctx context.Context, path string, o Options) (*Host, *chain.Chain, error) {
	h, err := read(ctx, path, o)
	if err != nil {
		return nil, nil, err
	}
	first, err := h.build(ctx, h.manifest)
	if err != nil {
		return nil, nil, errors.Join(err, h.store.Close(ctx))
	}
	return h, first, nil
}

// read makes a host that has loaded no module yet.
func read(ctx context.Context, path string, o Options) (*Host, error) {
	h := &Host{path: path, options: o, log: o.log()}
	m, err := manifest.Load(path, o.manifest())
	if err != nil {
		return nil, err
	}
	numbers, err := loadPlans(m)
	if err != nil {
		return nil, err
	}
	h.manifest = m
	h.plans = newPlans(numbers, o)
	switches := make(chan struct{}, 1)
	var away func() bool
	if h.store, away, err = h.openStore(ctx, switches); err != nil {
		return nil, err
	}
	h.fleet = newProcesses(h.store, int64(m.Store.Replicas), processExpiry, switches)
	h.services = &hostfn.Services{
		Store: h.store, StoreTimeout: m.Store.Timeout, Away: away, Local: memory.New(o.clock()), Replicas: h.Replicas,
		Plans: h.plans, Log: h.log, Meter: o.meter(),
	}
	h.runtime = h.newRuntime()
	if h.failures, err = newFailures(o.meter()); err != nil {
		return nil, errors.Join(err, h.store.Close(ctx))
	}
	return h, nil
}

func (h *Host) newRuntime() *wasm.Runtime {
	return wasm.New(wasm.Options{
		CacheDir: cacheDir(h.options.CacheDir), Log: h.log, Compiling: h.options.Compiling, CacheWarning: h.options.CacheWarning,
	})
}

// openStore opens the store of the manifest, guarded if it can be away. Where
// nobody knows whether it is, away is nil.
func (h *Host) openStore(ctx context.Context, switches chan<- struct{}) (s store.Store, away func() bool, err error) {
	opened, shared, err := openStore(ctx, h.manifest, h.options)
	if err != nil || !shared {
		return opened, nil, err
	}
	s, away, err = guard(opened, h.manifest.Store.Timeout, h.options.meter(), h.log, switches)
	if err != nil {
		return nil, nil, errors.Join(err, opened.Close(ctx))
	}
	return s, away, nil
}

// Roads are the ways in which ADK runs code that it shows to no plugin, so
// that no stage sees it either.
func Roads() []string {
	return []string{"live runs (model and agent hooks)", "agent tools", "streaming tools", "workflow function and tool nodes"}
}

// warn logs what the manifest allows and cannot be meant, such as a limit
// that no plan gives a number, which would limit nothing; and what is seldom
// meant in the plans, which change while nobody runs hookhost lint.
func (h *Host) warn(m *manifest.Manifest, numbers *manifest.Plans) {
	for _, found := range manifest.Lint(m, manifest.LintInput{Plans: numbers}) {
		switch {
		case found.Level == manifest.Fault:
			h.log.Error("the manifest cannot be meant so", "rule", found.Rule, "finding", found.At.Error())
		case numbers != nil && found.At.File == numbers.File:
			h.log.Warn("the plans are seldom meant so", "rule", found.Rule, "finding", found.At.Error())
		}
	}
}

func loadPlans(m *manifest.Manifest) (*manifest.Plans, error) {
	if m.Limits.Plans == "" {
		return nil, nil
	}
	return manifest.LoadPlans(m.Limits.Plans)
}

func cacheDir(dir string) string {
	if dir != "" {
		return dir
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "" // no home: the runtime keeps the modules in memory
	}
	return filepath.Join(base, "hookhost")
}

// poll asks the store for overrides. That it cannot answer is said elsewhere,
// once.
func (h *Host) poll(ctx context.Context) {
	if err := h.plans.overrides.poll(ctx, h.store); err != nil && ctx.Err() == nil {
		h.log.Debug("overrides stay as they were last known", "error", err)
	}
}

// start begins what runs as long as the host: renewing leases, writing what
// was put off, asking for overrides, looking at plans.toml, telling that this
// process lives, and ending the runs that ADK never ends.
func (h *Host) start() {
	h.stopped, h.stop = context.WithCancel(context.Background())
	ctx := h.stopped
	h.background.Go(func() { h.services.Run(ctx) })
	h.background.Go(func() { every(ctx, pollEvery, func() { h.poll(ctx) }) })
	h.background.Go(func() {
		var seen watch
		every(ctx, watchEvery, func() { h.lookAtPlans(&seen) })
	})
	h.background.Go(func() {
		h.fleet.run(ctx, func(err error) { h.log.Debug("this process could not say that it lives", "error", err) })
	})
	h.background.Go(func() { every(ctx, sweepEvery, func() { h.sweep(ctx) }) })
}

func (h *Host) sweep(ctx context.Context) {
	if n := h.ledger.FinishIdle(ctx, idleLimit); n > 0 {
		h.log.Warn("ended runs that went idle", "runs", n, "idle", idleLimit)
	}
}

// Plugin is what goes into the runner's PluginConfig, before all others.
func (h *Host) Plugin() *plugin.Plugin { return h.plugin }

// Manifest is the one that new runs begin with.
func (h *Host) Manifest() *manifest.Manifest {
	h.reload.Lock()
	defer h.reload.Unlock()
	return h.manifest
}

// Store is the shared state of the host, for those who read it: usage,
// balances.
func (h *Host) Store() store.Store { return h.store }

// Limit is the definition of a limit for a user now. The context may hold
// claims.
func (h *Host) Limit(ctx context.Context, app, user, name string) (hostfn.Limit, bool) {
	return h.plans.Limit(ctx, app, user, name, "")
}

// PlanOf tells which plan a user is on now, and why. The context may hold
// claims.
func (h *Host) PlanOf(ctx context.Context, app, user string) UserPlan {
	_, on := h.plans.resolve(ctx, app, user)
	return on
}

// Replicas is how many live processes were last seen on the store or, until
// it was asked, how many the manifest says there are.
func (h *Host) Replicas() int64 { return h.fleet.count() }

// Open counts the runs and the operations that have not ended.
func (h *Host) Open() (runs, operations int) { return h.ledger.Open() }

// Drain writes what runs left to be written behind them, such as settlements,
// for those who read the store next. It fails if the store is away.
func (h *Host) Drain(ctx context.Context) error { return h.services.Drain(ctx) }

// Fallbacks counts the calls to the store that found it away.
func (h *Host) Fallbacks() int64 { return h.services.Fallbacks() }

// ErrClosed is a reload of a host that was closed.
var ErrClosed = errors.New("host is closed")

// Reload reads the manifest again, validates all of it, and puts it in place
// for the runs to come. Runs that go on keep the chain that they began with.
// After an error the running chain is as it was.
func (h *Host) Reload(ctx context.Context) error {
	h.reload.Lock()
	defer h.reload.Unlock()
	if h.closed {
		return ErrClosed
	}
	m, err := manifest.Load(h.path, h.options.manifest())
	if err != nil {
		return err
	}
	if m.Store != h.manifest.Store {
		return fmt.Errorf("%s: [store]: %w", m.File, ErrStoreFixed)
	}
	numbers, err := loadPlans(m)
	if err != nil {
		return err
	}
	next, err := h.build(ctx, m)
	if err != nil {
		return err
	}
	h.warn(m, numbers)
	h.replacePlans(numbers)
	h.manifest = m
	old := h.ledger.Swap(next)
	h.log.Info("manifest reloaded", "manifest", m.File, "version", m.Version, "before", old.Version())
	h.retiring.Go(func() { h.retire(old) })
	return nil
}

// ReloadPlans reads plans.toml again, validates all of it, and puts it in place
// for all limits that are asked from now on. After an error the plans are as
// they were. The host does this by itself within seconds of a change.
func (h *Host) ReloadPlans() error { return h.takePlans(loadPlans) }

func (h *Host) takePlans(read func(*manifest.Manifest) (*manifest.Plans, error)) error {
	h.reload.Lock()
	defer h.reload.Unlock()
	if h.closed {
		return ErrClosed
	}
	numbers, err := read(h.manifest)
	if err != nil {
		return err
	}
	h.warn(h.manifest, numbers)
	h.replacePlans(numbers)
	return nil
}

func (h *Host) replacePlans(numbers *manifest.Plans) {
	before := h.plans.Version()
	h.plans.set(numbers)
	h.log.Info("plans reloaded", "version", h.plans.Version(), "before", before)
}

// ErrStoreFixed is a reload that changes [store].
var ErrStoreFixed = errors.New("it cannot change while the host runs: restart it, or take the change back")

// retire closes a chain once its last run is over. That comes: runs end, or
// the sweep ends them, or Close does.
func (h *Host) retire(old *chain.Chain) {
	if err := old.Retire(context.Background()); err != nil {
		h.log.Error("closing a replaced chain", "version", old.Version(), "error", err)
		h.reload.Lock()
		defer h.reload.Unlock()
		h.retired = append(h.retired, err)
	}
}

// ReloadOnHangup reloads at each SIGHUP until the host is closed. What a
// reload fails with is logged.
func (h *Host) ReloadOnHangup() {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	h.background.Go(func() {
		defer signal.Stop(hangup)
		for {
			select {
			case <-h.stopped.Done():
				return
			case <-hangup:
				if err := h.Reload(h.stopped); err != nil {
					h.log.Error("reload refused, the running chain stays", "error", err)
				}
			}
		}
	})
}

// CloseTime is what Close has where its context is over before it begins.
const CloseTime = 5 * time.Second

// Close ends the runs that are left, closes every stage, writes what was put
// off as long as ctx allows, closes the store, and joins their errors. Runs
// that begin later are refused. A second Close does nothing.
//
// A context that is over already, such as that of the signal which ends the
// program, gives Close CloseTime. To bound it otherwise, pass a context that
// is not.
func (h *Host) Close(ctx context.Context) error {
	h.reload.Lock()
	if h.closed {
		h.reload.Unlock()
		return nil
	}
	h.closed = true
	h.reload.Unlock()
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), CloseTime)
		defer cancel()
	}

	errs := []error{h.ledger.Close(ctx).Retire(ctx)}
	h.retiring.Wait()
	h.stop()
	h.background.Wait()
	errs = append(errs, h.retired...)
	errs = append(errs, h.services.Close(ctx))
	if err := h.fleet.leave(ctx); err != nil {
		h.log.Warn("other processes count this one until its lease lapses", "error", err)
	}
	errs = append(errs, h.services.Local.Close(ctx), h.store.Close(ctx))
	return errors.Join(errs...)
}

// trace logs what failed and passes every step on, without the detail of the
// failure: that is for the log alone.
func (h *Host) trace(s chain.Step) {
	if s.Cause != 0 {
		h.failures.count(s)
	}
	if s.Err != nil {
		h.log.Warn("stage failed", "stage", s.Stage, "hook", s.Hook, "cause", s.Cause, "policy", s.Policy, "run", s.Run, "error", s.Err)
	}
	if h.options.Trace.Step != nil {
		s.Err = nil
		h.options.Trace.Step(s)
	}
}
