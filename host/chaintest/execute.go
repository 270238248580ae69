package chaintest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/demo"
	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/memory"
)

// App is the name of the app that scenarios run under.
const App = "app"

const (
	maxEvents = 400              // of one turn: what goes on beyond is a loop without end
	patience  = 30 * time.Second // for one scenario, in real time
)

// Options change how scenarios are executed.
type Options struct {
	CacheDir     string                        // for compiled modules; see host.Options
	Compiling    func(module string, size int) // too
	CacheWarning func(what string, err error)  // too
}

// Execute plays the scenario and says what was not as expected. An error
// means that it could not be played.
func (s *Scenario) Execute(ctx context.Context, o Options) (_ *Report, err error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	dir, err := os.MkdirTemp("", "hookhost-scenario-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w, err := s.open(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	failures, err := w.play(ctx)
	failures = append(failures, w.end(ctx)...)
	if closed := w.host.Close(context.WithoutCancel(ctx)); err == nil {
		err = closed
	}
	if err != nil {
		return nil, fmt.Errorf("scenario[%s]: %w", s.Name, err)
	}
	for i := range failures {
		at := s.doc.Errorf(failures[i].at, "")
		failures[i].Place = fmt.Sprintf("%s:%d:%d", at.File, at.Line, at.Col)
	}
	return &Report{
		File: s.File, Name: s.Name, About: s.About, Failures: failures, Trace: w.recorder.Trace(), Took: time.Since(began),
	}, nil
}

// world is all that a scenario runs in.
type world struct {
	*Scenario
	clock    *Clock
	store    *outage
	host     *host.Host
	model    *demo.Model
	desk     *demo.Desk
	recorder *Recorder
	sessions session.Service
	runner   *runner.Runner
	log      *buffer

	mu     sync.Mutex // stages are loaded at once
	faulty []*faulty
}

// open starts the host and the agent.
func (s *Scenario) open(ctx context.Context, dir string, o Options) (*world, error) {
	w := &world{
		Scenario: s, clock: NewClock(), desk: new(demo.Desk), recorder: new(Recorder),
		sessions: session.InMemoryService(), log: new(buffer),
	}
	w.store = newOutage(memory.New(w.clock))
	path, natives, err := s.compose(dir)
	if err != nil {
		return nil, err
	}
	w.host, err = host.Open(ctx, path, host.Options{
		Dev: true, CacheDir: o.CacheDir, Compiling: o.Compiling, CacheWarning: o.CacheWarning,
		Log: slog.New(slog.NewTextHandler(w.log, nil)), Trace: chain.Tracer{Step: w.recorder.Step},
		Clock: w.clock, Store: w.store, Native: natives, Wrap: w.wrap,
	})
	if err != nil {
		return nil, s.placed(err)
	}
	if err := errors.Join(w.checkNames(), w.start()); err != nil {
		return nil, errors.Join(err, w.host.Close(ctx))
	}
	return w, nil
}

// wrap puts the scenario's faults around a stage, and the recorder around
// both.
func (w *world) wrap(name string, s chain.Stage) chain.Stage {
	f := &faulty{Stage: s}
	for i := range w.file.Fault {
		if w.file.Fault[i].Stage == name {
			f.faults = append(f.faults, &injection{fault: &w.file.Fault[i]})
		}
	}
	if f.faults != nil {
		w.mu.Lock()
		w.faulty = append(w.faulty, f)
		w.mu.Unlock()
		s = f
	}
	return w.recorder.Wrap(name, s)
}

// start makes the agent and its runner.
func (w *world) start() error {
	w.model = &demo.Model{Replies: w.file.Reply, Repeat: w.file.Agent.RepeatReplies, Sleep: w.clock.Sleep}
	root, err := demo.Tree{
		Shape: w.shape, Model: w.model, Tools: w.desk.Tools(), Iterations: uint(w.file.Agent.Iterations), Each: w.watch,
	}.Agent()
	if err != nil {
		return err
	}
	w.runner, err = runner.New(runner.Config{
		AppName: App, Agent: root, SessionService: w.sessions, AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{w.host.Plugin()}},
	})
	return err
}

func (w *world) watch(c *llmagent.Config) {
	if w.file.Agent.Callbacks {
		w.recorder.callbacks(c)
	}
	w.recorder.model(c)
}

