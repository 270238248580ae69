;; Prints a line with an escape character in it, and logs one.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "hookhost" "log" (func $log (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64)
    (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 64)))
    (drop (call $log (i32.const 3) (i32.const 48) (i32.const 6)))
    i64.const 1)
  (data (i32.const 0) "\10\00\00\00\0c\00\00\00")
  (data (i32.const 16) "red \1b[31mhot\0a")
  (data (i32.const 48) "logged"))
