package adk_test

import (
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host/demo"
)

// diary is a stage that writes its run's id into the run's state at
// before_run, and reads there at every model call what it wrote.
type diary struct {
	began func() // when a run wrote

	mu   sync.Mutex
	runs map[string]*entry
}

type entry struct {
	found      bool // something was written before the run wrote
	invocation string
	read       []string
}

func (d *diary) stage() native {
	d.runs = map[string]*entry{}
	return native{
		abi.BeforeRun: func(ev *abi.Event) (abi.Verdict, error) {
			_, found := ev.Run.Get("test", "who")
			d.mu.Lock()
			d.runs[ev.Run.ID()] = &entry{found: found, invocation: ev.Invocation}
			d.mu.Unlock()
			err := ev.Run.Set("test", "who", []byte(ev.Run.ID()))
			d.began()
			return abi.Verdict{Kind: abi.Continue}, err
		},
		abi.BeforeModel: func(ev *abi.Event) (abi.Verdict, error) {
			who, _ := ev.Run.Get("test", "who")
			d.mu.Lock()
			defer d.mu.Unlock()
			run := d.runs[ev.Run.ID()]
			run.read = append(run.read, string(who))
			return abi.Verdict{Kind: abi.Continue}, nil
		},
	}
}

func TestRunsAtOnceUnderOneInvocationAreToldApart(t *testing.T) {
	d := diary{began: func() {}}
	c := newChained(t, demo.LLM, d.stage(), calls("lookup"), demo.Reply{Text: "done"})
	c.model.Repeat = true
	require.NoError(t, c.say("hi").Err())
	clear(d.runs)

	d.began = gathering(t, 2)
	var runs sync.WaitGroup
	for range 2 {
		runs.Go(func() { assert.NoError(t, c.run(t.Context(), demo.Turn{Content: borrows("lookup")}).Err()) })
	}
	runs.Wait()

	require.Len(t, d.runs, 2, "each has an id of its own")
	invocations := map[string]bool{}
	for id, run := range d.runs {
		invocations[run.invocation] = true
		assert.False(t, run.found, "state of the other run")
		assert.Equal(t, []string{id}, run.read)
	}
	assert.Len(t, invocations, 1, "though ADK's id is the same")
}

func TestAResumeIsARunOfItsOwn(t *testing.T) {
	d := diary{began: func() {}}
	c := newChained(t, demo.LLM, d.stage(), calls("cancel_order"), demo.Reply{Text: "cancelled"})

	paused := c.say("cancel it")
	require.NoError(t, c.run(t.Context(), demo.Turn{Content: confirmed(t, paused.Events)}).Err())

	require.Len(t, c.desk.Cancelled(), 1)
	require.Len(t, d.runs, 2)
	for id, run := range d.runs {
		assert.False(t, run.found, "state of the paused run")
		assert.Equal(t, paused.Events[0].InvocationID, run.invocation)
		for _, who := range run.read {
			assert.Equal(t, id, who)
		}
	}
}

func TestHooksAfterTheRunGetARecordOfTheirOwn(t *testing.T) {
	everyHook := hears(abi.BeforeRun, abi.AfterRun, abi.BeforeAgent, abi.AfterAgent, abi.BeforeModel, abi.AfterModel, abi.Close)
	c := newChained(t, demo.LLM, everyHook, calls("delegate"), demo.Reply{Text: "done"}, demo.Reply{Agent: "helper", Text: "late"})
	over, done := make(chan struct{}), make(chan struct{})
	c.tree.Tools = []tool.Tool{c.leaver(over, done)}

	require.Equal(t, []string{"done"}, c.say("hi").Texts())
	before := len(c.steps)
	close(over)
	within(t, done, "the agent that was left running")

	assert.Equal(t, "after_run run done", line(c.steps[before-1]), "the run was over")
	late := c.steps[before:]
	var lines []string
	for _, s := range late {
		lines = append(lines, fmt.Sprintf("%s[%s]", line(s), s.Agent))
		assert.NotEqual(t, c.steps[0].Run, s.Run, "the run that is over is not opened again")
	}
	assert.Equal(t, []string{"before_agent[helper]", "before_model[helper]", "after_model[helper]", "after_agent[helper]"}, lines)
}

func TestHooksOfACallThatTheRunClosedAreLate(t *testing.T) {
	c := newChained(t, demo.LLM, hears(abi.BeforeModel, abi.AfterModel, abi.OnModelChunk, abi.Close),
		demo.Reply{Chunks: []string{"a", "b", "c"}})
	over, last := make(chan struct{}), make(chan struct{})
	c.on.AfterRunCallback = func(agent.InvocationContext) { close(over) }
	c.on.AfterModelCallback = func(_ agent.Context, resp *model.LLMResponse, _ error) (*model.LLMResponse, error) {
		if resp.Partial && demo.Text(resp.Content) == "a" {
			return nil, nil
		}
		within(t, over, "after_run")
		if !resp.Partial {
			close(last)
		}
		return nil, nil
	}

	assert.PanicsWithValue(t, "consumer", func() {
		c.run(t.Context(), demo.Turn{Text: "hi", Stream: true, Each: func(*session.Event) bool { panic("consumer") }})
	})
	within(t, last, "the after_model that comes late")

	c.mu.Lock()
	defer c.mu.Unlock()
	closed := slices.IndexFunc(c.steps, func(s chain.Step) bool { return s.Hook == abi.Close })
	require.Positive(t, closed, "the call was closed with the run")
	final := c.steps[len(c.steps)-1]
	assert.Equal(t, abi.AfterModel, final.Hook)
	assert.True(t, final.Flags.Has(abi.Late))
	assert.NotEqual(t, c.steps[0].Run, final.Run)
}

// live is an agent that can be run live, and says one thing.
type live struct {
	agent.Agent
	said string
}

func (l live) RunLive(c agent.InvocationContext) (agent.LiveSession, iter.Seq2[*session.Event, error], error) {
	return closed{}, func(yield func(*session.Event, error) bool) {
		ev := session.NewEvent(c, c.InvocationID())
		ev.Author, ev.LLMResponse = l.Name(), *answer(l.said)
		yield(ev, nil)
	}, nil
}

type closed struct{}

func (closed) Send(agent.LiveRequest) error { return nil }
func (closed) Close() error                 { return nil }

// runLive runs an agent live that says so, to its end.
func (c *chained) runLive(said string) demo.Outcome {
	root, err := c.tree.Agent()
	require.NoError(c.t, err)
	_, events, err := c.runnerFor(live{root, said}).RunLive(c.t.Context(), "user", "session", agent.LiveRunConfig{})
	require.NoError(c.t, err)
	var out demo.Outcome
	for ev, err := range events {
		require.NoError(c.t, err)
		out.Events = append(out.Events, ev)
	}
	return out
}

func TestARefusedLiveRunIsReadAndOver(t *testing.T) {
	c := newChained(t, demo.LLM, native{abi.BeforeRun: refuses("come back later")})

	assert.Equal(t, []string{"come back later"}, c.runLive("never said").Texts())
}

func TestALiveRunIsMarkedAndItsEventsAreAmended(t *testing.T) {
	var flags abi.Flags
	stage := native{abi.OnEvent: swaps("raw", "masked"), abi.BeforeRun: func(ev *abi.Event) (abi.Verdict, error) {
		flags = ev.Flags
		return continues(ev)
	}}
	c := newChained(t, demo.LLM, stage)

	assert.Equal(t, []string{"masked"}, c.runLive("raw").Texts())

	assert.True(t, flags.Has(abi.Live))
}
