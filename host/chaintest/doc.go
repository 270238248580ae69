// Package chaintest tests a chain of hooks on a real ADK runner, with a
// scripted model and on a clock of its own.
//
// In Go, Recorder is what a chain-order test asserts on; see the example. Run
// plays a scenario file as a Go test, and `hookhost test` does the same from
// the command line.
//
// # Scenario files
//
// A scenario file is TOML. Every key is known or an error at its place.
//
//	about = "What it shows, in a sentence."
//	manifest = "../hooks.toml"         # relative to the file; without it there are only the stages below
//	order = ["redact", "meter"]        # in place of the manifest's; stages that it leaves out are not there
//	orders = [["a", "b"], ["b", "a"]]  # or several: the scenario is played in each
//	max_model_calls = 3                # in place of the manifest's
//	plans = "../plans.toml"            # in place of the manifest's; or a table with the only plan, "test":
//	[plans.plan.test]
//	turn = { rate = "20/min", burst = 1 }
//
//	[stage.redact]                     # keys as in the manifest, laid over it; a module's path is relative to the file
//	on_error = "open"
//	[stage.cite]                       # a stage of the scenario's own
//	kind = "cite"
//	config = { text = " [1]" }
//
// Timeouts are in real time, and a busy machine is not what a scenario is about:
// those of the stages are 10 s, unless the scenario gives one its own, and the
// store's half the shortest.
//
// The kinds are recorder, an observer at every hook; cache, which answers a
// model call whose last user text contains config.when with config.answer;
// cite, which appends config.text to the last text of a final response; refuse,
// which refuses with config.code, config.text and config.retry wherever it can;
// and boom, which panics with what it was given at every hook. `hooks` narrows
// them as it does any stage.
//
//	[agent]
//	shape = "llm"                      # or transfer, sequential, parallel, loop, custom, workflow
//	shapes = ["llm", "loop"]           # or several: the scenario is played in each
//	iterations = 2                     # of a loop; 0 is without end
//	callbacks = true                   # the agents' own callbacks stand in the trace, as "before_model <agent>"
//	repeat_replies = true              # the last reply is given again and again
//
//	[[reply]]                          # see demo.ParseScript
//	text = "Hello."
//
//	[[fault]]
//	stage = "redact"
//	hook = "after_model"
//	kind = "trap"                      # or time, memory, bad_verdict, fail, pool_full, load,
//	                                   # too_deep, host_calls
//	skip = 1                           # so many calls go well before
//	times = 1                          # so many fail; 0 is all that follow
//
//	[[turn]]
//	user = "ada"                       # "user" without it
//	session = "s-1"                    # "session" without it
//	text = "Hi"
//	at = "10s"                         # on the test's clock, from its start; or
//	after = "10s"                      # from where it stands
//	repeat = 5                         # the same, so many times
//	stream = true
//	cancel_after = 2                   # the user stops reading after so many events
//	store_down = true                  # the store is away during this turn
//	group = "x"                        # turns in a row with one group go on at once
//
// Turns of a group begin in the order of the file, each when the one before it
// waits or is over; see Clock.
//
// # Expectations
//
// They stand in [turn.expect], about the turn, and in [expect], about all of
// them. What is not written is not checked. A turn that fails although it has
// no `error`, a fault that never happens, and a run, operation or lease that
// is left open are failures without being asked for.
//
//	trace = ["before_run ratelimit continue"]   # all lines, as chain.Step.Line writes them
//	trace_contains = ["..."]                    # these in this order, others between them
//	trace_lacks = ["before_model"]              # no line begins so
//	notes = ["ratelimit shadow.limit.turn: denied 2000 ms"]  # what the stages noted
//	trace_hooks = ["before_run"]                # the four look at these hooks alone,
//	trace_stages = ["meter", "<agent>"]         # and at these stages
//	user_reads = ["Hello."]                     # the texts of whole events
//	streamed = "Hello."                         # the texts of the chunks, joined
//	session_keeps = ["user: Hi", "assistant: Hello."]
//	model_reads = ["user: Hi"]                  # the contents of the last request
//	tools_get = ['lookup {"order":"A-1"}']      # what ran, tool by tool
//	stages_read = { meter = ["after_model Hello."] }
//	nowhere = ["4111"]                          # in no event, session, request, error or log line
//	refused = ["limit.turn 3s"]                 # code, and the time to come back if there is one
//	error = "503"                               # a part of an error of the run
//	model_calls = 1
//	waited = "6s"                               # on the test's clock
//	balances = { ada = { turn = 4, tokens = 54000, runs = 0 } }
//	usage = { ada = { calls = 1, prompt = 20, cached = "missing", outcomes = ["done"] } }
//	fallbacks = 20                              # calls that found the store away
//
// Balances, usage and fallbacks are what they come to at the end of the turn,
// not only in it. The order of trace lines between hooks of a stream is ADK's:
// on_event may come before or after the next chunk's on_model_chunk, so an
// exact trace of a stream names the hooks it looks at.
package chaintest
