package chain_test

import (
	"context"
	"testing"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
)

// BenchmarkUnaskedHook is a hook that no stage asks for.
func BenchmarkUnaskedHook(b *testing.B) {
	built, err := chain.New("v1", 0)
	if err != nil {
		b.Fatal(err)
	}
	ledger := chain.NewLedger(built, chain.WallClock{}, chain.Tracer{})
	r := ledger.Begin(abi.Event{App: "app", User: "user"})
	op, _ := r.Open(abi.OpModel, abi.Event{Agent: "agent"})
	with := &abi.Event{Usage: abi.Usage{Mask: abi.HasTotal, Total: 7}}
	b.ReportAllocs()
	for b.Loop() {
		op.Dispatch(context.Background(), abi.OnModelChunk, with)
	}
}
