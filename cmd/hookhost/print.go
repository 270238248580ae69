package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/adk/v2/session"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host/adk"
	"github.com/hookhost/hookhost/host/demo"
	"github.com/hookhost/hookhost/store"
)

// printer shows a conversation, to a person or as a JSON object a line.
// Steps of the trace come from many goroutines.
type printer struct {
	mu    sync.Mutex
	out   io.Writer
	json  bool
	trace bool

	turns    int
	streamed map[string]string // what the chunks of the current replies showed, by author
	open     string            // whose line has not ended yet
	steps    []chain.Step      // of the current turn
	spans    []chain.Span      // too
}

func newPrinter(out io.Writer, asJSON, trace bool) *printer {
	return &printer{out: out, json: asJSON, trace: trace, streamed: make(map[string]string)}
}

// line is one JSON object of `--json`.
type line struct {
	Type    string           `json:"type"` // turn, chunk, text, call, result, refusal, error, step, span or usage
	Turn    int              `json:"turn,omitempty"`
	User    string           `json:"user,omitempty"`
	Text    string           `json:"text,omitempty"`
	Name    string           `json:"name,omitempty"`
	Value   map[string]any   `json:"value,omitempty"`
	Code    string           `json:"code,omitempty"`
	RetryMS int64            `json:"retry_ms,omitempty"`
	Step    *stepLine        `json:"step,omitempty"`
	Span    *spanLine        `json:"span,omitempty"`
	Usage   *sum             `json:"usage,omitempty"`
	Left    map[string]int64 `json:"left,omitempty"`
}

type spanLine struct {
	Operation    string  `json:"operation"` // run, agent, model or tool
	Name         string  `json:"name,omitempty"`
	Reason       string  `json:"reason"`
	TookMS       float64 `json:"took_ms"`
	FirstChunkMS float64 `json:"first_chunk_ms,omitempty"`
}

type stepLine struct {
	Hook    string  `json:"hook"`
	Stage   string  `json:"stage"`
	Verdict string  `json:"verdict"`
	Detail  string  `json:"detail,omitempty"`
	TookMS  float64 `json:"took_ms"`
	Count   int     `json:"count"` // of like calls in a stream that the line stands for; their times and their fuel are added
	Fuel    int64   `json:"fuel,omitempty"`
}

func (p *printer) write(l line) {
	if err := json.NewEncoder(p.out).Encode(l); err != nil {
		panic(err) // every line encodes; what the writer does is not ours to judge
	}
}

// say writes a line for a person. The texts among the values are those of
// users, models and tools: they cannot begin a line or move the cursor.
func (p *printer) say(format string, values ...any) {
	for i, v := range values {
		if text, is := v.(string); is {
			values[i] = visible(text)
		}
	}
	fmt.Fprintln(p.out, strings.TrimRight(fmt.Sprintf(format, values...), " "))
}

// visible writes out what is not seen but does something, such as characters
// that control a terminal, end a line or change the direction of the text; and
// bytes that are no characters, each as its own.
func visible(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unicode.IsGraphic(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
		i += size
	}
	return b.String()
}

func (p *printer) turn(user, message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turns++
	p.steps, p.spans = nil, nil
	clear(p.streamed)
	if p.json {
		p.write(line{Type: "turn", Turn: p.turns, User: user, Text: message})
		return
	}
	p.say("turn %d", p.turns)
	p.say("  %s: %s", user, message)
}

func (p *printer) step(s chain.Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps = append(p.steps, s)
}

func (p *printer) span(s chain.Span) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spans = append(p.spans, s)
}

func (p *printer) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLine()
	if p.json {
		p.write(line{Type: "error", Turn: p.turns, Text: err.Error()})
		return
	}
	p.say("  error: %s", err.Error())
}

// event shows what a client would: chunks as they come, and of the final
// response what the chunks did not say yet.
func (p *printer) event(ev *session.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := demo.Text(ev.Content)
	if ev.Partial {
		p.chunk(ev.Author, text)
		return
	}
	p.text(ev, text)
	if ev.Content == nil {
		return
	}
	for _, part := range ev.Content.Parts {
		switch {
		case part.FunctionCall != nil:
			p.value("call", part.FunctionCall.Name, part.FunctionCall.Args)
		case part.FunctionResponse != nil:
			p.value("result", part.FunctionResponse.Name, part.FunctionResponse.Response)
		}
	}
}

