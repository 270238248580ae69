// Ratelimit keeps users within their plan: how often they begin, how many
// tokens they spend, and how much runs at once. The numbers are the host's;
// it only names the limits.
package main

import "github.com/hookhost/hookhost/abi/guest"

func main() {}

func init() { guest.Register(hooks()) }
