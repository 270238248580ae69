package hostfn

import "github.com/hookhost/hookhost/store"

// bytesPerToken is what a token is taken to be of a request.
const bytesPerToken = 4

// estimate is what a model call takes of a limit until its usage is known.
func (c *Call) estimate(l Limit) int64 {
	n := l.Estimate.Units
	if l.Estimate.By == Size {
		n += c.size()
	}
	return min(max(1, n), store.MaxUnits)
}

// size is about how many tokens the model reads.
func (c *Call) size() int64 {
	var bytes int64
	for _, l := range c.allLeaves() {
		bytes += int64(len(l.Text))
	}
	return (bytes + bytesPerToken - 1) / bytesPerToken
}
