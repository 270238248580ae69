package host

import (
	"context"
	"maps"
)

type claimsKey struct{}

// WithClaims says what is known of the user of a run beside the id, such as
// the plan that an identity token names. It is for the context that the runner
// is called with; plans.toml names the claim that it takes a plan from. The
// host believes the claims as it believes the user id: they have to be
// verified.
func WithClaims(ctx context.Context, claims map[string]string) context.Context {
	return context.WithValue(ctx, claimsKey{}, maps.Clone(claims))
}

// claim reads one claim; empty if it was not made.
func claim(ctx context.Context, name string) string {
	claims, _ := ctx.Value(claimsKey{}).(map[string]string)
	return claims[name]
}
