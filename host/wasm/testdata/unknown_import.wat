;; Imports a function that the ABI does not have.
(module
  (import "hookhost" "open_file" (func (param i32 i32) (result i32)))
  (import "env" "now" (func (result i64)))
  (memory (export "memory") 1)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64)
    i64.const 1))