func (p *printer) chunk(author, text string) {
	if text == "" {
		return
	}
	if p.json {
		p.write(line{Type: "chunk", Turn: p.turns, Name: author, Text: text})
		return
	}
	p.streamed[author] += text
	if p.open == author {
		fmt.Fprint(p.out, "|", visible(text)) // so that the border between two chunks can be seen
		return
	}
	p.endLine()
	fmt.Fprintf(p.out, "  %s: %s", visible(author), visible(text))
	p.open = author
}

// text shows what a whole reply says: what its chunks did not say yet, or all
// of it where they said something else.
func (p *printer) text(ev *session.Event, text string) {
	if p.json {
		if text != "" {
			p.write(line{Type: "text", Turn: p.turns, Name: ev.Author, Text: text})
		}
	} else {
		rest, goesOn := strings.CutPrefix(text, p.streamed[ev.Author])
		goesOn = goesOn && p.open == ev.Author
		delete(p.streamed, ev.Author)
		if goesOn {
			fmt.Fprint(p.out, visible(rest))
		}
		p.endLine()
		if !goesOn && text != "" {
			p.say("  %s: %s", ev.Author, text)
		}
	}
	refusal, ok := ev.CustomMetadata[adk.RefusalKey].(map[string]any)
	if !ok || text == "" {
		return
	}
	code, _ := refusal["code"].(string)
	retry, _ := refusal["retry_ms"].(int64)
	if p.json {
		p.write(line{Type: "refusal", Turn: p.turns, Code: code, RetryMS: retry})
		return
	}
	when := ""
	if retry > 0 {
		when = ", come back in " + (time.Duration(retry) * time.Millisecond).Round(100*time.Millisecond).String()
	}
	p.say("  refused: %s%s", code, when)
}

// endLine ends the line of a stream.
func (p *printer) endLine() {
	if p.open != "" {
		fmt.Fprintln(p.out)
	}
	p.open = ""
}

func (p *printer) value(what, name string, value map[string]any) {
	if p.json {
		p.write(line{Type: what, Turn: p.turns, Name: name, Value: value})
		return
	}
	doc, err := json.Marshal(value)
	if err != nil {
		doc = []byte(err.Error())
	}
	p.say("  %s %s %s", what, name, string(doc))
}

func (p *printer) endTurn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLine()
	if !p.trace {
		return
	}
	for _, g := range grouped(p.steps) {
		if p.json {
			p.write(line{Type: "step", Turn: p.turns, Step: g.line()})
			continue
		}
		l := g.line()
		times := ""
		if g.count > 1 {
			times = fmt.Sprintf(" x%d", g.count)
		}
		p.say("    %-15s %-10s %-9s %7.2f ms%s  %s", l.Hook, l.Stage, l.Verdict, l.TookMS, times, l.Detail)
	}
	for _, s := range p.spans {
		p.operation(s)
	}
	if !p.json {
		p.say("")
	}
}

