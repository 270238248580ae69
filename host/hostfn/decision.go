package hostfn

import (
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/store"
)

// decision is what a guest is told.
type decision struct {
	kind  abi.Decision
	limit int // in the guest's list: the one that decided
	wait  time.Duration
	id    int64
}

var decisionKinds = map[store.Kind]abi.Decision{
	store.Now: abi.Admitted, store.Later: abi.Delayed, store.Refused: abi.Denied, store.Never: abi.NeverFits,
}

var decisionNames = map[abi.Decision]string{
	abi.Admitted: "admitted", abi.Delayed: "delayed", abi.Denied: "denied", abi.NeverFits: "never fits",
}

func (d decision) String() string {
	return fmt.Sprintf("%s %d ms", decisionNames[d.kind], d.wait.Milliseconds())
}

// granted reports whether what was asked for is there, now or later.
func (d decision) granted() bool { return d.kind < abi.Denied }

// outcomes are the decisions as operators count them.
var outcomes = map[abi.Decision]string{
	abi.Admitted: "allowed", abi.Delayed: "waited", abi.Denied: "denied", abi.NeverFits: "never",
}

var scopes = map[store.OwnerKind]string{store.OwnerUser: "user", store.OwnerApp: "app", store.OwnerGlobal: "global"}

// measure counts and logs what came of a group: of one that was refused the
// limit that said no, of the others each.
func (c *Call) measure(group []asked, d decision, code abi.Code) {
	for _, a := range group {
		decided := d.kind != abi.Admitted && a.index == d.limit
		switch {
		case code == abi.Unavailable:
			c.measureOne(a, "unavailable", 0)
		case code != abi.OK: // the store was asked for what cannot be: a fault, and logged as such
		case decided:
			c.measureOne(a, outcomes[d.kind], d.wait)
		case d.granted():
			c.measureOne(a, outcomes[abi.Admitted], 0)
		}
	}
}

func (c *Call) measureOne(a asked, outcome string, wait time.Duration) {
	mode := "enforce"
	if a.limit.Shadow || c.stage.Shadow {
		mode = "shadow"
	}
	scope := scopes[a.owner.Kind]
	of := []attribute.KeyValue{
		attribute.String("limit", a.name), attribute.String("plan", a.limit.Plan),
		attribute.String("scope", scope), attribute.String("mode", mode),
	}
	if in := c.services.instruments; in.decisions.Enabled(c.ctx) {
		if outcome == outcomes[abi.Delayed] {
			in.waits.Record(c.ctx, wait.Seconds(), metric.WithAttributes(of...))
		}
		in.decisions.Add(c.ctx, 1, metric.WithAttributes(append(of, attribute.String("outcome", outcome))...))
	}
	level := slog.LevelInfo
	if outcome == outcomes[abi.Admitted] {
		level = slog.LevelDebug
	}
	if log := c.services.logger(); log.Enabled(c.ctx, level) {
		log.LogAttrs(c.ctx, level, "limit decision",
			slog.String("app", c.ev.App), slog.String("user", brief(c.ev.User)), slog.String("limit", a.name),
			slog.String("plan", a.limit.Plan), slog.String("plans", c.services.Plans.Version()),
			slog.String("scope", scope), slog.String("mode", mode), slog.String("outcome", outcome),
			slog.Duration("wait", wait), slog.String("run", c.ev.Run.ID()))
	}
}

// brief keeps an id that is as long as its sender likes from filling the log.
func brief(id string) string {
	const most = 128
	if len(id) <= most {
		return id
	}
	return id[:most] + "..."
}
