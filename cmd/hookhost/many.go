package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hookhost/hookhost/store"
)

// sayEvery is how often a verb says how far it is. What is quicker says nothing.
const sayEvery = time.Second

// readMany reads what many users have. How far it is and what was skipped goes
// to stderr: the rest is worth as much without it.
func readMany[T any](ctx context.Context, c *command, read func(context.Context) ([]T, error)) ([]T, error) {
	follow := &progress{to: c.stderr, next: time.Now().Add(sayEvery)}
	all, err := read(store.WithProgress(ctx, follow.tell))
	if errors.Is(err, store.ErrIncomplete) {
		report(c.stderr, err)
		return all, nil
	}
	return all, err
}

// progress says how many users were read.
type progress struct {
	to   io.Writer
	next time.Time
}

func (p *progress) tell(read, of int) {
	if now := time.Now(); now.After(p.next) {
		fmt.Fprintf(p.to, "hookhost: read %d of %s\n", read, counted(int64(of), "user"))
		p.next = now.Add(sayEvery)
	}
}
