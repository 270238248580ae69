package chaintest

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/hookhost/hookhost/host/demo"
)

// expect is what a turn, or at the end all of them, has to have come to. What
// is not written is not checked; an empty list is: nothing of the kind.
type expect struct {
	Where place `toml:"-"`

	Trace         []string `toml:"trace"`          // the lines of the trace, all of them
	TraceContains []string `toml:"trace_contains"` // in this order, others between them
	TraceLacks    []string `toml:"trace_lacks"`    // lines that begin so are not there
	Notes         []string `toml:"notes"`          // what the stages noted, "STAGE KEY: VALUE", all of it
	TraceHooks    []string `toml:"trace_hooks"`    // of the trace and the notes, only these hooks
	TraceStages   []string `toml:"trace_stages"`   // and only these stages

	UserReads    []string            `toml:"user_reads"`    // texts of whole events
	Streamed     *string             `toml:"streamed"`      // texts of chunks, joined
	SessionKeeps []string            `toml:"session_keeps"` // lines of the events that the session has of it
	ModelReads   []string            `toml:"model_reads"`   // lines of the last request
	ToolsGet     []string            `toml:"tools_get"`     // the desk's record
	StagesRead   map[string][]string `toml:"stages_read"`   // the texts that a stage was given
	Nowhere      []string            `toml:"nowhere"`       // what no user, session, request, error or log line has

	Refused    []string       `toml:"refused"` // "CODE", or "CODE RETRY"
	Error      *string        `toml:"error"`   // is a part of an error of the run
	ModelCalls *int           `toml:"model_calls"`
	Waited     *demo.Duration `toml:"waited"` // on the test's clock

	Balances  map[string]map[string]int64 `toml:"balances"`  // by user and limit; of a lease, how many are held
	Usage     map[string]map[string]any   `toml:"usage"`     // by user: calls, outcomes, and tokens or "missing"
	Fallbacks *int                        `toml:"fallbacks"` // calls that found the store away, since the start
}

func (e *expect) empty() bool {
	return e.Trace == nil && e.TraceContains == nil && e.TraceLacks == nil && e.Notes == nil && e.UserReads == nil && e.Streamed == nil &&
		e.SessionKeeps == nil && e.ModelReads == nil && e.ToolsGet == nil && e.StagesRead == nil && e.Nowhere == nil &&
		e.Refused == nil && e.Error == nil && e.ModelCalls == nil && e.Waited == nil && e.Balances == nil && e.Usage == nil &&
		e.Fallbacks == nil
}

// usageKeys are what usage can be asked for.
var usageKeys = []string{"calls", "outcomes", "prompt", "candidates", "cached", "thoughts", "tool_use", "total"}

const missing = "missing"

// check says what no turn could meet. The tools' record cannot be told apart
// for turns that go on at once.
func (e *expect) check(d *decoder, alone bool) {
	if e.ToolsGet != nil && !alone {
		d.blame(below(e.Where, "tools_get"), "cannot be told apart within a group: put it into the [expect] at the end")
	}
	if e.TraceHooks != nil || e.TraceStages != nil {
		if e.Trace == nil && e.TraceContains == nil && e.TraceLacks == nil && e.Notes == nil {
			d.blame(e.Where, "trace_hooks and trace_stages narrow trace, trace_contains, trace_lacks and notes, of which there is none")
		}
	}
	for user, numbers := range e.Usage {
		for key, v := range numbers {
			at := below(below(below(e.Where, "usage"), user), key)
			_, number := v.(int64)
			switch {
			case !slices.Contains(usageKeys, key):
				d.faults = append(d.faults, d.doc.UnknownKey(at, usageKeys))
			case key == "outcomes":
				if _, list := v.([]any); !list {
					d.faults = append(d.faults, d.doc.Mismatch(at, "a list", v))
				}
			case !number && v != missing:
				d.blame(at, "want a whole number or %q", missing)
			}
		}
	}
}

