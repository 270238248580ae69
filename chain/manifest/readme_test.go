package manifest

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// section cuts a part out of README.md.
func section(t *testing.T, from, to string) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, rest, begins := strings.Cut(string(text), from)
	part, _, ends := strings.Cut(rest, to)
	require.True(t, begins && ends, "README.md has no part from %q to %q", from, to)
	return part
}

// A key is named in the first column of a table, in quotes or as a table.
func TestREADMENamesEveryKey(t *testing.T) {
	top := section(t, "At the top:", "In a `[stage.NAME]`:")
	stage := section(t, "In a `[stage.NAME]`:", "Reading is strict")
	for field := range fields {
		table, key, nested := strings.Cut(field, ".")
		switch {
		case table == "stage":
			assert.True(t, strings.Contains(stage, "`"+key+"`") || strings.Contains(stage, "`[stage.NAME."+key+"]`"), field)
		case nested:
			assert.Regexp(t, "(?m)^\\| `\\["+table+"\\]` .*`"+key+"`", top, field)
		default:
			assert.Contains(t, top, "`"+field+"`")
		}
	}
	plans := section(t, "### Plans", "\n## ")
	for _, key := range slices.Concat(bucketKeys, leaseKeys, []string{"version", "default", "plan", "app", "until", "note"}) {
		assert.Contains(t, plans, "`"+key+"`")
	}
}

func TestREADMESaysWhatAnOverlayMayChange(t *testing.T) {
	text := section(t, "lays `hooks.ENV.toml` over it", "anything else is an error")
	for _, key := range overlayStageKeys {
		assert.Contains(t, text, "`"+key+"`")
	}
	for _, key := range []string{"`version`", "`[store]`", "`[limits]`", "`max_model_calls`"} {
		assert.Contains(t, text, key)
	}
}

func TestREADMENamesEveryRule(t *testing.T) {
	text := section(t, "The rules of `lint`:", "### Plans")
	for rule, level := range map[string]Level{
		RuleObserverClosed: Warning, RuleTransformerOpen: Warning, RuleAmendsAllAgents: Warning, RuleUnheldStream: Warning,
		RuleUnpinned: Warning, RuleScopeWithoutHook: Fault, RuleLimitsNoPlans: Fault, RuleUnknownLimit: Fault,
		RulePasswordInURL: Warning, RuleStoreNotShared: Warning, RuleBelowFanOut: Warning, RuleSlicesOverBurst: Warning, RuleIdleSlice: Warning, RuleNeverAdmits: Fault,
	} {
		assert.Contains(t, text, "| `"+rule+"` | "+string(level)+" |")
	}
}
