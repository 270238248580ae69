package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/guest/guesttest"
)

// call runs a hook that must come to a verdict.
func call(t *testing.T, h *guesttest.Host, hook abi.Hook) abi.Verdict {
	t.Helper()
	v, ok := h.Call(hooks(), hook)
	require.True(t, ok, "a verdict of %s", hook)
	return v
}

// decides is a host that decides like this.
func decides(decisions ...guesttest.Decision) *guesttest.Host {
	return &guesttest.Host{Decisions: decisions}
}

// reserved is a host with a model call that holds a reservation.
func reserved() *guesttest.Host {
	return &guesttest.Host{Event: abi.Event{Of: abi.OpModel, Flags: abi.Entered}, Op: map[string]string{"reservation": "7"}}
}

func refusal(code, text string, retry time.Duration) abi.Verdict {
	return abi.Verdict{Kind: abi.Respond, Answer: abi.Answer{Refusal: &abi.Refusal{Code: code, Text: text, Retry: retry}}}
}

var goesOn = abi.Verdict{Kind: abi.Continue}

func TestARunIsAdmittedByAllItsLimitsAtOnce(t *testing.T) {
	h := decides(guesttest.Decision{Kind: abi.Admitted, ID: 3})
	assert.Equal(t, goesOn, call(t, h, abi.BeforeRun))
	assert.Equal(t, []string{"admit turn tokens runs"}, h.Asked)
}

func TestARunIsRefusedAtOnceWithAReasonAndATime(t *testing.T) {
	for _, c := range []struct {
		limit int
		wait  time.Duration
		want  abi.Verdict
	}{
		{0, 2001 * time.Millisecond, refusal("limit.turn",
			"You are sending messages faster than your plan allows. Please try again in 3 seconds.", 2001*time.Millisecond)},
		{1, 150 * time.Second, refusal("limit.tokens", "You have reached your usage limit. Please try again in 3 minutes.", 150*time.Second)},
		{2, 0, refusal("limit.runs",
			"You have as many conversations going on at once as your plan allows. Please try again later.", 0)},
	} {
		assert.Equal(t, c.want, call(t, decides(guesttest.Decision{Kind: abi.Denied, Limit: c.limit, Wait: c.wait}), abi.BeforeRun))
	}
}

func TestARunThatNeverFitsIsNotToldToComeBack(t *testing.T) {
	h := decides(guesttest.Decision{Kind: abi.NeverFits, Limit: 1})
	assert.Equal(t, refusal("limit.tokens", "This needs more than your plan allows at once.", 0), call(t, h, abi.BeforeRun))
}

func TestAModelCallReservesTheEstimate(t *testing.T) {
	h := decides(guesttest.Decision{Kind: abi.Admitted, ID: 7})
	assert.Equal(t, goesOn, call(t, h, abi.BeforeModel))
	assert.Equal(t, []string{"take tokens -1"}, h.Asked)
	assert.Equal(t, map[string]string{"reservation": "7"}, h.Op)
}

func TestAModelCallWaitsAsLongAsThePlanAllows(t *testing.T) {
	h := decides(guesttest.Decision{Kind: abi.Delayed, Wait: 1500 * time.Millisecond, ID: 7})
	assert.Equal(t, abi.Verdict{Kind: abi.Wait, Wait: 1500 * time.Millisecond}, call(t, h, abi.BeforeModel))
	assert.Equal(t, map[string]string{"reservation": "7"}, h.Op)
}

func TestAWaitThatIsCutOffCostsNothing(t *testing.T) {
	for flags, want := range map[abi.Flags][]string{
		abi.Entered | abi.Cancelled | abi.NotBegun: {"release 7"},
		abi.Entered | abi.Cancelled:                nil, // the model had begun: the estimate stays
	} {
		h := decides(guesttest.Decision{Kind: abi.Delayed, Wait: 1500 * time.Millisecond, ID: 7})
		h.Event = abi.Event{Of: abi.OpModel}
		call(t, h, abi.BeforeModel)
		h.Event = abi.Event{Of: abi.OpModel, Reason: abi.ReasonCancelled, Flags: flags}
		assert.Equal(t, goesOn, call(t, h, abi.Close))
		assert.Equal(t, want, h.Asked)
	}
}

