// Package guest is the Go SDK for hooks.
package guest
