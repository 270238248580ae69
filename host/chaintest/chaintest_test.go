package chaintest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// played executes the only scenario of a file's text.
func played(t *testing.T, text string) *Report {
	t.Helper()
	all, err := Parse("test.toml", []byte(text))
	require.NoError(t, err)
	require.Len(t, all, 1)
	report, err := all[0].Execute(t.Context(), Options{CacheDir: CacheDir()})
	require.NoError(t, err)
	return report
}

// failures are those of a report as texts.
func failures(r *Report) []string {
	var all []string
	for _, f := range r.Failures {
		all = append(all, f.String())
	}
	return all
}

const hello = `
[[reply]]
text = "Hello."
usage = { prompt = 3, total = 3 }
`

const looksOn = `
order = ["eye"]
[stage.eye]
kind = "recorder"
hooks = ["before_model", "after_model"]
`

func TestAFailedExpectationShowsWhereAndHowItDiffers(t *testing.T) {
	r := played(t, looksOn+hello+`
[[turn]]
text = "Hi"
[turn.expect]
trace = ["before_model eye continue", "before_tool eye continue"]
`)
	require.False(t, r.OK())
	assert.Equal(t, []string{`test.toml:14:9: turn[1] trace
      before_model eye continue
    - before_tool eye continue
    + after_model eye continue
`}, failures(r))
}

// Each expectation can fail, and says by which key.
func TestEachExpectationCanFail(t *testing.T) {
	for key, expectation := range map[string]string{
		"trace":            `trace = []`,
		"trace_contains":   `trace_contains = ["after_model eye continue", "before_model eye continue"]`,
		"trace_lacks":      `trace_lacks = ["after_model"]`,
		"notes":            `notes = ["eye saw: all"]`,
		"user_reads":       `user_reads = ["Bye."]`,
		"streamed":         `streamed = "Hello."`,
		"session_keeps":    `session_keeps = ["user: Hi"]`,
		"model_reads":      `model_reads = ["user: Ho"]`,
		"tools_get":        `tools_get = ["lookup {}"]`,
		"stages_read.eye":  `stages_read = { eye = ["before_model Hi"] }`,
		"nowhere":          `nowhere = ["Hello"]`,
		"refused":          `refused = ["limit.turn"]`,
		"error":            `error = "503"`,
		"model_calls":      `model_calls = 2`,
		"waited":           `waited = "1s"`,
		"usage.user.calls": `usage = { user = { calls = 1 } }`,
		"usage.user.total": `usage = { user = { total = 3 } }`,
		"fallbacks":        `fallbacks = 1`,
	} {
		t.Run(key, func(t *testing.T) {
			r := played(t, looksOn+hello+"[[turn]]\ntext = \"Hi\"\n[turn.expect]\n"+expectation)
			require.NotEmpty(t, r.Failures)
			for _, f := range r.Failures { // what stands in several places is told of each
				assert.Equal(t, key, f.What)
				assert.True(t, strings.HasPrefix(f.Place, "test.toml:13:"), f.Place)
			}
		})
	}
}

func TestWhatNobodyExpectedIsAFailure(t *testing.T) {
	t.Run("an error", func(t *testing.T) {
		r := played(t, looksOn+"[[reply]]\nerror = \"503 unavailable\"\n[[turn]]\ntext = \"Hi\"\n[turn.expect]\nmodel_calls = 1")
		require.Len(t, r.Failures, 1)
		assert.Contains(t, r.Failures[0].String(), "503 unavailable")
	})
	t.Run("a script that is done", func(t *testing.T) {
		r := played(t, looksOn+hello+"[[turn]]\ntext = \"Hi\"\nrepeat = 2\n[turn.expect]\nmodel_calls = 1")
		require.Len(t, r.Failures, 1)
		assert.Equal(t, "turn[2]", r.Failures[0].Of)
	})
	t.Run("a fault that never happens", func(t *testing.T) {
		r := played(t, looksOn+hello+"[[fault]]\nstage = \"eye\"\nhook = \"before_tool\"\nkind = \"trap\"\n[[turn]]\ntext = \"Hi\"\n[turn.expect]\nmodel_calls = 1")
		require.Len(t, r.Failures, 1)
		assert.Contains(t, r.Failures[0].String(), "stage[eye] was never called at before_tool")
	})
	t.Run("a run without end", func(t *testing.T) {
		r := played(t, "max_model_calls = 2000\n"+looksOn+"[agent]\nshape = \"loop\"\nrepeat_replies = true\n"+hello+"[[turn]]\ntext = \"Hi\"\n[turn.expect]\nrefused = []")
		require.Len(t, r.Failures, 1)
		assert.Contains(t, r.Failures[0].String(), "the run has no end")
	})
}

