// Package guest is the Go SDK for hooks. A hook registers functions, one for
// each hook point that it wants, and is compiled with
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath
//
// The same code runs natively: a test makes a Module of the hooks and a Host,
// guesttest.Host for one.
//
// The host begins every call with the memory as it was after Configure. So
// what costs time to make is best made there or in init; a variable does not
// carry anything to the next call; and math/rand gives the same numbers in
// every call, which crypto/rand does not.
//
// A guest imports only the functions that it uses, so what it needs to be
// granted can be read off its imports.
package guest