// judge compares what a turn came to with what was expected of it.
func (e *expect) judge(o *observed) []Failure {
	j := &judge{at: e.Where, of: o}
	trace := o.trace(e.TraceStages, e.TraceHooks)
	j.list("trace", e.Trace, trace)
	j.contains("trace_contains", e.TraceContains, trace)
	j.lacks("trace_lacks", e.TraceLacks, trace)
	j.list("notes", e.Notes, o.notes(e.TraceStages, e.TraceHooks))

	j.list("user_reads", e.UserReads, o.texts)
	if e.Streamed != nil {
		j.list("streamed", []string{*e.Streamed}, []string{strings.Join(o.chunks, "")})
	}
	j.list("session_keeps", e.SessionKeeps, o.session)
	j.list("model_reads", e.ModelReads, o.lastRequest())
	j.list("tools_get", e.ToolsGet, o.tools)
	for _, stage := range sorted(e.StagesRead) {
		j.list("stages_read."+stage, e.StagesRead[stage], o.reads[stage])
	}
	j.nowhere(e.Nowhere)

	j.list("refused", e.Refused, o.refused)
	j.errors(e.Error)
	if e.ModelCalls != nil {
		j.number("model_calls", int64(*e.ModelCalls), int64(len(o.requests)))
	}
	if e.Waited != nil {
		j.list("waited", []string{time.Duration(*e.Waited).String()}, []string{o.waited.String()})
	}
	for _, user := range sorted(e.Balances) {
		for _, limit := range sorted(e.Balances[user]) {
			j.number("balances."+user+"."+limit, e.Balances[user][limit], o.balances[user][limit])
		}
	}
	for _, user := range sorted(e.Usage) {
		for _, key := range sorted(e.Usage[user]) {
			j.list("usage."+user+"."+key, written(e.Usage[user][key]), o.usage[user][key])
		}
	}
	if e.Fallbacks != nil {
		j.number("fallbacks", int64(*e.Fallbacks), o.fallbacks)
	}
	return j.failures
}

// written is an expected number, word or list as lines.
func written(v any) []string {
	list, is := v.([]any)
	if !is {
		return []string{fmt.Sprint(v)}
	}
	out := make([]string, len(list))
	for i, element := range list {
		out[i] = fmt.Sprint(element)
	}
	return out
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

// judge collects what is not as expected.
type judge struct {
	at       place
	of       *observed
	failures []Failure
}

func (j *judge) fail(key string, want, got []string, words string) {
	j.failures = append(j.failures, Failure{
		at: append(slices.Clone([]string(j.at)), strings.Split(key, ".")...), Of: j.of.name, What: key, Words: words, Want: want, Got: got,
	})
}

func (j *judge) list(key string, want, got []string) {
	if want != nil && !slices.Equal(want, got) {
		j.fail(key, want, got, "")
	}
}

func (j *judge) number(key string, want, got int64) {
	j.list(key, []string{fmt.Sprint(want)}, []string{fmt.Sprint(got)})
}

func (j *judge) contains(key string, want, got []string) {
	at := 0
	for _, line := range got {
		if at < len(want) && line == want[at] {
			at++
		}
	}
	if at < len(want) {
		j.fail(key, want, got, fmt.Sprintf("%q is missing, or not after those before it", want[at]))
	}
}

func (j *judge) lacks(key string, unwanted, got []string) {
	for _, prefix := range unwanted {
		for _, line := range got {
			if strings.HasPrefix(line, prefix) {
				j.fail(key, nil, []string{line}, fmt.Sprintf("%q should not be there", prefix))
			}
		}
	}
}

func (j *judge) nowhere(secrets []string) {
	for _, secret := range secrets {
		for _, where := range sorted(j.of.told) {
			for _, text := range j.of.told[where] {
				if strings.Contains(text, secret) {
					j.fail("nowhere", nil, []string{text}, fmt.Sprintf("%q stands in the %s", secret, where))
				}
			}
		}
	}
}

// errors wants no error unless one is expected.
func (j *judge) errors(want *string) {
	switch {
	case want == nil && len(j.of.errors) > 0:
		j.fail("error", nil, j.of.errors, "the run failed")
	case want != nil && !slices.ContainsFunc(j.of.errors, func(s string) bool { return strings.Contains(s, *want) }):
		j.fail("error", []string{*want}, j.of.errors, "")
	}
}
