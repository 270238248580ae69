package adk

import (
	"context"
	"errors"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/tool"

	"github.com/hookhost/hookhost/abi"
)

// beforeTool changes what the tool gets and nothing else: see arguments.
func (a *adapter) beforeTool(c agent.Context, t tool.Tool, args map[string]any) (answer map[string]any, _ error) {
	defer func() {
		if p := recover(); p != nil {
			a.caught("before_tool", p)
			answer = failed(unavailable)
		}
	}()
	u := bare(c)
	r := a.find(u)
	if r.Stopped() {
		return failed("The run was stopped before this tool could run."), nil
	}
	r, op := a.openTool(c, t.Name())
	if !r.Chain().Wants(abi.BeforeTool) {
		return nil, nil
	}
	out := op.Dispatch(c, abi.BeforeTool, &abi.Event{Subject: argumentSubject(args), Decode: decodeResult, SetState: u.State().Set})
	switch {
	case out.Cancelled:
		return failed("The run was cancelled before this tool could run."), nil
	case out.Answer != nil:
		return out.Answer.Value().(map[string]any), nil
	case out.Subject != nil:
		if !a.arguments.amend(args, out.Subject.Value().(map[string]any)) {
			a.log.Error("arguments cannot be added to a call that has none", "tool", t.Name())
			return failed(unavailable), nil
		}
	}
	return nil, nil
}

// afterTool keeps the text of a tool's error from the model: it can hold a
// connection string as well as a reason (fact 12).
func (a *adapter) afterTool(c agent.Context, t tool.Tool, args, result map[string]any, toolErr error) (answer map[string]any, _ error) {
	defer func() {
		if p := recover(); p != nil {
			a.caught("after_tool", p)
			answer = failed(unavailable)
		}
	}()
	a.arguments.giveBack(args)
	op := a.find(bare(c)).closeTool(c, t.Name())
	ev := &abi.Event{Decode: decodeResult}
	sanitised := a.sanitised(t, toolErr)
	if result == nil && sanitised != nil {
		result = sanitised
	}
	if result != nil {
		ev.Subject = resultSubject(result)
	}
	out := op.Dispatch(c, abi.AfterTool, ev)
	switch {
	case out.Answer != nil:
		return out.Answer.Value().(map[string]any), nil
	case out.Subject != nil:
		return out.Subject.Value().(map[string]any), nil
	}
	return sanitised, nil
}

// sanitised is the result that the model reads in place of a tool's error; nil
// where there is none. What a person has to confirm, or refused, is no error:
// the model has to read it as it is (fact 25).
func (a *adapter) sanitised(t tool.Tool, err error) map[string]any {
	if err == nil || errors.Is(err, tool.ErrConfirmationRequired) || errors.Is(err, tool.ErrConfirmationRejected) {
		return nil
	}
	a.log.Warn("tool failed", "tool", t.Name(), "error", err)
	var public interface{ PublicText() string }
	if errors.As(err, &public) {
		return failed(public.PublicText())
	}
	return failed("The tool failed. Its error was logged.")
}

// onToolError sees a tool's own error before after_tool does, and the only
// hook there is for a tool that the model invented (fact 14).
func (a *adapter) onToolError(c agent.Context, t tool.Tool, args map[string]any, toolErr error) (answer map[string]any, _ error) {
	defer func() {
		if p := recover(); p != nil {
			a.caught("on_tool_error", p)
			answer = failed(unavailable)
		}
	}()
	r := a.find(bare(c))
	op, exists := r.tool(c)
	if !exists {
		r, op = a.openTool(c, t.Name())
		defer func() {
			r.closeTool(c, t.Name())
			op.End(c, abi.ReasonError)
		}()
	}
	out := op.Dispatch(c, abi.OnToolError, &abi.Event{Subject: errorSubject(toolErr), Decode: decodeResult})
	if out.Answer == nil {
		return nil, nil
	}
	return out.Answer.Value().(map[string]any), nil
}

func failed(why string) map[string]any { return map[string]any{"error": why} }

func cancels(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
