;; Exits with code 0 where the agent is called bye.
(module
  (import "hookhost" "text" (func $text (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64)
    (if (i32.ne (local.get $hook) (i32.const 7)) (then (return (i64.const 1))))
    (drop (call $text (i32.const 5) (i32.const 0) (i32.const 64)))
    (if (i32.eq (i32.load8_u (i32.const 0)) (i32.const 0x62)) (then (call $exit (i32.const 0))))
    i64.const 1))
