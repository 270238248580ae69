//go:build !wasip1

package guest

import "github.com/hookhost/hookhost/abi"

// border is what a Call reaches the host through. Natively that is any Host.
type border struct{ Host }

// Module is a set of hooks over a Host: natively what an instance of the
// compiled guest is to the Wasm host. Its methods are the guest's exports.
type Module struct {
	Hooks Hooks
	Host  Host
}

// ABI returns the hooks wanted.
func (m Module) ABI() uint64 { return m.Hooks.abi() }

// Call runs one hook and returns the packed verdict.
func (m Module) Call(hook abi.Hook) uint64 { return m.Hooks.call(border{m.Host}, hook) }

// Configure returns 0, or anything else when the configuration was rejected.
func (m Module) Configure() int32 { return m.Hooks.configure(border{m.Host}) }
