package hostfn_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/internal/fake"
	"github.com/hookhost/hookhost/store"
)

// measured reads an instrument: what it counted, or of a histogram what it
// added up, by the attributes in their order.
func (b *bench) measured(name string) map[string]float64 {
	b.t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(b.t, b.metrics.Collect(b.t.Context(), &all))
	got := map[string]float64{}
	put := func(of attribute.Set, n float64) {
		var words []string
		for _, kv := range of.ToSlice() {
			words = append(words, string(kv.Key)+"="+kv.Value.AsString())
		}
		got[strings.Join(words, " ")] = n
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					put(p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					put(p.Attributes, float64(p.Value))
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					put(p.Attributes, p.Sum)
				}
			}
		}
	}
	return got
}

func (b *bench) decisions() map[string]float64 { return b.measured("hookhost.limit.decisions") }

func TestDecisionsAreCounted(t *testing.T) {
	b := newBench(t, "limit:turn", "limit:tokens", "limit:runs", "limit:calls:app")
	c := b.call()
	b.admit(c, "turn\ntokens\nruns\ncalls:app")
	b.take(c, "tokens", 900)
	require.Equal(t, abi.Delayed, b.take(c, "tokens", 200).kind)
	require.Equal(t, abi.Denied, b.take(c, "tokens", 900).kind)
	require.Equal(t, abi.NeverFits, b.take(c, "tokens", 5000).kind)
	require.Equal(t, abi.Denied, b.admit(c, "turn\ntokens\nruns").kind, "by the tokens: of the others nothing is known")
	b.store.Down(true)
	c.LimitAdmit("turn\nruns", make([]byte, abi.DecisionSize))
	assert.Equal(t, map[string]float64{
		"limit=turn mode=enforce outcome=allowed plan=free scope=user":     1,
		"limit=turn mode=enforce outcome=unavailable plan=free scope=user": 1,
		"limit=tokens mode=enforce outcome=allowed plan=free scope=user":   2,
		"limit=tokens mode=enforce outcome=waited plan=free scope=user":    1,
		"limit=tokens mode=enforce outcome=denied plan=free scope=user":    2,
		"limit=tokens mode=enforce outcome=never plan=free scope=user":     1,
		"limit=runs mode=enforce outcome=allowed plan=free scope=user":     1,
		"limit=runs mode=enforce outcome=unavailable plan=free scope=user": 1,
		"limit=calls mode=enforce outcome=allowed plan= scope=app":         1,
	}, b.decisions())
	assert.Equal(t, map[string]float64{"limit=tokens mode=enforce plan=free scope=user": 100}, b.measured("hookhost.limit.wait"), "in seconds")
	assert.Equal(t, map[string]float64{"stage=probe": 1}, b.measured("hookhost.store.fallbacks"))
}

func TestAnAdmissionThatIsUndoneCountsForWhoSaidNo(t *testing.T) {
	b := newBench(t, "limit:turn", "limit:calls:app")
	b.plans["calls:app"] = b.plans["turn"]
	for range 5 {
		b.take(b.call(), "calls:app", 1)
	}
	require.Equal(t, abi.Denied, b.admit(b.call(), "turn\ncalls:app").kind)
	assert.Equal(t, map[string]float64{
		"limit=calls mode=enforce outcome=allowed plan=free scope=app": 5,
		"limit=calls mode=enforce outcome=denied plan=free scope=app":  1,
	}, b.decisions())
}

func TestAPlanInShadowCountsWhatItWouldDo(t *testing.T) {
	b := newBench(t, "limit:turn", "limit:tokens", "limit:runs")
	for _, name := range []string{"turn", "tokens", "runs"} {
		l := b.plans[name]
		l.Plan, l.Shadow = "trial", true
		b.plans[name] = l
	}
	for i := range 8 {
		b.run, b.op = fake.NewScope(fmt.Sprint("run-", i)), fake.NewScope(fmt.Sprint("op-", i))
		c := b.at(abi.BeforeRun).call()
		d := b.admit(c, "turn\nruns")
		assert.Equal(t, abi.Admitted, d.kind)
		d = b.take(c, "tokens", abi.EstimateOfPlan)
		assert.Equal(t, abi.Admitted, d.kind)
		assert.Zero(t, d.wait, "nobody is held up")
		if i >= 2 { // the first two runs go on
			b.op.End(abi.Ending{Reason: abi.ReasonDone})
			b.run.End(abi.Ending{Reason: abi.ReasonDone})
		}
	}
	assert.Equal(t, map[string]float64{
		"limit=turn mode=shadow outcome=allowed plan=trial scope=user":   2,
		"limit=runs mode=shadow outcome=allowed plan=trial scope=user":   2,
		"limit=runs mode=shadow outcome=denied plan=trial scope=user":    6,
		"limit=tokens mode=shadow outcome=allowed plan=trial scope=user": 1,
		"limit=tokens mode=shadow outcome=waited plan=trial scope=user":  1,
		"limit=tokens mode=shadow outcome=denied plan=trial scope=user":  6,
	}, b.decisions())
	assert.EqualValues(t, 5, b.balance(b.store, user, "turn"), "the real bucket is whole")
	assert.EqualValues(t, 1000, b.balance(b.store, user, "tokens"))
	assert.Zero(t, b.held(user, "runs"))

	inShadow := user
	inShadow.Shadow = "probe"
	assert.EqualValues(t, 3, b.balance(b.store, inShadow, "turn"))
	assert.EqualValues(t, 2, b.held(inShadow, "runs"), "those of the runs that go on, and of no other")
}