func TestARefusalInMidTurnSaysThatTheWorkStoppedEarly(t *testing.T) {
	const stopped = "You have reached your usage limit, so the work stopped early and this answer is not complete."
	h := decides(guesttest.Decision{Kind: abi.Denied, Wait: 4 * time.Second})
	assert.Equal(t, refusal("limit.tokens", stopped+" Please try again in 4 seconds.", 4*time.Second), call(t, h, abi.BeforeModel))
	assert.Empty(t, h.Op, "there is nothing to settle")

	h = decides(guesttest.Decision{Kind: abi.NeverFits})
	assert.Equal(t, refusal("limit.tokens", stopped+" This needs more than your plan allows at once.", 0), call(t, h, abi.BeforeModel))
}

func TestALimitThatThePlanDoesNotHaveLeavesNothingToSettle(t *testing.T) {
	h := decides()
	assert.Equal(t, goesOn, call(t, h, abi.BeforeModel))
	assert.Empty(t, h.Op)
}

func TestNothingIsTakenForACallerWhoHasGone(t *testing.T) {
	for _, hook := range []abi.Hook{abi.BeforeRun, abi.BeforeModel} {
		h := &guesttest.Host{Event: abi.Event{Flags: abi.Cancelled}}
		assert.Equal(t, goesOn, call(t, h, hook))
		assert.Empty(t, h.Asked)
	}
}

// What a reservation becomes, by how the model call ended and by whether the
// provider told what was used.
func TestEndOfAModelCall(t *testing.T) {
	const gone = abi.Cancelled
	for _, c := range []struct {
		name   string
		hook   abi.Hook
		source abi.Source
		reason abi.Reason
		flags  abi.Flags
		want   string // without usage
		used   string // with it
	}{
		{name: "response", hook: abi.AfterModel, used: "settle 7 60"},
		{name: "answered response", hook: abi.AfterModel, source: abi.SourceAnswered, want: "release 7", used: "release 7"},
		{name: "provider error", hook: abi.OnModelError, want: "release 7", used: "settle 7 60"},
		{name: "error of a call that was cancelled", hook: abi.OnModelError, flags: gone, used: "settle 7 60"},
		{name: "done", hook: abi.Close, reason: abi.ReasonDone, used: "settle 7 60"},
		{name: "error", hook: abi.Close, reason: abi.ReasonError, want: "release 7", used: "settle 7 60"},
		{name: "answered", hook: abi.Close, reason: abi.ReasonAnswered, want: "release 7", used: "release 7"},
		{name: "refused", hook: abi.Close, reason: abi.ReasonRefused, want: "release 7", used: "release 7"},
		{name: "cancelled", hook: abi.Close, reason: abi.ReasonCancelled, flags: gone, used: "settle 7 60"},
		{name: "ended", hook: abi.Close, reason: abi.ReasonEnded, used: "settle 7 60"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for usage, want := range map[abi.Usage]string{
				{}: c.want,
				{Mask: abi.HasPrompt | abi.HasCandidates | abi.HasThoughts, Prompt: 20, Candidates: 30, Thoughts: 10}: c.used,
			} {
				h := reserved()
				h.Event.Source, h.Event.Reason, h.Event.Usage = c.source, c.reason, usage
				h.Event.Flags |= c.flags
				assert.Equal(t, goesOn, call(t, h, c.hook), "what ended goes on as it is")
				if want == "" {
					assert.Empty(t, h.Asked, "the estimate stays charged")
					continue
				}
				assert.Equal(t, []string{want}, h.Asked)
				assert.Empty(t, h.Op, "once")
			}
		})
	}
}

func TestLateHooksSettleNothing(t *testing.T) {
	h := reserved()
	h.Event.Flags = abi.Late
	h.Event.Usage = abi.Usage{Mask: abi.HasTotal, Total: 60}
	assert.Equal(t, goesOn, call(t, h, abi.AfterModel))
	assert.Empty(t, h.Asked)
}

