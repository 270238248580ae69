package chain

import (
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
	Notes     []abi.Note
	Err       error // the detail of a failure, for the log only
}

// Tracer is told of each step, from many goroutines at once.
type Tracer func(Step)