func TestAStageInShadowCountsAsShadow(t *testing.T) {
	b := newBench(t, "limit:turn")
	b.stage.Shadow = true
	for range 6 {
		b.admit(b.call(), "turn")
	}
	assert.Equal(t, map[string]float64{
		"limit=turn mode=shadow outcome=allowed plan=free scope=user": 5,
		"limit=turn mode=shadow outcome=denied plan=free scope=user":  1,
	}, b.decisions())
}

func TestDecisionsAreLogged(t *testing.T) {
	b := newBench(t, "limit:turn")
	for range 6 {
		b.admit(b.call(), "turn")
	}
	var lines []string
	for _, line := range strings.Split(b.log.String(), "\n") {
		if _, line, found := strings.Cut(line, " level="); found && strings.Contains(line, "limit decision") {
			lines = append(lines, line)
		}
	}
	require.Len(t, lines, 6)
	of := ` msg="limit decision" app=app user=user limit=turn plan=free plans=v-1 scope=user mode=enforce `
	assert.Equal(t, "DEBUG"+of+"outcome=allowed wait=0s run=run-1", lines[0])
	assert.Equal(t, "INFO"+of+"outcome=denied wait=1s run=run-1", lines[5])
}

func TestALongIDIsCutInTheLog(t *testing.T) {
	b := newBench(t, "limit:turn")
	b.ev.User = strings.Repeat("x", 10_000)
	b.admit(b.call(), "turn")
	assert.Contains(t, b.log.String(), " user="+strings.Repeat("x", 128)+"... ")
}

func TestLostLeasesAreSeen(t *testing.T) {
	b := newBench(t, "limit:runs")
	for i, reason := range []string{"renewal", "free"} {
		b.run = fake.NewScope(fmt.Sprint("run-", i))
		b.take(b.at(abi.BeforeRun).call(), "runs", 1)
		held, err := b.store.Free(t.Context(), store.Lease{Owner: user, Limit: "runs", Member: b.run.ID()})
		require.NoError(t, err)
		require.True(t, held)
		if reason == "renewal" {
			require.NoError(t, b.services.Leases.Renew(t.Context()))
		}
		b.run.End(abi.Ending{Reason: abi.ReasonDone})
		b.drain()
	}
	assert.Equal(t, map[string]float64{"reason=renewal": 1, "reason=free": 1}, b.measured("hookhost.lease.lost"), "each once")
	assert.Equal(t, 2, strings.Count(b.log.String(), "lease lost"))
	for _, line := range strings.Split(b.log.String(), "\n") {
		if strings.Contains(line, "lease lost") {
			assert.NotContains(t, line, "user")
		}
	}
}

func TestWritesThatWaitAndWritesThatAreLostAreCounted(t *testing.T) {
	b := newBench(t, "limit:tokens", "usage:write")
	b.take(b.call(), "tokens", abi.EstimateOfPlan)
	b.op.End(abi.Ending{Reason: abi.ReasonError})
	require.EqualValues(t, abi.OK, b.at(abi.AfterModel).call().UsageRecord())
	assert.Equal(t, map[string]float64{"": 2}, b.measured("hookhost.outbox.pending"))
	b.store.Refuse(store.ErrUnknownID)
	b.drain()
	assert.Equal(t, map[string]float64{"": 0}, b.measured("hookhost.outbox.pending"))
	assert.Equal(t, map[string]float64{"kind=release": 1, "kind=record": 1}, b.measured("hookhost.outbox.dropped"))
	require.NoError(t, b.services.Close(t.Context()))
	assert.Empty(t, b.measured("hookhost.outbox.pending"), "closed")
}

// Whatever happens to a user, no attribute of any metric is made of the id.
func TestNoMetricHasAUserInIt(t *testing.T) {
	const id = "ada-4711"
	b := newBench(t, "limit:turn", "limit:tokens", "limit:runs", "limit:calls:app", "usage:write", "kv:cache")
	b.stage.Local = true
	for i := range 12 {
		b.run, b.op = fake.NewScope(fmt.Sprint("run-", i)), fake.NewScope(fmt.Sprint("op-", i))
		b.at(abi.BeforeRun).ev.User = id
		b.store.Down(i > 6)
		c, out := b.call(), make([]byte, abi.DecisionSize)
		c.LimitAdmit("turn\ntokens\nruns\ncalls:app", out)
		c.LimitTake("tokens", abi.EstimateOfPlan, out)
		c.KVGet("cache", "k", out)
		b.at(abi.AfterModel).ev.User = id
		b.call().UsageRecord()
		if i%2 == 0 {
			b.run.End(abi.Ending{Reason: abi.ReasonDone})
		}
	}
	_ = b.services.Leases.Renew(t.Context())
	_ = b.services.Drain(t.Context())
	for _, name := range []string{"limit.decisions", "limit.wait", "outbox.pending", "outbox.dropped", "store.fallbacks", "lease.lost"} {
		for of := range b.measured("hookhost." + name) {
			assert.NotContains(t, of, id)
		}
	}
	require.NotEmpty(t, b.decisions())
	require.NotEmpty(t, b.measured("hookhost.store.fallbacks"))
}
