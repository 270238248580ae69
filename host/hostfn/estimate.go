package hostfn

import (
	"github.com/hookhost/hookhost/host/hostfn/learn"
	"github.com/hookhost/hookhost/store"
)

// bytesPerToken is what a token is taken to be of a request.
const bytesPerToken = 4

// estimate is what a model call takes of a limit until its usage is known. An
// average above the burst is cut to it: no call would ever bring it down again.
func (c *Call) estimate(l Limit) int64 {
	n := l.Estimate.Units
	switch l.Estimate.By {
	case Size:
		n += c.size()
	case Learned:
		if mean, known := c.services.learner.Mean(c.learnedOf()); known {
			n = mean
		}
		n = min(n, l.Bucket.Burst)
	}
	return min(max(1, n), store.MaxUnits)
}

func (c *Call) learnedOf() learn.Of {
	return learn.Of{App: c.ev.App, Agent: c.ev.Agent, Model: c.ev.Model}
}

// size is about how many tokens the model reads.
func (c *Call) size() int64 {
	var bytes int64
	for _, l := range c.allLeaves() {
		bytes += int64(len(l.Text))
	}
	return (bytes + bytesPerToken - 1) / bytesPerToken
}
