package chaintest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/adk/v2/session"

	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/host/adk"
	"github.com/hookhost/hookhost/host/demo"
	"github.com/hookhost/hookhost/store"
)

// observed is what one turn came to, or all of them.
type observed struct {
	name string

	steps    []recorded
	reads    map[string][]string // by stage
	requests []request

	texts   []string
	chunks  []string
	refused []string
	errors  []string
	session []string
	tools   []string
	waited  time.Duration

	balances  map[string]map[string]int64
	usage     map[string]map[string][]string
	fallbacks int64

	told map[string][]string // all texts, by where they are to be read
}

func (o *observed) trace(stages, hooks []string) []string { return trace(o.steps, stages, hooks) }

func (o *observed) notes(stages, hooks []string) []string {
	lines := []string{}
	for _, s := range narrowed(o.steps, stages, hooks) {
		lines = append(lines, s.notes...)
	}
	return lines
}

func (o *observed) lastRequest() []string {
	if len(o.requests) == 0 {
		return nil
	}
	return o.requests[len(o.requests)-1].lines
}

func (o *observed) tell(where, text string) {
	if o.told == nil {
		o.told = map[string][]string{}
	}
	o.told[where] = append(o.told[where], text)
}

// failed takes in what went wrong beside the run.
func (o *observed) failed(err error) {
	if err != nil {
		o.errors = append(o.errors, err.Error())
	}
}

// event takes in what the user's client gets.
func (o *observed) event(ev *session.Event) {
	o.tell("user's events", whole(ev))
	text := demo.Text(ev.Content)
	switch {
	case ev.Partial:
		o.chunks = append(o.chunks, text)
		return
	case text != "":
		o.texts = append(o.texts, text)
	}
	if refusal, is := ev.CustomMetadata[adk.RefusalKey].(map[string]any); is && text != "" {
		line := fmt.Sprint(refusal["code"])
		if ms, is := refusal["retry_ms"].(int64); is {
			line += " " + (time.Duration(ms) * time.Millisecond).String()
		}
		o.refused = append(o.refused, line)
	}
}

// whole is all that an event says. ADK still writes to the state of a partial
// one.
func whole(ev *session.Event) string {
	text := compact(ev.Content) + ev.ErrorMessage
	if !ev.Partial {
		text += compact(ev.Actions.StateDelta) + compact(ev.Output)
	}
	return text
}

// marks are how far all that is recorded had come when a turn began.
type marks struct {
	mark
	tools, session int
	log            int
}

func (w *world) mark() marks {
	return marks{mark: w.recorder.mark(), tools: len(w.toolCalls()), log: len(w.log.String())}
}

// observe fills in what was recorded since, and what the expectations ask for.
func (w *world) observe(ctx context.Context, o *observed, from marks, of *who, e *expect) {
	var reads []read
	o.steps, reads, o.requests = w.recorder.since(from.mark, of)
	o.reads = map[string][]string{}
	for _, r := range reads {
		o.reads[r.stage] = append(o.reads[r.stage], r.line)
	}
	o.tools = w.toolCalls()[from.tools:]
	for _, s := range w.sessionsOf(of) {
		events := w.events(ctx, s.user, s.session)
		for _, ev := range events {
			o.tell("session", whole(ev))
		}
		o.session = append(o.session, eventLines(events[from.session:])...)
	}
	for _, r := range o.requests {
		o.tell("model's requests", r.whole)
	}
	for _, text := range o.errors {
		o.tell("errors", text)
	}
	o.tell("log", w.log.String()[from.log:])
	o.fallbacks = w.host.Fallbacks()
	o.failed(errors.Join(w.balances(ctx, o, e), w.usage(ctx, o, e)))
}

// sessionsOf gives the session of one turn, or those of all.
func (w *world) sessionsOf(of *who) []who {
	if of != nil {
		return []who{*of}
	}
	var all []who
	seen := map[who]bool{}
	for _, t := range w.file.Turn {
		if s := (who{t.User, t.Session}); !seen[s] {
			seen[s] = true
			all = append(all, s)
		}
	}
	return all
}

