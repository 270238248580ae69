package hostfn

import (
	"context"
	"encoding/binary"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/store"
)

var (
	usageRead  = abi.Grant{Family: "usage", Name: "read"}
	usageWrite = abi.Grant{Family: "usage", Name: "write"}
)

// UsageRecord keeps the host's numbers of a model call that is over; the store
// hears of it behind the call. A second one of the same call changes nothing. A stage in shadow keeps none: it would
// stand among the real ones.
func (c *Call) UsageRecord() int32 {
	if code := c.granted("hookhost_usage.record", usageWrite); code != abi.OK {
		return code
	}
	outcome, over := c.outcome()
	if !over {
		return abi.NotAtThisHook
	}
	if c.stage.Shadow {
		return c.note("usage.record", outcome.String())
	}
	r, in := c.record(outcome), c.services.Store
	c.services.put(record, in, c.user(), func(ctx context.Context) error {
		_, err := in.Record(ctx, r)
		return err
	})
	return abi.OK
}

// outcome tells how a model call ended, at the hooks where one does.
func (c *Call) outcome() (abi.Reason, bool) {
	cancelled := c.ev.Flags.Has(abi.Cancelled)
	switch {
	case c.ev.Hook == abi.AfterModel && c.ev.Source == abi.SourceAnswered:
		return abi.ReasonAnswered, true
	case c.ev.Hook == abi.AfterModel && c.ev.Source == abi.SourceError:
		return abi.ReasonError, true
	case c.ev.Hook == abi.AfterModel:
		return abi.ReasonDone, true
	case c.ev.Hook == abi.OnModelError && cancelled:
		return abi.ReasonCancelled, true
	case c.ev.Hook == abi.OnModelError:
		return abi.ReasonError, true
	case c.ev.Hook == abi.Close && c.ev.Of == abi.OpModel:
		return c.ev.Reason, true
	}
	return 0, false
}

func (c *Call) record(outcome abi.Reason) store.Record {
	ev := c.ev
	return store.Record{
		ID: ev.Op.ID(), Run: ev.Run.ID(), Time: ev.Time,
		App: ev.App, User: ev.User, Session: ev.Session, Agent: ev.Agent, Model: ev.Model,
		Plan: c.services.Plans.Plan(c.ctx, ev.App, ev.User), IdempotencyKey: c.idempotencyKey(),
		Turn: c.firstOfRun(), Outcome: outcome.String(), Tokens: tokens(ev.Usage),
		Elapsed: ev.Elapsed, FirstChunk: ev.FirstChunk,
	}
}

// firstOfRun reports whether no model call of the run was recorded before.
func (c *Call) firstOfRun() bool {
	n, err := c.ev.Run.Add(hostState, "records", 1)
	return err == nil && n == 1
}

// idempotencyKey is what a worker left in the session for this turn.
func (c *Call) idempotencyKey() string {
	if c.ev.State == nil {
		return ""
	}
	value, _ := c.ev.State("idempotency_key")
	key, _ := value.(string)
	return key
}

// tokens keeps what the provider did not send apart from zero.
func tokens(u abi.Usage) store.Tokens {
	sent := func(bit abi.UsageMask, n int64) *int64 {
		if u.Mask&bit == 0 {
			return nil
		}
		return &n
	}
	return store.Tokens{
		Prompt:     sent(abi.HasPrompt, u.Prompt),
		Candidates: sent(abi.HasCandidates, u.Candidates),
		Cached:     sent(abi.HasCached, u.Cached),
		Thoughts:   sent(abi.HasThoughts, u.Thoughts),
		ToolUse:    sent(abi.HasToolUse, u.ToolUse),
		Total:      sent(abi.HasTotal, u.Total),
	}
}

// UsageAdd adds to a counter of the user.
func (c *Call) UsageAdd(name string, delta int64) int32 {
	if code := c.granted("hookhost_usage.add", usageWrite); code != abi.OK {
		return code
	}
	if !abi.ValidName(name) {
		return abi.BadArgument
	}
	_, id := c.nextID()
	return c.inStore(func(ctx context.Context) error {
		_, err := c.services.Store.AddCounter(ctx, c.user(), name, id, delta)
		return err
	})
}

// UsageSum reads a counter of the user, an i64.
func (c *Call) UsageSum(name string, out []byte) int32 {
	if code := c.granted("hookhost_usage.sum", usageRead); code != abi.OK {
		return code
	}
	if !abi.ValidName(name) || len(out) < 8 {
		return abi.BadArgument
	}
	var sum int64
	code := c.inStore(func(ctx context.Context) (err error) {
		sum, err = c.services.Store.Counter(ctx, c.user(), name)
		return err
	})
	if code != abi.OK {
		return code
	}
	return fill(out, binary.LittleEndian.AppendUint64(nil, uint64(sum)))
}
