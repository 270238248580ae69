package chain

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWithinEndsAtItsTime(t *testing.T) {
	for name, wait := range map[string]func(context.Context){
		"for who waits":     func(ctx context.Context) { <-ctx.Done() },
		"for who only asks": func(context.Context) { time.Sleep(25 * time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := Within(t.Context(), 20*time.Millisecond)
			defer cancel()
			require.NoError(t, ctx.Err())
			wait(ctx)
			require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
			<-ctx.Done()
		})
	}
}

func TestWithinEndsWithItsCaller(t *testing.T) {
	type key struct{}
	caller, leave := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
	ctx, cancel := Within(caller, time.Hour)
	defer cancel()
	assert.Equal(t, "value", ctx.Value(key{}))
	done := ctx.Done()
	assert.Equal(t, "value", ctx.Value(key{}))
	leave()
	<-done
	require.ErrorIs(t, ctx.Err(), context.Canceled)

	late, cancelLate := Within(caller, time.Hour)
	defer cancelLate()
	require.ErrorIs(t, late.Err(), context.Canceled)
	<-late.Done()
}

func TestWithinIsOverWhenItIsCancelled(t *testing.T) {
	ctx, cancel := Within(t.Context(), time.Hour)
	done := ctx.Done()
	cancel()
	<-done
	require.ErrorIs(t, ctx.Err(), context.Canceled)

	ctx, cancel = Within(t.Context(), time.Hour)
	cancel()
	require.ErrorIs(t, ctx.Err(), context.Canceled)
	<-ctx.Done()
}

func TestWithinLeavesASoonerEndAlone(t *testing.T) {
	sooner, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ctx, cancelSame := Within(sooner, time.Hour)
	cancelSame()
	assert.Equal(t, sooner, ctx)
	require.NoError(t, ctx.Err())
}

func TestContextsMadeFromWithinNeedNoGoroutine(t *testing.T) {
	ctx, cancel := Within(t.Context(), time.Hour)
	defer cancel()
	before := runtime.NumGoroutine()
	child, cancelChild := context.WithTimeout(ctx, time.Minute)
	defer cancelChild()
	assert.LessOrEqual(t, runtime.NumGoroutine(), before)
	cancel()
	<-child.Done()
}

func BenchmarkWithin(b *testing.B) {
	b.Run("within", func(b *testing.B) {
		for b.Loop() {
			_, cancel := Within(b.Context(), time.Second)
			cancel()
		}
	})
	b.Run("with a timer", func(b *testing.B) {
		for b.Loop() {
			_, cancel := context.WithTimeout(b.Context(), time.Second)
			cancel()
		}
	})
}
