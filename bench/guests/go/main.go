// The guest in Go: what it does to the first text of a request or
// response, the key `task`
// of its configuration says.
package main

import (
	"github.com/hookhost/hookhost/abi/guest"
	"github.com/hookhost/hookhost/bench/work"
)

func main() {}

func init() {
	guest.Register(guest.Hooks{Configure: configure, BeforeModel: perform, AfterModel: perform})
}

var task func(*guest.Call, guest.Leaf) guest.Verdict

func configure(c *guest.Config) {
	name, _ := c.Get("task")
	switch name {
	case "verdict":
		task = verdict
	case "json":
		task = answer(warm(work.JSON))
	case "regexp":
		task = answer(warm(work.Regexp))
	case "mask":
		task = mask
	case "log":
		task = log
	default:
		c.Reject("task", "no such task")
	}
}

// warm has a library make what it makes once: it is in the image then, and not
// made again in every call.
func warm(do func(string) string) func(string) string {
	do(`{"orders": [{"paid": true, "items": [{"quantity": 1, "cents": 1}]}]}`)
	do("The claim AB-1234.")
	return do
}

func perform(c *guest.Call) guest.Verdict {
	for leaf := range c.Leaves() {
		return task(c, leaf)
	}
	return guest.Fail
}

func verdict(c *guest.Call, leaf guest.Leaf) guest.Verdict {
	if work.Verdict(leaf.Text()) == work.Deny {
		return c.Refuse("phrase", "This cannot be answered.", 0)
	}
	return guest.Continue
}

func answer(do func(string) string) func(*guest.Call, guest.Leaf) guest.Verdict {
	return func(c *guest.Call, leaf guest.Leaf) guest.Verdict { return c.Answer(do(leaf.Text())) }
}

func mask(c *guest.Call, leaf guest.Leaf) guest.Verdict {
	for start, end := range work.Cards(leaf.Text()) {
		if leaf.Splice(start, end, work.Card) != nil {
			return guest.Fail
		}
	}
	return c.Done()
}

// log writes a line, which the host can take its time over.
func log(c *guest.Call, leaf guest.Leaf) guest.Verdict {
	c.Log(2, leaf.Text())
	return guest.Continue
}
