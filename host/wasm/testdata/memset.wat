;; Fills all of its memory, again and again.
(module
  (memory (export "memory") 64)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64)
    (if (i32.ne (local.get $hook) (i32.const 7)) (then (return (i64.const 1))))
    (loop $again
      (memory.fill (i32.const 0) (i32.const 7) (i32.const 0x400000))
      (br $again))
    i64.const 1))
