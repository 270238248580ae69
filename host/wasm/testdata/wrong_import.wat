;; Imports head with one parameter too few.
(module
  (import "hookhost" "head" (func (param i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64)
    i64.const 1))
