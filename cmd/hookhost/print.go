package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

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
	streamed strings.Builder // what the chunks of the current reply showed
	steps    []chain.Step    // of the current turn
	spans    []chain.Span    // too
}

func newPrinter(out io.Writer, asJSON, trace bool) *printer {
	return &printer{out: out, json: asJSON, trace: trace}
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
}

func (p *printer) write(l line) {
	if err := json.NewEncoder(p.out).Encode(l); err != nil {
		panic(err) // every line encodes; what the writer does is not ours to judge
	}
}

func (p *printer) turn(user, message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turns++
	p.steps, p.spans = nil, nil
	if p.json {
		p.write(line{Type: "turn", Turn: p.turns, User: user, Text: message})
		return
	}
	fmt.Fprintf(p.out, "turn %d\n  %s: %s\n", p.turns, user, message)
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
	p.endStream()
	if p.json {
		p.write(line{Type: "error", Turn: p.turns, Text: err.Error()})
		return
	}
	fmt.Fprintf(p.out, "  error: %v\n", err)
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
	} else {
		if p.streamed.Len() == 0 {
			fmt.Fprintf(p.out, "  %s: ", author)
		} else {
			fmt.Fprint(p.out, "|") // so that the border between two chunks can be seen
		}
		fmt.Fprint(p.out, text)
	}
	p.streamed.WriteString(text)
}

func (p *printer) text(ev *session.Event, text string) {
	said := p.streamed.String()
	switch {
	case p.json && text != "":
		p.write(line{Type: "text", Turn: p.turns, Name: ev.Author, Text: text})
	case p.json || text == "":
	case said != "":
		fmt.Fprint(p.out, strings.TrimPrefix(text, said))
	default:
		fmt.Fprintf(p.out, "  %s: %s\n", ev.Author, text)
	}
	p.endStream()
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
	fmt.Fprintf(p.out, "  refused: %s", code)
	if retry > 0 {
		fmt.Fprintf(p.out, ", come back in %s", (time.Duration(retry) * time.Millisecond).Round(100*time.Millisecond))
	}
	fmt.Fprintln(p.out)
}

func (p *printer) endStream() {
	if p.streamed.Len() > 0 && !p.json {
		fmt.Fprintln(p.out)
	}
	p.streamed.Reset()
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
	fmt.Fprintf(p.out, "  %s %s %s\n", what, name, doc)
}

func (p *printer) endTurn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endStream()
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
		fmt.Fprintf(p.out, "    %-15s %-10s %-9s %7.2f ms%s  %s\n", l.Hook, l.Stage, l.Verdict, l.TookMS, times, l.Detail)
	}
	for _, s := range p.spans {
		p.operation(s)
	}
	if !p.json {
		fmt.Fprintln(p.out)
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
	fmt.Fprintf(p.out, "    %-15s %-10s %-9s %7.2f ms  %s\n", l.Operation, l.Name, l.Reason, l.TookMS, first)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// group is a number of like steps: the chunks and events of a stream.
type group struct {
	chain.Step
	count int
}

func grouped(steps []chain.Step) []group {
	var groups []group
	at := make(map[string]int)
	for _, s := range steps {
		key := s.Op + s.Hook.String() + s.Stage
		repeats := s.Hook == abi.OnModelChunk || s.Hook == abi.OnEvent
		if i, ok := at[key]; ok && repeats && groups[i].Verdict == s.Verdict {
			groups[i].count++
			groups[i].Took += s.Took
			continue
		}
		at[key] = len(groups)
		groups = append(groups, group{s, 1})
	}
	return groups
}

func (g group) line() *stepLine {
	l := &stepLine{Hook: g.Hook.String(), Stage: g.Stage, Verdict: g.Verdict.String(), TookMS: milliseconds(g.Took)}
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
	fmt.Fprintf(p.out, "usage of %s: %d model calls\n", user, s.Calls)
	for _, row := range []struct {
		name string
		n    *int64
	}{
		{"prompt", s.Tokens.Prompt},
		{"of it cached", s.Tokens.Cached},
		{"candidates", s.Tokens.Candidates},
		{"thoughts", s.Tokens.Thoughts},
		{"tool use", s.Tokens.ToolUse},
		{"total", s.Tokens.Total},
	} {
		if row.n == nil {
			fmt.Fprintf(p.out, "  %-14s %8s tokens\n", row.name, "unknown")
			continue
		}
		fmt.Fprintf(p.out, "  %-14s %8d tokens\n", row.name, *row.n)
	}
	fmt.Fprintf(p.out, "left now: %d turns, %d tokens\n", left["turn"], left["tokens"])
}
