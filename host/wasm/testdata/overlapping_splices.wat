;; Replaces bytes 0-2 of the first leaf, and then those that overlap with them, and amends when it was told no.
(module
  (import "hookhost" "leaf_splice" (func $splice (param i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64)
    (if (i32.ne (local.get $hook) (i32.const 7)) (then (return (i64.const 1))))
    (drop (call $splice (i32.const 0) (i32.const 0) (i32.const 2) (i32.const 0) (i32.const 2)))
    (if (i32.ne (i32.const -4) (call $splice (i32.const 0) (i32.const 1) (i32.const 3) (i32.const 0) (i32.const 2))) (then (return (i64.const 5))))
    (if (i32.ne (i32.const -4) (call $splice (i32.const 0) (i32.const 0) (i32.const 2) (i32.const 0) (i32.const 2))) (then (return (i64.const 5))))
    (if (i32.ne (i32.const -4) (call $splice (i32.const 0) (i32.const 1) (i32.const 1) (i32.const 0) (i32.const 2))) (then (return (i64.const 5))))
    i64.const 2)
  (data (i32.const 0) "##"))
