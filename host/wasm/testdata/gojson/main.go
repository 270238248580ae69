// Decodes its subject with encoding/json, encodes it again, and answers with
// what came of it.
package main

import (
	"encoding/json"

	"github.com/hookhost/hookhost/abi/guest"
)

func main() {}

func init() {
	guest.Register(guest.Hooks{BeforeModel: func(c *guest.Call) guest.Verdict {
		text, err := c.Get("")
		if err != nil {
			return guest.Fail
		}
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			return c.Refuse("json.bad", err.Error(), 0)
		}
		again, err := json.Marshal(value)
		if err != nil {
			return guest.Fail
		}
		return c.AnswerJSON(string(again))
	}})
}
