package adk

import (
	"errors"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/genai"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
)

// onUserMessage opens the run. Content that it returns replaces the message.
// A run that cannot be opened fails: nothing could refuse it later.
func (a *adapter) onUserMessage(c agent.InvocationContext, msg *genai.Content) (replaced *genai.Content, err error) {
	var r *run
	defer func() {
		if p := recover(); p != nil {
			a.caught("on_user_message", p)
			replaced, err = nil, r.breaks()
		}
	}()
	r = a.begin(c)
	if !r.Chain().Wants(abi.OnUserMessage) {
		return nil, nil
	}
	out := r.Root().Dispatch(c, abi.OnUserMessage, &abi.Event{
		Subject: contentSubject(msg, protocolCalls(c)), State: sessionState(c),
	})
	if out.Subject == nil {
		return nil, nil
	}
	return out.Subject.Value().(*genai.Content), nil
}

// beforeRun never returns anything to ADK, which would drop an answer and
// persist the message a second time (facts 1, 2): a denial is kept and
// answered by the first before_agent. Only a live run emits what it gets.
func (a *adapter) beforeRun(c agent.InvocationContext) (answer *genai.Content, err error) {
	var r *run
	defer func() {
		if p := recover(); p != nil {
			a.caught("before_run", p)
			answer, err = nil, r.breaks()
		}
		if r == nil {
			return
		}
		if d, denied := r.deniedLive(c); denied {
			answer = spoken(d)
			a.afterRun(c) // ADK sends none to a live run that is over before it began
		}
	}()
	r = a.begin(c)
	if r.Stopped() || !r.Chain().Wants(abi.BeforeRun) {
		return nil, nil
	}
	out := r.Root().Dispatch(c, abi.BeforeRun, &abi.Event{Decode: decodeContent, State: sessionState(c)})
	if out.Cancelled {
		r.Deny(chain.Denial{Refusal: abi.Refusal{Code: "cancelled"}})
	}
	return nil, nil
}

func (r *run) deniedLive(c agent.InvocationContext) (chain.Denial, bool) {
	if c.RunConfig() != nil {
		return chain.Denial{}, false
	}
	d, denied, _ := r.Denied()
	return d, denied
}

// afterRun ends the run, whatever became of it. Its context is done already
// when the client went away (fact 4).
func (a *adapter) afterRun(c agent.InvocationContext) {
	defer func() {
		if p := recover(); p != nil {
			a.caught("after_run", p)
		}
	}()
	if r, ok := a.lookup(c); ok {
		r.Finish(c, gone(c))
	}
}

// errBroken is what a caller gets whose run could not be opened.
var errBroken = errors.New("hookhost: the run could not be opened; see the log")

// breaks denies a run in which the host itself broke. A run that is not there
// can only fail.
func (r *run) breaks() error {
	if r == nil {
		return errBroken
	}
	r.Deny(chain.Denial{Failed: true, Refusal: abi.Refusal{Code: "host_failed", Text: unavailable}})
	return nil
}

func sessionState(c agent.InvocationContext) func(string) (any, bool) {
	return func(key string) (any, bool) {
		v, err := c.Session().State().Get(key)
		return v, err == nil
	}
}