// play runs the turns, those of a group at once.
func (w *world) play(ctx context.Context) ([]Failure, error) {
	var failures []Failure
	turns := w.file.Turn
	for len(turns) > 0 {
		n := 1
		for turns[0].Group != "" && n < len(turns) && turns[n].Group == turns[0].Group {
			n++
		}
		for i := range turns[0].Repeat {
			if err := w.reach(&turns[0]); err != nil {
				return failures, err
			}
			w.store.down.Store(turns[0].StoreDown)
			failures = append(failures, w.together(ctx, turns[:n], i)...)
			w.store.down.Store(false)
		}
		turns = turns[n:]
	}
	return failures, ctx.Err()
}

// reach moves the clock on to where the turn begins.
func (w *world) reach(t *turn) error {
	if t.At == nil {
		w.clock.Advance(time.Duration(t.After))
		return nil
	}
	ahead := t.start().Sub(w.clock.Now())
	if ahead < 0 {
		return w.doc.Errorf(below(t.Where, "at"), "the clock is at %s already", w.clock.Now().Sub(Start))
	}
	w.clock.Advance(ahead)
	return nil
}

// together runs turns at once. Each begins when the one before it waits or is
// over, so that who comes first is the file's to say.
func (w *world) together(ctx context.Context, turns []turn, repetition int) []Failure {
	failures := make([][]Failure, len(turns))
	players := w.clock.join(len(turns))
	start := w.mark()
	var running sync.WaitGroup
	for i := range turns {
		running.Go(func() {
			defer w.clock.leave(players[i])
			o := w.turn(context.WithValue(ctx, playerKey{}, players[i]), &turns[i], turns[i].number+repetition, start)
			failures[i] = turns[i].Expect.judge(o)
		})
		w.clock.settled(players[i])
	}
	running.Wait()
	var all []Failure
	for _, f := range failures {
		all = append(all, f...)
	}
	return all
}

// turn runs one turn and looks at what it came to before any other goes on.
func (w *world) turn(ctx context.Context, t *turn, number int, from marks) *observed {
	from.session = len(w.events(ctx, t.User, t.Session))
	o := &observed{name: fmt.Sprintf("turn[%d]", number)}
	began := w.clock.Now()
	w.run(ctx, t, o)
	o.waited = w.clock.Now().Sub(began)
	o.failed(w.drain(ctx))
	w.observe(ctx, o, from, &who{t.User, t.Session}, &t.Expect)
	return o
}

// drain lets the store have what the host put off, unless it is away: then it
// is kept.
func (w *world) drain(ctx context.Context) error {
	if w.store.down.Load() {
		return nil
	}
	return w.host.Drain(ctx)
}

func (w *world) run(ctx context.Context, t *turn, o *observed) {
	ctx = context.WithValue(ctx, whoKey{}, who{t.User, t.Session})
	cfg := agent.RunConfig{StreamingMode: agent.StreamingModeNone}
	if t.Stream {
		cfg.StreamingMode = agent.StreamingModeSSE
	}
	said := genai.NewContentFromText(t.Text, genai.RoleUser)
	n := 0
	for ev, err := range w.runner.Run(ctx, t.User, t.Session, said, cfg) {
		n++
		if err != nil {
			o.errors = append(o.errors, err.Error())
		}
		if ev != nil {
			o.event(ev)
		}
		switch {
		case n == t.CancelAfter:
			return
		case n == maxEvents:
			o.errors = append(o.errors, fmt.Sprintf("stopped after %d events: the run has no end", n))
			return
		}
	}
}

// end looks at all turns together, and at what they left behind.
func (w *world) end(ctx context.Context) []Failure {
	o := &observed{name: "at the end"}
	drained := w.drain(ctx)
	w.observe(ctx, o, marks{}, nil, &w.file.Expect)
	o.errors = nil // each is its turn's
	o.failed(drained)
	failures := w.file.Expect.judge(o)
	for _, f := range w.faulty {
		failures = append(failures, f.idle()...)
	}
	runs, operations := w.host.Open()
	leases, err := w.store.held(ctx)
	left := []string{fmt.Sprintf("runs %d", runs), fmt.Sprintf("operations %d", operations), fmt.Sprintf("leases %d", leases)}
	if none := []string{"runs 0", "operations 0", "leases 0"}; err != nil || strings.Join(left, "") != strings.Join(none, "") {
		failures = append(failures, Failure{Of: o.name, What: "open", at: []string{"turn"}, Words: "something was left open", Want: none, Got: left})
	}
	return failures
}

// owner is whose the limits and the records of a user are.
func owner(user string) store.Owner { return store.Owner{Kind: store.OwnerUser, App: App, User: user} }

// buffer is a log that many write to.
type buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
