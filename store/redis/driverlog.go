package redis

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	goredis "github.com/redis/go-redis/v9"
)

// driverLog is where the driver's own log goes. It has one for the whole
// program, on stderr, and writes a line for every connection that fails: many a
// second while a server is away, of what the callers are told anyway.
type driverLog struct{}

func (driverLog) Printf(ctx context.Context, format string, v ...any) {
	if slog.Default().Enabled(ctx, slog.LevelDebug) {
		slog.DebugContext(ctx, "redis driver: "+fmt.Sprintf(format, v...))
	}
}

var quietDriver = sync.OnceFunc(func() { goredis.SetLogger(driverLog{}) })
