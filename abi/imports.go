package abi

// Type is a core Wasm value type.
type Type byte

// The two types that cross the border.
const (
	I32 Type = 0x7f
	I64 Type = 0x7e
)

// Import is one function that a guest can import. Each returns an i32: a
// length or OK, or a Code. A pointer is the offset of a buffer in the guest's
// memory and is followed by the buffer's length or capacity.
type Import struct {
	Module, Name string
	Params       []Type
	Grant        string // the family that has to be granted; empty for none
	Hooks        HookSet
}

const configureOnly HookSet = 1 << Configure

// The sets of hooks at which functions can be called; anywhere else they
// return NotAtThisHook. Configure comes before there is an event.
const (
	anyHook   = AllHooks | configureOnly
	withEvent = AllHooks
)

// Imports lists every function of the ABI. The host builds its modules, its
// checks at load and its messages from this table.
func Imports() []Import {
	const p, l = I32, I32 // pointer, length
	return []Import{
		{"hookhost", "head", []Type{p, l}, "", withEvent},
		{"hookhost", "text", []Type{I32, p, l}, "", anyHook},
		{"hookhost", "leaf", []Type{I32, p, l}, "", withEvent},
		{"hookhost", "leaf_path", []Type{I32, p, l}, "", withEvent},
		{"hookhost", "leaf_read", []Type{I32, I32, p, l}, "", withEvent},
		{"hookhost", "leaf_splice", []Type{I32, I32, I32, p, l}, "", withEvent},
		{"hookhost", "leaf_hold", []Type{I32, I32}, "", SetOf(OnModelChunk)},
		{"hookhost", "get", []Type{p, l, p, l}, "", withEvent},
		{"hookhost", "edit", []Type{I32, p, l, p, l}, "", withEvent},
		{"hookhost", "answer", []Type{I32, p, l}, "", withEvent},
		{"hookhost", "refuse", []Type{p, l, p, l, I64}, "", withEvent},
		{"hookhost", "state_get", []Type{I32, p, l, p, l}, "", withEvent},
		{"hookhost", "state_set", []Type{I32, p, l, p, l}, "", withEvent},
		{"hookhost", "state_del", []Type{I32, p, l}, "", withEvent},
		{"hookhost", "state_add", []Type{I32, p, l, I64, p, l}, "", withEvent},
		{"hookhost", "config", []Type{p, l, p, l}, "", anyHook},
		{"hookhost", "config_key", []Type{I32, p, l}, "", anyHook},
		{"hookhost", "note", []Type{p, l, p, l}, "", withEvent},
		{"hookhost", "log", []Type{I32, p, l}, "", anyHook},
		{"hookhost", "reject", []Type{p, l, p, l}, "", configureOnly},

		{"hookhost_limit", "admit", []Type{p, l, p, l}, "limit", withEvent},
		{"hookhost_limit", "take", []Type{p, l, I64, p, l}, "limit", withEvent},
		{"hookhost_limit", "settle", []Type{I64, I64}, "limit", withEvent},
		{"hookhost_limit", "release", []Type{I64}, "limit", withEvent},

		{"hookhost_usage", "record", []Type{}, "usage", withEvent},
		{"hookhost_usage", "add", []Type{p, l, I64}, "usage", withEvent},
		{"hookhost_usage", "sum", []Type{p, l, p, l}, "usage", withEvent},

		{"hookhost_kv", "get", []Type{p, l, p, l, p, l}, "kv", withEvent},
		{"hookhost_kv", "put", []Type{p, l, p, l, p, l, I64}, "kv", withEvent},

		{"hookhost_claim", "claim", []Type{p, l, p, l, I64, p, l}, "claim", withEvent},
		{"hookhost_claim", "renew", []Type{p, l, p, l, I64, I64}, "claim", withEvent},
		{"hookhost_claim", "end", []Type{p, l, p, l, I64, p, l, I64}, "claim", withEvent},
		{"hookhost_claim", "result", []Type{p, l, p, l, p, l}, "claim", withEvent},

		{"hookhost_secret", "hmac_sha256", []Type{p, l, p, l, p, l}, "secret", anyHook},
	}
}

// The guest's exports.
const (
	ExportABI        = "hookhost_abi_1"     // () -> i64: hooks wanted in bits 0-31, features required in 32-63
	ExportCall       = "hookhost_call"      // (hook i32) -> i64, a packed verdict
	ExportConfigure  = "hookhost_configure" // () -> i32, optional: 0, or anything else to refuse
	ExportInitialize = "_initialize"        // () -> (), optional
	ExportMemory     = "memory"
)
