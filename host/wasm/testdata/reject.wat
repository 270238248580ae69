;; Rejects its setting amount.
(module
  (import "hookhost" "reject" (func $reject (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64)
    i64.const 1)
  (func (export "hookhost_configure") (result i32) (call $reject (i32.const 0) (i32.const 6) (i32.const 16) (i32.const 17)))
  (data (i32.const 0) "amount")
  (data (i32.const 16) "must be a number."))
