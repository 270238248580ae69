;; Makes room for the first leaf as a whole, and traps where there is none.
(module
  (import "hookhost" "leaf" (func $leaf (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64)
    (if (i32.ne (local.get $hook) (i32.const 7)) (then (return (i64.const 1))))
    (drop (call $leaf (i32.const 0) (i32.const 0) (i32.const 16)))
    (if (i32.eq (i32.const -1) (memory.grow (i32.shr_u (i32.load (i32.const 12)) (i32.const 16)))) (then unreachable))
    i64.const 1))
