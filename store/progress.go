package store

import "context"

type progressKey struct{}

// WithProgress lets an operation that reads what many users have tell how far
// it is: of how many it has read, as soon as it knows how many there are.
func WithProgress(ctx context.Context, tell func(read, of int)) context.Context {
	return context.WithValue(ctx, progressKey{}, tell)
}

// Progress tells who asked for it by WithProgress.
func Progress(ctx context.Context, read, of int) {
	if tell, asked := ctx.Value(progressKey{}).(func(read, of int)); asked {
		tell(read, of)
	}
}
