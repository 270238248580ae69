package host

import (
	"time"

	"github.com/hookhost/hookhost/chain/manifest"
)

// watchEvery is how often the host looks at plans.toml. It looks at what stands
// in it: files that are mounted change without a signal, and often without a
// newer time.
const watchEvery = 2 * time.Second

// watch is what the host saw of plans.toml when it looked last.
type watch struct {
	seen   string // the text, or why there is none
	judged bool
}

// lookAtPlans puts plans in place that were changed. A text has to be the same
// twice, so that one that is being written is not taken for whole.
func (h *Host) lookAtPlans(w *watch) {
	path := h.Manifest().Limits.Plans
	if path == "" {
		return
	}
	data, err := manifest.ReadFile(path)
	now := string(data)
	if err != nil {
		now = err.Error()
	}
	running := h.plans.file()
	switch {
	case now != w.seen:
		*w = watch{seen: now}
	case w.judged:
	case err == nil && running != nil && running.Is(data):
		w.judged = true
	default:
		w.judged = true
		if err := h.ReloadPlans(); err != nil {
			h.log.Error("changed plans refused, the running ones stay", "plans", h.plans.Version(), "error", err)
		}
	}
}
