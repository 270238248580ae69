package hostfn

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hookhost/hookhost/abi"
)

// Bounds on what one call of a guest writes to the log.
const (
	maxLine  = 4 << 10 // bytes; the rest of a line is cut off
	maxLines = 64      // more are counted and dropped
)

var levels = map[int32]slog.Level{
	abi.LogDebug: slog.LevelDebug, abi.LogInfo: slog.LevelInfo,
	abi.LogWarn: slog.LevelWarn, abi.LogError: slog.LevelError,
}

// Log writes a line to the host's log, if the stage's output is on.
func (c *Call) Log(level int32, text string) int32 {
	if code := firstOf(c.here("hookhost.log"), checkText(text, abi.MaxValue)); code != abi.OK {
		return code
	}
	l, ok := levels[level]
	if !ok {
		return abi.BadArgument
	}
	if !c.WriteLine(l, text) {
		return abi.OverLimit
	}
	return abi.OK
}

// WriteLine writes a line of the guest's to the log: tagged, cut, with control
// characters escaped. It reports false for one line too many. Without output
// lines are only counted.
func (c *Call) WriteLine(level slog.Level, text string) bool {
	c.lines++
	if c.lines > maxLines || !c.stage.Output {
		c.stage.dropped.Add(1)
		return c.lines <= maxLines
	}
	c.services.logger().Log(context.WithoutCancel(c.ctx), level, "guest: "+printable(text), "stage", c.stage.Name)
	return true
}

// Dropped counts the lines of output that were not written.
func (s *Stage) Dropped() int64 { return s.dropped.Load() }

func printable(text string) string {
	if len(text) > maxLine {
		text = text[:maxLine] + "..."
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			b.WriteString(`\x` + strconv.FormatUint(uint64(text[i])|0x100, 16)[1:])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}