// operation shows how long one took, with the host's own clock.
func (p *printer) operation(s chain.Span) {
	l := spanLine{
		Operation: s.Operation.String(), Name: cmp.Or(s.Tool, s.Model, s.Agent), Reason: s.Reason.String(),
		TookMS: milliseconds(s.Took), FirstChunkMS: milliseconds(s.FirstChunk),
	}
	if p.json {
		p.write(line{Type: "span", Turn: p.turns, Span: &l})
		return
	}
	first := ""
	if s.FirstChunk > 0 {
		first = fmt.Sprintf("first chunk after %.2f ms", l.FirstChunkMS)
	}
	p.say("    %-15s %-10s %-9s %7.2f ms  %s", l.Operation, l.Name, l.Reason, l.TookMS, first)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// group is a number of like steps: the chunks and events of a stream.
type group struct {
	chain.Step
	count int
}

// grouped puts like steps of a stream together where no other hook ran between
// them, so that nothing is shown before what it came after.
func grouped(steps []chain.Step) []group {
	var groups []group
	latest := make(map[string]int) // of a stage at a hook of the stream, since the last other hook
	for _, s := range steps {
		next := group{s, 1}
		if s.Hook != abi.OnModelChunk && s.Hook != abi.OnEvent {
			clear(latest)
			groups = append(groups, next)
			continue
		}
		key := s.Op + " " + s.Hook.String() + " " + s.Stage
		if i, found := latest[key]; found && groups[i].like(next) {
			groups[i].count++
			groups[i].Took += s.Took
			groups[i].Fuel += s.Fuel
			continue
		}
		latest[key] = len(groups)
		groups = append(groups, next)
	}
	return groups
}

// like reports whether two groups differ in number and time alone.
func (g group) like(other group) bool {
	a, b := g.line(), other.line()
	a.TookMS, a.Fuel, a.Count = b.TookMS, b.Fuel, b.Count
	return *a == *b
}

func (g group) line() *stepLine {
	l := &stepLine{Hook: g.Hook.String(), Stage: g.Stage, Verdict: g.Verdict.String(), TookMS: milliseconds(g.Took), Fuel: g.Fuel, Count: g.count}
	if g.Stage == "" {
		l.Stage = "host"
	}
	if g.Cause != 0 {
		l.Verdict = "failed"
	}
	detail := g.Details()
	for _, n := range g.Notes {
		detail = append(detail, n.Key+"="+n.Value)
	}
	l.Detail = strings.Join(detail, " ")
	return l
}

// sum adds up records; a number that no record has stays missing.
type sum struct {
	Calls  int          `json:"calls"`
	Tokens store.Tokens `json:"tokens"`
}

func sumOf(records []store.Record) sum {
	s := sum{Calls: len(records)}
	for _, r := range records {
		add(&s.Tokens.Prompt, r.Tokens.Prompt)
		add(&s.Tokens.Candidates, r.Tokens.Candidates)
		add(&s.Tokens.Cached, r.Tokens.Cached)
		add(&s.Tokens.Thoughts, r.Tokens.Thoughts)
		add(&s.Tokens.ToolUse, r.Tokens.ToolUse)
		add(&s.Tokens.Total, r.Tokens.Total)
	}
	return s
}

func add(to **int64, n *int64) {
	if n == nil {
		return
	}
	total := *n
	if *to != nil {
		total += **to
	}
	*to = &total
}

func (p *printer) usage(user string, records []store.Record, left map[string]int64) {
	s := sumOf(records)
	if p.json {
		p.write(line{Type: "usage", User: user, Usage: &s, Left: left})
		return
	}
	if s.Calls == 0 {
		p.say("usage of %s: none recorded", user)
	} else {
		p.say("usage of %s: %s", user, counted(int64(s.Calls), "model call"))
		p.tokens(records)
	}
	var rest []string
	for _, name := range []struct{ limit, unit string }{{"turn", "turn"}, {"tokens", "token"}} {
		if n, limited := left[name.limit]; limited {
			rest = append(rest, counted(n, name.unit))
		}
	}
	if len(rest) > 0 {
		p.say("left now: %s", strings.Join(rest, ", "))
	}
}

func counted(n int64, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// tokens says of each number what the calls came to, as hookhost usage does.
func (p *printer) tokens(records []store.Record) {
	partial := false
	for _, k := range []kind{
		{"prompt", func(t store.Tokens) *int64 { return t.Prompt }},
		{"of it cached", func(t store.Tokens) *int64 { return t.Cached }},
		{"of it fresh", store.Tokens.Fresh},
		{"candidates", func(t store.Tokens) *int64 { return t.Candidates }},
		{"thoughts", func(t store.Tokens) *int64 { return t.Thoughts }},
		{"tool use", func(t store.Tokens) *int64 { return t.ToolUse }},
		{"total", func(t store.Tokens) *int64 { return t.Total }},
	} {
		p.say("  %-14s %8s tokens", k.name, k.total(records))
		partial = partial || k.partial(records)
	}
	if partial {
		p.say("  %s", partialSays)
	}
}
