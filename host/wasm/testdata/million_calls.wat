;; Asks the host for its head a million times.
(module
  (import "hookhost" "head" (func $head (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64) (local $i i32)
    (if (i32.ne (local.get $hook) (i32.const 7)) (then (return (i64.const 1))))
    (loop $again
      (drop (call $head (i32.const 0) (i32.const 112)))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 1000000))))
    i64.const 1))
