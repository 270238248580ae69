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
	"strings"
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
	runtime  *wasm.Runtime
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
	h.start()
	h.warn(m, h.plans.current.Load())
	h.log.Info("host started", "manifest", m.File, "version", m.Version, "stages", len(m.Stages))
	h.log.Info("no stage sees what ADK shows to no plugin", "roads", Roads())
	h.log.Info("the user id is trusted as the caller of the runner gives it: derive it from a verified principal")
	return h, nil
}

// prepare makes a host up to the chain that it begins with. Nothing runs yet but
// the store.
func prepare(ctx context.Context, path string, o Options) (*Host, *chain.Chain, error) {
	h := &Host{path: path, options: o, log: o.log(), plans: &plans{clock: o.clock()}}
	m, err := manifest.Load(path, o.manifest())
	if err != nil {
		return nil, nil, err
	}
	numbers, err := loadPlans(m)
	if err != nil {
		return nil, nil, err
	}
	h.manifest = m
	h.plans.current.Store(numbers)
	if h.store, err = h.openStore(m); err != nil {
		return nil, nil, err
	}
	h.services = &hostfn.Services{
		Store: h.store, StoreTimeout: m.Store.Timeout, Local: memory.New(o.clock()),
		Replicas: func() int64 { return int64(m.Store.Replicas) }, Plans: h.plans, Log: h.log,
	}
	h.runtime = wasm.New(cacheDir(o.CacheDir), h.log)
	first, err := h.build(ctx, m)
	if err != nil {
		return nil, nil, errors.Join(err, h.store.Close(ctx))
	}
	return h, first, nil
}

// Roads are the ways in which ADK runs code that it shows to no plugin, so
// that no stage sees it either.
func Roads() []string {
	return []string{"live runs (model and agent hooks)", "agent tools", "streaming tools", "workflow function and tool nodes"}
}

// warn logs what the manifest allows and cannot be meant, such as a limit
// that no plan gives a number: it would limit nothing.
func (h *Host) warn(m *manifest.Manifest, numbers *manifest.Plans) {
	for _, found := range manifest.Lint(m, manifest.LintInput{Plans: numbers}) {
		if found.Level == manifest.Fault {
			h.log.Error("the manifest cannot be meant so", "rule", found.Rule, "finding", found.At.Error())
		}
	}
}

func loadPlans(m *manifest.Manifest) (*manifest.Plans, error) {
	if m.Limits.Plans == "" {
		return nil, nil
	}
	return manifest.LoadPlans(m.Limits.Plans)
}

// ErrStore is a store that this build has no engine for.
var ErrStore = errors.New("no engine for this store")

func (h *Host) openStore(m *manifest.Manifest) (store.Store, error) {
	if h.options.Store != nil {
		return h.options.Store, nil
	}
	if m.Store.URL != "memory://" {
		scheme, _, _ := strings.Cut(m.Store.URL, "://") // the rest may hold a password
		return nil, fmt.Errorf("store[%s]: %w: use memory://", scheme, ErrStore)
	}
	return memory.New(h.options.clock()), nil
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

// start begins what runs as long as the host: renewing leases, writing what
// was put off, and ending the runs that ADK never ends.
func (h *Host) start() {
	h.stopped, h.stop = context.WithCancel(context.Background())
	ctx := h.stopped
	h.background.Go(func() { h.services.Run(ctx) })
	h.background.Go(func() {
		tick := time.NewTicker(sweepEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if n := h.ledger.FinishIdle(ctx, idleLimit); n > 0 {
					h.log.Warn("ended runs that went idle", "runs", n, "idle", idleLimit)
				}
			}
		}
	})
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

// Limit is the definition of a limit for a user now.
func (h *Host) Limit(app, user, name string) (hostfn.Limit, bool) {
	return h.plans.Limit(context.Background(), app, user, name, "")
}

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
	h.plans.current.Store(numbers)
	h.manifest = m
	old := h.ledger.Swap(next)
	h.log.Info("manifest reloaded", "manifest", m.File, "version", m.Version, "before", old.Version())
	h.retiring.Go(func() { h.retire(old) })
	return nil
}

// ErrStoreFixed is a reload that changes [store].
var ErrStoreFixed = errors.New("url, namespace, timeout and replicas cannot change while the host runs: restart it, or take the change back")

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

// Close ends the runs that are left, closes every stage, writes what was put
// off as long as ctx allows, closes the store, and joins their errors. Runs that begin later are refused. A second Close does
// nothing.
func (h *Host) Close(ctx context.Context) error {
	h.reload.Lock()
	if h.closed {
		h.reload.Unlock()
		return nil
	}
	h.closed = true
	h.reload.Unlock()

	errs := []error{h.ledger.Close(ctx).Retire(ctx)}
	h.retiring.Wait()
	h.stop()
	h.background.Wait()
	errs = append(errs, h.retired...)
	errs = append(errs, h.services.Close(ctx), h.services.Local.Close(ctx), h.store.Close(ctx))
	return errors.Join(errs...)
}

// trace logs what failed and passes every step on.
func (h *Host) trace(s chain.Step) {
	if s.Err != nil {
		h.log.Warn("stage failed", "stage", s.Stage, "hook", s.Hook, "cause", s.Cause, "policy", s.Policy, "run", s.Run, "error", s.Err)
	}
	if h.options.Trace.Step != nil {
		h.options.Trace.Step(s)
	}
}
