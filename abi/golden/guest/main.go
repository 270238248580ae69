// The golden guest does what the text of an event's first leaf says.
package main

import (
	"github.com/hookhost/hookhost/abi/golden/script"
	"github.com/hookhost/hookhost/abi/guest"
)

func main() {}

func init() { guest.Register(script.Hooks()) }
