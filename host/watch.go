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
	looked bool      // there was a last time
	seen   string    // the text, or why there is none
	since  time.Time // when it was first seen
	judged bool
}

// lookAtPlans puts plans in place that were changed. A text has to be the same
// twice, some time apart, so that one that is being written is not taken for
// whole.
func (h *Host) lookAtPlans(w *watch) {
	path := h.Manifest().Limits.Plans
	if path == "" {
		return
	}
	data, unread := manifest.ReadFile(path)
	now := string(data)
	if unread != nil {
		now = unread.Error()
	}
	switch running := h.plans.file(); {
	case !w.looked || now != w.seen:
		*w = watch{looked: true, seen: now, since: time.Now()}
		return
	case w.judged, time.Since(w.since) < watchEvery/2: // a look that came late is followed by one that does not
		return
	case unread == nil && running != nil && running.Is(data):
		w.judged = true
		return
	}
	w.judged = true
	err := h.takePlans(func(m *manifest.Manifest) (*manifest.Plans, error) {
		if unread != nil || m.Limits.Plans != path {
			return loadPlans(m)
		}
		return manifest.ParsePlans(path, data)
	})
	if err != nil {
		h.log.Error("changed plans refused, the running ones stay", "plans", h.plans.Version(), "error", err)
	}
}
