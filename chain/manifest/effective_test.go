package manifest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
)

const threeStages = `
version = 1
order = ["meter", "limit", "redact", "old", "idle"]
[stage.meter]
module = "hook.wasm"
role = "observer"
[stage.limit]
module = "hook.wasm"
role = "responder"
grants = ["limit:turn"]
on_error = "closed"
on_load_error = "open"
on_store_error = "local"
agents = ["triage"]
hooks = ["before_run", "before_model", "close"]
[stage.redact]
module = "hook.wasm"
role = "transformer"
mode = "shadow"
[stage.old]
module = "hook.wasm"
role = "observer"
mode = "off"
[stage.idle]
module = "hook.wasm"
role = "observer"
hooks = ["after_tool"]
`

func wants(s *Stage) abi.HookSet {
	switch s.Spec.Name {
	case "meter":
		return abi.SetOf(abi.AfterModel, abi.Close)
	case "redact":
		return abi.SetOf(abi.AfterModel)
	case "idle":
		return abi.SetOf(abi.BeforeTool)
	default:
		return abi.AllHooks
	}
}

func TestEffectivePlan(t *testing.T) {
	m := load(t, threeStages)
	m.File, m.Version = "hooks.toml", "0123456789abcdef"
	m.Store.URL, m.Limits = "redis://ada:geheim@db:6379/1", Limits{Plans: "plans.toml", FanOut: 8}
	e := NewEffective(m, wants)
	assert.Equal(t, `hooks.toml, version 0123456789abcdef
store: redis://db:6379/1, namespace hookhost, timeout 50ms, replicas 1
limits: plans.toml, fan-out 8

before_run
  1. limit (responder, enforce) agents=triage
     load failure               open: this stage is skipped
     trap, deadline, full pool  closed: denies the run with the refusal
     store outage               local: a share of the limit in this process, else the stage is skipped

before_model
  1. limit (responder, enforce) agents=triage
     load failure               open: this stage is skipped
     trap, deadline, full pool  closed: the refusal is the reply
     store outage               local: a share of the limit in this process, else the stage is skipped

after_model
  1. meter (observer, enforce)
     load failure, trap, deadline, full pool, store outage  open: this stage is skipped
  2. redact (transformer, shadow)
     load failure, trap, deadline, full pool, store outage  shadow: counted and logged, nothing else changes

close
  1. meter (observer, enforce)
     load failure, trap, deadline, full pool, store outage  open: this stage is skipped
  2. limit (responder, enforce) agents=triage
     load failure               open: this stage is skipped
     trap, deadline, full pool  closed: can only be logged here
     store outage               local: a share of the limit in this process, else the stage is skipped

off: old

idle, no hook is left for them: idle
`, e.String())

	text, err := json.Marshal(e)
	require.NoError(t, err)
	var back Effective
	require.NoError(t, json.Unmarshal(text, &back))
	assert.Equal(t, e, &back)
	assert.Contains(t, string(text), `"store_outage":"local: `)
}

func TestEffectivePlanOfNothing(t *testing.T) {
	e := NewEffective(&Manifest{
		File: "hooks.toml", Overlay: "hooks.prod.toml", Version: "0123456789abcdef",
		Store: Store{URL: "memory://", Namespace: "n", Timeout: time.Second, Replicas: 2}, Limits: Limits{FanOut: 1},
	}, wants)
	assert.Equal(t, "hooks.toml under hooks.prod.toml, version 0123456789abcdef\nstore: memory://, namespace n, timeout 1s, replicas 2\n", e.String())
	text, err := json.Marshal(e)
	require.NoError(t, err)
	assert.JSONEq(t, `{"manifest": "hooks.toml", "overlay": "hooks.prod.toml", "version": "0123456789abcdef",
		"store": {"url": "memory://", "namespace": "n", "timeout": "1s", "replicas": 2}, "limits": {"fan_out": 1}, "hooks": [], "off": [], "idle": []}`, string(text))
}

// Closed means at each hook what the policy table says.
func TestClosedByHook(t *testing.T) {
	for _, h := range abi.Hooks() {
		want := map[abi.Hook]string{
			abi.OnUserMessage: "closed: denies the run with the refusal",
			abi.BeforeRun:     "closed: denies the run with the refusal",
			abi.AfterRun:      "closed: can only be logged here",
			abi.OnEvent:       "closed: the refusal replaces the text, calls stay",
			abi.BeforeAgent:   "closed: the refusal is the reply",
			abi.AfterAgent:    "closed: the refusal is the reply",
			abi.BeforeModel:   "closed: the refusal is the reply",
			abi.OnModelChunk:  "closed: this and later chunks are held, the final response is the refusal",
			abi.AfterModel:    "closed: the refusal is the reply",
			abi.OnModelError:  "closed: the refusal is the reply",
			abi.BeforeTool:    "closed: a result map with the refusal",
			abi.AfterTool:     "closed: a result map with the refusal",
			abi.OnToolError:   "closed: a result map with the refusal",
			abi.Close:         "closed: can only be logged here",
		}[h]
		assert.Equal(t, want, outcome(chain.Enforce, chain.Closed, h), h)
	}
}
