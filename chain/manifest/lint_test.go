package manifest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
)

// rules lints one stage in a manifest with plans and gives the rules found
// besides unpinned.
func rules(t *testing.T, in LintInput, body string) []string {
	m := load(t, oneStage("[limits]\nplans = \"plans.toml\"", body))
	var ids []string
	for _, f := range Lint(m, in) {
		assert.Positive(t, f.At.Line, "%s", f)
		if f.Rule != RuleUnpinned {
			ids = append(ids, f.Rule)
		}
	}
	return ids
}

// asks is a module that wants these hooks.
func asks(hooks ...abi.Hook) LintInput {
	return LintInput{Hooks: func(*Stage) abi.HookSet { return abi.SetOf(hooks...) }}
}

func TestLint(t *testing.T) {
	plans, err := LoadPlans("testdata/good/plans.toml")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		in   LintInput
		body string
		want []string
	}{
		"nothing":                         {LintInput{}, "", nil},
		"observer closed":                 {LintInput{}, "role = \"observer\"\non_error = \"closed\"", []string{RuleObserverClosed}},
		"observer closed on load only":    {LintInput{}, "role = \"observer\"\non_load_error = \"closed\"", []string{RuleObserverClosed}},
		"transformer open":                {LintInput{}, "on_error = \"open\"", []string{RuleTransformerOpen}},
		"responder open":                  {LintInput{}, "role = \"responder\"\non_error = \"open\"", nil},
		"off":                             {LintInput{}, "on_error = \"open\"\nmode = \"off\"", nil},
		"one agent":                       {LintInput{Agents: 1}, "", nil},
		"several agents":                  {LintInput{Agents: 2}, "", []string{RuleAmendsAllAgents}},
		"several agents, all meant":       {LintInput{Agents: 2}, "agents = [\"*\"]", nil},
		"several agents, observer":        {LintInput{Agents: 2}, "role = \"observer\"", nil},
		"tools without tool hooks":        {LintInput{}, "tools = [\"refund\"]\nhooks = [\"before_model\"]", []string{RuleScopeWithoutHook}},
		"models without model hooks":      {LintInput{}, "models = [\"m\"]\nhooks = [\"before_tool\"]", []string{RuleScopeWithoutHook}},
		"models with a model hook":        {LintInput{}, "models = [\"m\"]\nhooks = [\"on_model_chunk\"]", nil},
		"limits with plans not looked at": {LintInput{}, "grants = [\"limit:turns\"]", nil},
		"response and stream":             {asks(abi.AfterModel, abi.OnModelChunk), "", nil},
		"response alone":                  {asks(abi.AfterModel), "", []string{RuleUnheldStream}},
		"response alone, responder":       {asks(abi.AfterModel), "role = \"responder\"", nil},
		"response alone, observer":        {asks(abi.AfterModel), "role = \"observer\"", nil},
		"response alone, as listed":       {asks(abi.AfterModel), "hooks = [\"after_model\"]", nil},
		"stream left out of hooks":        {asks(abi.AfterModel, abi.OnModelChunk), "hooks = [\"after_model\"]", []string{RuleUnheldStream}},
		"neither":                         {asks(abi.BeforeModel), "", nil},
		"known limits":                    {LintInput{Plans: plans}, "grants = [\"limit:turn\", \"limit:model_calls:app\", \"limit:exports:global\", \"kv:x\"]", nil},
		"unknown limit":                   {LintInput{Plans: plans}, "grants = [\"limit:turns\"]", []string{RuleUnknownLimit}},
		"limit of another scope":          {LintInput{Plans: plans}, "grants = [\"limit:turn:app\", \"limit:turn:global\"]", []string{RuleUnknownLimit, RuleUnknownLimit}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, rules(t, c.in, c.body)) })
	}
}

func TestLintWithoutPlansAndPins(t *testing.T) {
	m := load(t, oneStage("", "grants = [\"limit:turn\"]"))
	m.sources[0].file = "hooks.toml"
	found := Lint(m, LintInput{})
	require.Len(t, found, 2)
	assert.Equal(t, "hooks.toml:7:11: stage[one] grants.0: limit:turn has no numbers: name a plans.toml in [limits] plans (error limits-without-plans)", found[0].String())
	assert.Equal(t, "hooks.toml:5:10: stage[one] module: not pinned: run hookhost pin before this goes anywhere (warning unpinned)", found[1].String())

	pinned, err := Load("testdata/good/full.toml", Options{})
	require.NoError(t, err)
	for _, f := range Lint(pinned, LintInput{}) {
		assert.NotEqual(t, RuleUnpinned, f.Rule)
	}
}
