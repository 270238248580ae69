;; Reads the agent's name a hundred times.
(module
  (import "hookhost" "text" (func $text (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64)
    (local $left i32)
    (local.set $left (i32.const 100))
    (loop $again
      (drop (call $text (i32.const 5) (i32.const 0) (i32.const 4000)))
      (br_if $again (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
    i64.const 1))