func TestCase023And025TheProvidersTotalIsSettledOnce(t *testing.T) {
	h := reserved()
	h.Event.Usage = abi.Usage{
		Mask:   abi.HasPrompt | abi.HasCached | abi.HasCandidates | abi.HasTotal,
		Prompt: 12000, Cached: 9000, Candidates: 400, Total: 12400,
	}
	call(t, h, abi.AfterModel)
	assert.Equal(t, []string{"settle 7 12400"}, h.Asked)
	h.Event.Reason = abi.ReasonDone
	call(t, h, abi.Close)
	assert.Empty(t, h.Asked)
}

func TestCase044AStoreThatIsAwayIsAFailureAndNeverADenial(t *testing.T) {
	away := map[string]abi.Code{
		"hookhost_limit.admit": abi.Unavailable, "hookhost_limit.take": abi.Unavailable,
		"hookhost_limit.settle": abi.Unavailable, "hookhost_limit.release": abi.Unavailable,
	}
	for _, hook := range []abi.Hook{abi.BeforeRun, abi.BeforeModel} {
		assert.Equal(t, abi.Verdict{Kind: abi.Fail}, call(t, &guesttest.Host{Codes: away}, hook))
	}

	h := reserved()
	h.Codes = away
	h.Event.Usage = abi.Usage{Mask: abi.HasTotal, Total: 60}
	v := call(t, h, abi.AfterModel)
	assert.Equal(t, abi.Verdict{Kind: abi.Continue, Notes: []abi.Note{{Key: "settle", Value: "unavailable"}}}, v,
		"an answer is not lost because the store is")
	assert.Equal(t, map[string]string{"reservation": "7"}, h.Op, "the next hook tries again")
}

func TestTheNamesOfTheLimitsAreConfigured(t *testing.T) {
	h := decides(guesttest.Decision{Kind: abi.Denied, Limit: 0, Wait: time.Second})
	h.Config = map[string]string{"turn": "", "runs": "sessions", "tokens": "spend"}
	hooks := hooks()
	require.True(t, h.Configure(hooks))
	v, ok := h.Call(hooks, abi.BeforeRun)
	require.True(t, ok)
	assert.Equal(t, []string{"admit spend sessions"}, h.Asked)
	assert.Equal(t, "limit.tokens", v.Answer.Refusal.Code)
}

func TestALimitOfManyIsNotTheUsersPlan(t *testing.T) {
	const early = "The service is busy, so the work stopped early and this answer is not complete."
	for _, c := range []struct {
		hook abi.Hook
		d    guesttest.Decision
		want abi.Verdict
	}{
		{abi.BeforeRun, guesttest.Decision{Kind: abi.Denied, Wait: time.Second}, refusal("limit.tokens", "The service is busy. Please try again in 1 second.", time.Second)},
		{abi.BeforeRun, guesttest.Decision{Kind: abi.NeverFits}, refusal("limit.tokens", "This needs more than the service allows at once.", 0)},
		{abi.BeforeModel, guesttest.Decision{Kind: abi.Denied, Wait: time.Second}, refusal("limit.tokens", early+" Please try again in 1 second.", time.Second)},
		{abi.BeforeModel, guesttest.Decision{Kind: abi.NeverFits}, refusal("limit.tokens", early+" This needs more than the service allows at once.", 0)},
	} {
		h := decides(c.d)
		h.Config = map[string]string{"turn": "", "runs": "", "tokens": "quota:global"}
		hooks := hooks()
		require.True(t, h.Configure(hooks))
		v, ok := h.Call(hooks, c.hook)
		require.True(t, ok)
		assert.Equal(t, c.want, v)
	}
}

func TestABadConfigurationIsRejected(t *testing.T) {
	h := &guesttest.Host{Config: map[string]string{"runs": "Two Runs", "turn": "turn:planet", "rate": "20/min"}}
	require.False(t, h.Configure(hooks()))
	assert.ElementsMatch(t, []abi.Note{
		{Key: "rate", Value: `no key "rate": there are runs, tokens, turn`},
		{Key: "runs", Value: `no name of a limit: "Two Runs"`},
		{Key: "turn", Value: `no name of a limit: "turn:planet"`},
	}, h.Rejected)
}
