package chain

import (
	"strings"
	"time"

	"github.com/hookhost/hookhost/abi"
)

// Step is one line of a run's trace: one stage called at one hook, or a
// decision of the host itself, which has no stage.
type Step struct {
	Time      time.Time
	Version   string // of the chain
	Run, Op   string
	Operation abi.Operation
	Hook      abi.Hook
	Agent     string
	Model     string
	Tool      string
	Stage     string
	Mode      Mode
	Verdict   abi.Kind // 0 when the stage failed
	Cause     Cause    // why it failed
	Policy    Policy   // what the failure did
	Code      string   // of a refusal
	Wait      time.Duration
	Held      int        // bytes of the stream held back
	Reason    abi.Reason // at close and after_run
	Source    abi.Source
	Flags     abi.Flags
	Took      time.Duration
	Fuel      int64 // that a module burned, a measure of its instructions; 0 of what counts none
	Notes     []abi.Note
	Err       error // the detail of a failure, for the log only
}

// Span is how long an operation took. The host measures it, whether or not a
// stage asks for the operation's hooks.
type Span struct {
	Version    string // of the chain
	Run, Op    string
	Operation  abi.Operation
	Agent      string
	Model      string
	Tool       string
	Began      time.Time
	Took       time.Duration // to its end
	FirstChunk time.Duration // of a model call, to its first response; 0 if none came
	Reason     abi.Reason
}

// Tracer is told what happens, from many goroutines at once. What it leaves
// nil it is not told.
type Tracer struct {
	Step func(Step)
	Span func(Span)
}

// Line says in words what tells one step from another: hook, stage, verdict,
// and what belongs to it. The host has no name, so it stands as "host".
//
//	before_run ratelimit respond limit.turn
//	before_model ratelimit wait 6s
//	after_model redact failed trap closed
//	close ratelimit continue run done
func (s Step) Line() string {
	words := []string{s.Hook.String(), s.Stage, s.Verdict.String()}
	if s.Stage == "" {
		words[1] = "host"
	}
	if s.Cause != 0 {
		words[2] = "failed"
	}
	return strings.Join(append(words, s.Details()...), " ")
}

// Details are the words of a line that follow the verdict.
func (s Step) Details() []string {
	var words []string
	if s.Cause != 0 {
		words = append(words, s.Cause.String())
	}
	if s.Policy != 0 {
		words = append(words, s.Policy.String())
	}
	if s.Mode == Shadow {
		words = append(words, "shadow")
	}
	if s.Code != "" {
		words = append(words, s.Code)
	}
	if s.Wait > 0 {
		words = append(words, s.Wait.String())
	}
	if s.Reason != 0 {
		words = append(words, s.Operation.String(), s.Reason.String())
	}
	return words
}
