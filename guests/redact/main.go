// Redact masks card numbers, e-mail addresses and IBANs in what users, models
// and tools say to each other.
package main

import "github.com/hookhost/hookhost/abi/guest"

func main() {}

func init() { guest.Register(hooks()) }
