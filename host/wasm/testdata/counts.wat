;; Waits for as many milliseconds as it was called, which it keeps in its memory and in a global; those that do not agree are a trap.
(module
  (memory (export "memory") 1)
  (global $count (mut i32) (i32.const 0))
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64)
    (global.set $count (i32.add (global.get $count) (i32.const 1)))
    (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))
    (if (i32.ne (global.get $count) (i32.load (i32.const 0))) (then unreachable))
    (i64.or (i64.shl (i64.extend_i32_u (global.get $count)) (i64.const 32)) (i64.const 4))))
