//go:build race

package wasm

// raced is a binary with the race detector, which takes ten times as long for
// what is in Go and keeps memory of its own.
const raced = true