// events are those of a session; none if it was never made.
func (w *world) events(ctx context.Context, user, id string) []*session.Event {
	got, err := w.sessions.Get(ctx, &session.GetRequest{AppName: App, UserID: user, SessionID: id})
	if err != nil {
		return nil
	}
	var all []*session.Event
	for ev := range got.Session.Events().All() {
		all = append(all, ev)
	}
	return all
}

// toolCalls is the desk's record.
func (w *world) toolCalls() []string {
	var all []string
	add := func(name string, v any) { all = append(all, name+" "+compact(v)) }
	for _, v := range w.desk.Lookups() {
		add("lookup", v)
	}
	for _, v := range w.desk.Refunds() {
		add("refund", v)
	}
	for _, v := range w.desk.Cancelled() {
		add("cancel_order", v)
	}
	for _, v := range w.desk.Exports() {
		add("export", v)
	}
	return all
}

func (w *world) balances(ctx context.Context, o *observed, e *expect) error {
	o.balances = map[string]map[string]int64{}
	for user, limits := range e.Balances {
		o.balances[user] = map[string]int64{}
		for name := range limits {
			n, err := w.balance(ctx, user, name)
			if err != nil {
				return fmt.Errorf("balance[%s]: %w", name, err)
			}
			o.balances[user][name] = n
		}
	}
	return nil
}

var errNoLimit = errors.New("the user's plan has no such limit")

func (w *world) balance(ctx context.Context, user, name string) (int64, error) {
	limit, defined := w.host.Limit(ctx, App, user, name)
	switch {
	case !defined:
		return 0, errNoLimit
	case limit.Cap != nil:
		return w.store.Held(ctx, owner(user), name)
	}
	return w.store.Balance(ctx, owner(user), name, *limit.Bucket)
}

// usage sums up a user's records. A number that no record has is missing.
func (w *world) usage(ctx context.Context, o *observed, e *expect) error {
	o.usage = map[string]map[string][]string{}
	for user := range e.Usage {
		records, err := w.store.Records(ctx, owner(user))
		if err != nil {
			return fmt.Errorf("usage: %w", err)
		}
		o.usage[user] = summed(records)
	}
	return nil
}

func summed(records []store.Record) map[string][]string {
	sums := map[string]*int64{}
	outcomes := []string{}
	for _, r := range records {
		outcomes = append(outcomes, r.Outcome)
		for key, n := range map[string]*int64{
			"prompt": r.Tokens.Prompt, "candidates": r.Tokens.Candidates, "cached": r.Tokens.Cached,
			"thoughts": r.Tokens.Thoughts, "tool_use": r.Tokens.ToolUse, "total": r.Tokens.Total,
		} {
			switch {
			case n == nil:
			case sums[key] == nil:
				sum := *n
				sums[key] = &sum
			default:
				*sums[key] += *n
			}
		}
	}
	out := map[string][]string{"calls": {fmt.Sprint(len(records))}, "outcomes": outcomes}
	for _, key := range usageKeys[2:] {
		out[key] = []string{missing}
		if sums[key] != nil {
			out[key] = []string{fmt.Sprint(*sums[key])}
		}
	}
	return out
}

// checkNames blames faults and reads of stages that do not run.
func (w *world) checkNames() error {
	known := map[string]bool{}
	for _, s := range w.host.Manifest().Stages {
		known[s.Spec.Name] = true
	}
	var faults []*manifest.Error
	blame := func(at []string, name string) {
		if !known[name] {
			faults = append(faults, w.doc.Errorf(at, "no stage %q runs here", name))
		}
	}
	for _, f := range w.file.Fault {
		blame(below(f.Where, "stage"), f.Stage)
	}
	for _, t := range w.file.Turn {
		for name := range t.Expect.StagesRead {
			blame(below(below(t.Expect.Where, "stages_read"), name), name)
		}
	}
	for name := range w.file.Expect.StagesRead {
		blame([]string{"expect", "stages_read", name}, name)
	}
	return manifest.Join(faults...)
}
