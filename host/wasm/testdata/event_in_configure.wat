;; Asks for the event in configure and refuses with the code.
(module
  (import "hookhost" "head" (func $head (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64)
    i64.const 1)
  (func (export "hookhost_configure") (result i32) (call $head (i32.const 0) (i32.const 112))))
