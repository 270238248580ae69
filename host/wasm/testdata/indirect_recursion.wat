;; Two functions call each other through a table without an end.
(module
  (memory (export "memory") 1)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64)
    (if (i32.ne (local.get $hook) (i32.const 7)) (then (return (i64.const 1))))
    (call $ping (i64.const 0)))
  (type $step (func (param i64) (result i64)))
  (table 2 2 funcref)
  (elem (i32.const 0) $ping $pong)
  (func $ping (type $step) (i64.add (i64.const 1) (call_indirect (type $step) (local.get 0) (i32.const 1))))
  (func $pong (type $step) (i64.add (i64.const 1) (call_indirect (type $step) (local.get 0) (i32.const 0)))))