func TestAWrongFileSaysWhere(t *testing.T) {
	turn := "[[turn]]\ntext = \"Hi\"\n"
	for name, c := range map[string]struct{ text, want string }{
		"no TOML":         {"[[turn]]\ntext = ", "test.toml:2:7: not TOML: unexpected EOF; expected value"},
		"no turn":         {"about = 'x'\n[expect]\nrefused = []", "test.toml:1:1: no [[turn]]: nothing would happen"},
		"no expectation":  {turn, "test.toml:1:1: no expectation: whatever happens would be right"},
		"unknown key":     {turn + "txet = 'x'\n[expect]\nrefused = []", "test.toml:3:1: turn.0.txet: unknown key: want user, session, text, at, after, group, repeat, stream, cancel_after, store_down, expect"},
		"wrong type":      {turn + "repeat = 'x'\n", "test.toml:3:10: turn.0.repeat: want a whole number, not a text"},
		"wrong element":   {turn + "expect.refused = [1]\n", "test.toml:3:19: turn.0.expect.refused.0: want a text, not a whole number"},
		"no duration":     {turn + "at = 'soon'\n", `test.toml:3:6: turn.0.at: "soon" is no duration: want one like 1.5s`},
		"no shape":        {"[agent]\nshape = 'ring'\n" + turn, `test.toml:2:9: agent.shape: unknown shape "ring": want llm, transfer, sequential, parallel, loop, custom, workflow`},
		"no hook":         {"[[fault]]\nstage = 'x'\nhook = 'before_lunch'\nkind = 'trap'\n" + turn, `test.toml:3:8: fault.0.hook: "before_lunch" is no hook`},
		"no fault":        {"[[fault]]\nstage = 'x'\nhook = 'close'\nkind = 'bad'\n" + turn + "expect.refused = []", `test.toml:4:8: fault.0.kind: "bad" is no fault: want bad_verdict, fail, host_calls, load, memory, pool_full, time, too_deep, trap`},
		"no kind":         {"[stage.x]\nkind = 'y'\n" + turn + "expect.refused = []", `test.toml:2:8: stage.x.kind: no such kind of test stage: want boom, cache, cite, recorder, refuse`},
		"no such config":  {"[stage.x]\nkind = 'cite'\nconfig = { txt = 'y' }\n" + turn + "expect.refused = []", `test.toml:3:12: stage.x.config.txt: unknown key: want text`},
		"bad reply":       {"[[reply]]\nagent = 'x'\n" + turn + "expect.refused = []", `test.toml:1:3: reply.0: says nothing: want one of text, chunks, thought, calls, usage, error, hang`},
		"usage":           {turn + "expect.usage = { ada = { cals = 1 } }", `test.toml:3:26: turn.0.expect.usage.ada.cals: unknown key: want calls, outcomes, prompt, candidates, cached, thoughts, tool_use, total`},
		"usage's number":  {turn + "expect.usage = { ada = { calls = 'no' } }", `test.toml:3:34: turn.0.expect.usage.ada.calls: want a whole number or "missing"`},
		"order and order": {"order = []\norders = []\n" + turn + "expect.refused = []", "test.toml:2:10: orders: stands beside order: take one of them"},
		"same session":    {turn + "group = 'x'\nexpect.refused = []\n" + turn + "group = 'x'", "test.toml:5:3: turn.1: same user and session as another turn of the group: what belongs to which could not be told"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("test.toml", []byte(c.text))
			require.Error(t, err)
			assert.Equal(t, c.want, err.Error())
		})
	}
}

