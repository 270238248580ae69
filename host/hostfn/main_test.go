package hostfn_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/host/internal/fake"
	"github.com/hookhost/hookhost/store"
)

// bench is a run of one user with a stage that makes calls in it.
type bench struct {
	t        testing.TB
	store    *fake.Store
	local    *fake.Store
	plans    fake.Plans
	log      bytes.Buffer
	metrics  *sdkmetric.ManualReader
	services *hostfn.Services
	stage    *hostfn.Stage
	run, op  *fake.Scope
	ev       *abi.Event
}

func newBench(t testing.TB, grants ...string) *bench {
	b := &bench{t: t, store: fake.NewStore(), local: fake.NewStore(), run: fake.NewScope("run-1"), op: fake.NewScope("op-1")}
	b.metrics = sdkmetric.NewManualReader()
	b.plans = fake.Plans{
		"turn":      {Plan: "free", Bucket: bucket(5)},
		"tokens":    {Plan: "free", Bucket: bucket(1000), Estimate: hostfn.Estimate{By: hostfn.Fixed, Units: 600}, TurnEstimate: 500, MaxWait: 300 * time.Second},
		"runs":      {Plan: "free", Cap: &store.Cap{Max: 2, Expires: 30 * time.Second}},
		"calls:app": {Bucket: bucket(3)},
	}
	b.services = &hostfn.Services{
		Store: b.store, Local: b.local, Replicas: func() int64 { return 2 }, Plans: b.plans, StoreTimeout: 20 * time.Millisecond,
		Log:   slog.New(slog.NewTextHandler(&b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Meter: sdkmetric.NewMeterProvider(sdkmetric.WithReader(b.metrics)).Meter("hookhost"),
	}
	b.stage = &hostfn.Stage{Name: "probe"}
	for _, text := range grants {
		g, ok := abi.ParseGrant(text)
		require.True(t, ok, text)
		b.stage.Grants = append(b.stage.Grants, g)
	}
	b.at(abi.BeforeModel)
	return b
}

func bucket(burst int64) *store.Bucket {
	return &store.Bucket{Units: 1, Per: time.Second, Burst: burst}
}

// at moves on to a hook.
func (b *bench) at(hook abi.Hook) *bench {
	b.ev = &abi.Event{
		Hook: hook, Of: hook.Operation(), Op: b.op, Run: b.run, App: "app", User: "user", Session: "session",
		Agent: "agent", Model: "model", Time: time.UnixMilli(1_700_000_000_123),
		Subject: &fake.Subject{
			Texts: []abi.Leaf{
				{Kind: abi.LeafText, Role: abi.RoleModel, Pointer: "/a", Text: "Grüße an alle"},
				{Kind: abi.LeafArgument, Pointer: "/n", Text: "42", Number: true},
				{Kind: abi.LeafText, Pointer: "/r", Text: "fixed", ReadOnly: true, Final: true, Continues: true},
			},
			Values: map[string]any{"": "all", "/a": "Grüße an alle", "/actions/x": 1},
		},
	}
	return b
}

func (b *bench) call() *hostfn.Call { return b.callAs(b.stage) }

func (b *bench) callAs(stage *hostfn.Stage) *hostfn.Call {
	return b.services.NewCall(b.t.Context(), stage, b.ev)
}

// decision is what a limit function wrote.
type decision struct {
	kind  abi.Decision
	limit uint32
	wait  int64
	id    int64
}

func (b *bench) admit(c *hostfn.Call, names string) decision {
	b.t.Helper()
	out := make([]byte, abi.DecisionSize)
	require.EqualValues(b.t, abi.DecisionSize, c.LimitAdmit(names, out))
	return readDecision(out)
}

func (b *bench) take(c *hostfn.Call, name string, cost int64) decision {
	b.t.Helper()
	out := make([]byte, abi.DecisionSize)
	require.EqualValues(b.t, abi.DecisionSize, c.LimitTake(name, cost, out))
	return readDecision(out)
}

func readDecision(out []byte) decision {
	return decision{
		kind:  abi.Decision(binary.LittleEndian.Uint32(out[abi.DecisionKind:])),
		limit: binary.LittleEndian.Uint32(out[abi.DecisionLimit:]),
		wait:  int64(binary.LittleEndian.Uint64(out[abi.DecisionWait:])),
		id:    int64(binary.LittleEndian.Uint64(out[abi.DecisionID:])),
	}
}

var user = store.Owner{Kind: store.OwnerUser, App: "app", User: "user"}

// drain writes what was put off.
func (b *bench) drain() {
	b.t.Helper()
	require.NoError(b.t, b.services.Drain(context.Background()))
}

// balance reads a bucket in the owner's own key space, when all was written.
func (b *bench) balance(in *fake.Store, owner store.Owner, name string) int64 {
	b.t.Helper()
	b.drain()
	limit := b.plans[name]
	if owner.Kind == store.OwnerApp {
		limit = b.plans[name+":app"]
	}
	n, err := in.Balance(context.Background(), owner, name, *limit.Bucket)
	require.NoError(b.t, err)
	return n
}

func (b *bench) held(owner store.Owner, name string) int64 {
	b.t.Helper()
	b.drain()
	n, err := b.store.Held(context.Background(), owner, name)
	require.NoError(b.t, err)
	return n
}

func (b *bench) records() []store.Record {
	b.t.Helper()
	b.drain()
	records, err := b.store.Records(context.Background(), user)
	require.NoError(b.t, err)
	return records
}

// text reads a value by a function, with a buffer that is large enough.
func text(read func([]byte) int32) (string, abi.Code) {
	buf := make([]byte, 1<<10)
	n := read(buf)
	if n < 0 {
		return "", n
	}
	return string(buf[:n]), abi.OK
}
