;; Lets fuel look cheap, by a function that is charged for bytes that are not
;; there, and then does what takes long for its fuel, for ever.
(module
  (import "hookhost" "head" (func $head (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64)
    (local $n i32)
    (if (i32.ne (local.get $hook) (i32.const 7)) (then (return (i64.const 1))))
    (loop $teach
      (drop (call $head (i32.const 0) (i32.const -1)))
      (local.set $n (i32.add (local.get $n) (i32.const 1)))
      (br_if $teach (i32.lt_u (local.get $n) (i32.const 20))))
    (loop $again
      (drop (memory.grow (i32.const 0)))
      (br $again))
    i64.const 1))
