package host

import (
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/store"
)

// Options change how a host runs. The zero value is for production: pinned
// modules, the store of the manifest, the real clock.
type Options struct {
	// Dev lets modules run that the manifest does not pin by their hash.
	Dev bool
	// Env lays hooks.ENV.toml, beside the manifest, over it.
	Env string
	// CacheDir keeps compiled modules; empty is hookhost in the user's cache
	// folder. A folder that cannot be written means compiling at each start.
	CacheDir string
	// Compiling is told of a module that takes longer than a second to compile,
	// while it does, with its size in bytes; of one at a time. nil logs it.
	Compiling func(module string, size int)
	// CacheWarning is told, once, that compiled modules are not kept or cannot
	// be read, and why. nil logs it.
	CacheWarning func(what string, err error)
	// Log gets what operators read. nil is slog.Default().
	Log *slog.Logger
	// Meter counts what the host does. nil is otel.GetMeterProvider().
	Meter metric.MeterProvider
	// Trace is told of every call of a stage and of the time that every
	// operation took, from many goroutines at once.
	Trace chain.Tracer

	// Clock is the time that limits, waits and timings go by. nil is the real
	// one.
	Clock chain.Clock
	// Store stands in for the store of the manifest. The host closes it.
	Store store.Store
	// Native are stages that are written in Go and linked into the program, by
	// their names in the manifest. There they have an order, a role and policies
	// like any other, but neither a module nor grants that mean anything. The
	// host closes them.
	Native map[string]chain.Stage
	// Wrap puts something around a stage, such as a fault to be tested. It is
	// called for many stages at once. nil leaves them as they are.
	Wrap func(name string, s chain.Stage) chain.Stage
}

// idleLimit is how long a run may go without any hook before the host takes
// it for lost: ADK gives some runs no end.
const idleLimit = time.Hour

// sweepEvery is how often the host looks for lost runs.
const sweepEvery = time.Minute

// manifest says how the manifest is read.
func (o Options) manifest() manifest.Options {
	native := func(stage string) bool { return o.Native[stage] != nil }
	return manifest.Options{Dev: o.Dev, Env: o.Env, Native: native}
}

func (o Options) log() *slog.Logger {
	if o.Log == nil {
		return slog.Default()
	}
	return o.Log
}

func (o Options) meter() metric.Meter {
	provider := o.Meter
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	return provider.Meter("github.com/hookhost/hookhost/host")
}

func (o Options) clock() chain.Clock {
	if o.Clock == nil {
		return chain.WallClock{}
	}
	return o.Clock
}
