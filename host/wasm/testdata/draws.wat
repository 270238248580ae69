;; Keeps eight random bytes and the time of the monotonic clock under the key k of the operation.
(module
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
  (import "hookhost" "state_set" (func $state_set (param i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64)
    (if (i32.or
          (i32.or
            (call $random_get (i32.const 0) (i32.const 8))
            (call $clock_time_get (i32.const 1) (i64.const 1) (i32.const 8)))
          (call $state_set (i32.const 1) (i32.const 100) (i32.const 1) (i32.const 0) (i32.const 16)))
      (then unreachable))
    i64.const 1)
  (data (i32.const 100) "k"))
