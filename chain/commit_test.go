package chain_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
)

// What a verdict changes outside the subject is done when the verdict is
// taken and at no other time.
func TestCommitIsCalledForATakenAmendAlone(t *testing.T) {
	fits := []abi.Edit{{Op: abi.EditSplice, Pointer: "/content/parts/0/text", Text: "x"}}
	wrong := []abi.Edit{{Op: abi.EditRemove, Pointer: "/gone"}}
	for name, c := range map[string]struct {
		stage   *stage
		hook    abi.Hook
		verdict abi.Verdict
		commits int
	}{
		"an amend":                   {transformer("s"), abi.BeforeModel, abi.Verdict{Kind: abi.Amend, Edits: fits}, 1},
		"an amend of no subject":     {transformer("s"), abi.BeforeModel, abi.Verdict{Kind: abi.Amend}, 1},
		"an amend of a chunk":        {transformer("s"), abi.OnModelChunk, abi.Verdict{Kind: abi.Amend, Edits: fits}, 1},
		"an edit that does not fit":  {transformer("s"), abi.BeforeModel, abi.Verdict{Kind: abi.Amend, Edits: wrong}, 0},
		"a chunk that does not fit":  {transformer("s"), abi.OnModelChunk, abi.Verdict{Kind: abi.Amend, Edits: wrong}, 0},
		"an observer may not amend":  {observer("s"), abi.BeforeModel, abi.Verdict{Kind: abi.Amend, Edits: fits}, 0},
		"no amend is possible there": {responder("s"), abi.BeforeAgent, abi.Verdict{Kind: abi.Amend, Edits: fits}, 0},
		"in shadow":                  {transformer("s").shadow(), abi.BeforeModel, abi.Verdict{Kind: abi.Amend, Edits: fits}, 0},
		"a continue":                 {transformer("s"), abi.BeforeModel, abi.Verdict{Kind: abi.Continue}, 0},
		"a respond":                  {responder("s"), abi.BeforeModel, abi.Verdict{Kind: abi.Respond, Answer: abi.Answer{Text: "no"}}, 0},
		"a fail":                     {transformer("s"), abi.BeforeModel, abi.Verdict{Kind: abi.Fail}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			commits := 0
			c.verdict.Commit = func() error { commits++; return nil }
			chainOf(t, c.stage.at(c.hook, gives(c.verdict))).at(c.hook, "value")
			assert.Equal(t, c.commits, commits)
		})
	}
}

func TestACommitThatFailsIsAFailureOfTheStage(t *testing.T) {
	for name, c := range map[string]struct {
		commit func() error
		cause  chain.Cause
	}{
		"an error": {func() error { return errors.New("no") }, chain.CauseBadVerdict},
		"a panic":  {func() error { panic("secret detail 4111") }, chain.CauseTrap},
	} {
		for _, h := range []abi.Hook{abi.BeforeModel, abi.OnModelChunk} {
			t.Run(name+" at "+h.String(), func(t *testing.T) {
				amends := func(ctx context.Context, ev *abi.Event) (abi.Verdict, error) {
					v, err := appends("!")(ctx, ev)
					v.Commit = c.commit
					return v, err
				}
				w := chainOf(t, transformer("s").onError(chain.Open).at(h, amends))
				out := w.at(h, "value")
				assert.Equal(t, c.cause, w.trace.last().Cause)
				assert.NotContains(t, w.trace.last().Err.Error(), "4111")
				assert.Nil(t, out.Subject, "the edits are not taken either")
			})
		}
	}
}
