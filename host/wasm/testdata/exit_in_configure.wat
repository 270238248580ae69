;; Exits with code 5 in configure.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_configure") (result i32) (call $exit (i32.const 5)) i32.const 0)
  (func (export "hookhost_call") (param $hook i32) (result i64) i64.const 1))
