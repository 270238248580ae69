package chain

import "context"

type fuelKey struct{}

// withFuel lets the stage that is called tell what it burned.
func withFuel(ctx context.Context) (context.Context, *int64) {
	burned := new(int64)
	return context.WithValue(ctx, fuelKey{}, burned), burned
}

// Burned is for a stage that counts what it does, to be called before its Call
// returns: the trace shows it as Step.Fuel. ctx is that of the call.
func Burned(ctx context.Context, fuel int64) {
	if burned, traced := ctx.Value(fuelKey{}).(*int64); traced {
		*burned = fuel
	}
}
