package host_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/demo"
)

// The guest of this test has a secret in the names of its functions, in what
// it prints before it traps, and in the pointer of an edit that does not fit.
func TestWhatAGuestSaysIsNeitherTracedNorMeasured(t *testing.T) {
	m := newMeter(t)
	w := open(t, `
version = 1
order = ["telling"]
[stage.telling]
module = "FIXTURE/telling_trap"
role = "transformer"
on_error = "open"
`, host.Options{Meter: m}, demo.Reply{Text: "hello"})

	require.Equal(t, []string{"hello"}, w.says("hi"))

	causes := map[chain.Cause]bool{}
	for _, step := range w.steps {
		causes[step.Cause] = true
		assert.NotContains(t, fmt.Sprintf("%+v %s", step, step.Line()), "sk_live")
	}
	assert.True(t, causes[chain.CauseTrap])
	assert.True(t, causes[chain.CauseBadVerdict])

	var measured metricdata.ResourceMetrics
	require.NoError(t, m.reader.Collect(t.Context(), &measured))
	assert.Contains(t, fmt.Sprintf("%+v", measured), "telling", "the stage's name is there")
	assert.NotContains(t, fmt.Sprintf("%+v", measured), "sk_live")

	log := w.log.String()
	assert.Contains(t, log, "cause=trap")
	assert.Contains(t, log, "amend: ")
	assert.Contains(t, log, "named_sk_live", "names are constant for a module")
	assert.NotContains(t, log, "printed_sk_live")
	assert.NotContains(t, log, "written_sk_live")

	counted := map[string]int64{}
	for series, n := range m.read("hookhost.stage.failures") {
		for _, cause := range []chain.Cause{chain.CauseTrap, chain.CauseBadVerdict} {
			if strings.Contains(series, "cause="+cause.String()) && strings.Contains(series, "policy=open") && strings.Contains(series, "stage=telling") {
				counted[cause.String()] += n
			}
		}
	}
	assert.Len(t, counted, 2, "each cause apart")
}