func TestAllFaultsOfAFileComeAtOnce(t *testing.T) {
	_, err := Parse("test.toml", []byte("abuot = 1\n[[turn]]\ntext = 1\n[[turn]]\nstream = 'x'\n"))
	require.Error(t, err)
	assert.Equal(t, 3, strings.Count(err.Error(), "test.toml:"))
}

// What the host has against the manifest is said where the scenario says it.
func TestCase034AFaultOfTheManifestIsPlacedInTheScenario(t *testing.T) {
	all, err := Parse("test.toml", []byte("order = ['boom']\n[stage.boom]\nkind = 'boom'\non_error = 'opne'\n[[turn]]\ntext = 'Hi'\nexpect.refused = []"))
	require.NoError(t, err)
	_, err = all[0].Execute(t.Context(), Options{})
	require.ErrorContains(t, err, `test.toml:4:12: stage.boom.on_error: stage[boom] on_error: unknown policy "opne"`)
}

func TestGuestsThatAreNotBuiltAreSaidToBe(t *testing.T) {
	all, err := Parse("test.toml", []byte("order = ['x']\n[stage.x]\nmodule = 'no.wasm'\nrole = 'observer'\n[[turn]]\ntext = 'Hi'\nexpect.refused = []"))
	require.NoError(t, err)
	_, err = all[0].Execute(t.Context(), Options{})
	require.ErrorContains(t, err, "make guests")
}

func TestOneFileIsPlayedInEachShapeAndOrder(t *testing.T) {
	all, err := Parse("dir/two.toml", []byte("orders = [['a', 'b'], ['b', 'a']]\n[agent]\nshapes = ['llm', 'loop']\n[[turn]]\ntext = 'Hi'\nexpect.refused = []"))
	require.NoError(t, err)
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	assert.Equal(t, []string{"two (llm, a b)", "two (loop, a b)", "two (llm, b a)", "two (loop, b a)"}, names)
}

func TestTimePassesForOneWhoWaitsAlone(t *testing.T) {
	c := NewClock()
	require.NoError(t, c.Sleep(t.Context(), time.Hour))
	assert.Equal(t, Start.Add(time.Hour), c.Now())

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, c.Sleep(gone, time.Hour), context.Canceled)
	assert.Equal(t, Start.Add(time.Hour), c.Now())
}

func TestTurnsAtOnceWakeInTheOrderOfTheirTimes(t *testing.T) {
	c := NewClock()
	var mu sync.Mutex
	var woke []string
	players := c.join(3)
	var running sync.WaitGroup
	for i, turn := range []struct {
		name string
		naps []time.Duration
	}{{"a", []time.Duration{5, 1}}, {"b", []time.Duration{2, 2}}, {"c", []time.Duration{3}}} {
		running.Go(func() {
			defer c.leave(players[i])
			for _, nap := range turn.naps {
				assert.NoError(t, c.Sleep(context.WithValue(t.Context(), playerKey{}, players[i]), nap*time.Second))
				mu.Lock()
				woke = append(woke, turn.name+" "+c.Now().Sub(Start).String())
				mu.Unlock()
			}
		})
		c.settled(players[i])
	}
	running.Wait()
	assert.Equal(t, []string{"b 2s", "c 3s", "b 4s", "a 5s", "a 6s"}, woke)
}

func TestADiffKeepsWhatIsCommon(t *testing.T) {
	assert.Equal(t, "      a\n    - b\n      c\n    + d\n", diff([]string{"a", "b", "c"}, []string{"a", "c", "d"}))
	assert.Equal(t, "    - a\n", diff([]string{"a"}, nil))
	assert.Equal(t, "    + a\n", diff(nil, []string{"a"}))
}

func FuzzParse(f *testing.F) {
	f.Add("[[turn]]\ntext = \"Hi\"\n[turn.expect]\nrefused = []\n")
	f.Add("orders = [[\"a\"]]\n[stage.a]\nkind = \"cite\"\n[[turn]]\ntext = \"Hi\"\ngroup = \"x\"\n[expect]\nusage = { u = { calls = 1 } }")
	f.Add("[[fault]]\nhook = \"close\"\n[[reply]]\ncalls = [{ name = \"x\", args = { a = [1, { b = 2 }] } }]")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := Parse("test.toml", []byte(text))
		if err == nil {
			require.NotEmpty(t, all)
		}
	})
}
