// Meter keeps one record of every model call, and counts tool calls.
package main

import "github.com/hookhost/hookhost/abi/guest"

func main() {}

func init() { guest.Register(hooks()) }
