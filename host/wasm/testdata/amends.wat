;; Replaces the first byte of the first leaf at before_model.
(module
  (import "hookhost" "leaf_splice" (func $splice (param i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64)
    (if (i32.ne (local.get $hook) (i32.const 7)) (then (return (i64.const 1))))
    (drop (call $splice (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 1)))
    i64.const 2)
  (data (i32.const 0) "#"))
