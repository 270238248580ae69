package guest

import "github.com/hookhost/hookhost/abi"

//go:wasmexport hookhost_abi_1
func exportABI() int64 { return int64(registered.abi()) }

//go:wasmexport hookhost_call
func exportCall(hook int32) int64 { return int64(registered.call(border{}, abi.Hook(hook))) }

//go:wasmexport hookhost_configure
func exportConfigure() int32 {
	result := registered.configure(border{})
	warm()
	return result
}
