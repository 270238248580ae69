;; Has functions read from and write to the same bytes, and cannot decide unless they read what was there before.
(module
  (import "hookhost" "get" (func $get (param i32 i32 i32 i32) (result i32)))
  (import "hookhost_kv" "get" (func $kv (param i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64)
    (if (i32.ne (local.get $hook) (i32.const 7)) (then (return (i64.const 1))))
    ;; the pointer "/a" is read from where its value is written to
    (i32.store16 (i32.const 0) (i32.const 0x612f))
    (if (i32.ne (i32.const 18) (call $get (i32.const 0) (i32.const 2) (i32.const 0) (i32.const 64))) (then (return (i64.const 5))))
    (if (i32.ne (i32.const 0x22) (i32.load8_u (i32.const 0))) (then (return (i64.const 5))))
    ;; the name and the key lie in the buffer
    (if (i32.ne (i32.const -1) (call $kv (i32.const 100) (i32.const 5) (i32.const 102) (i32.const 3) (i32.const 96) (i32.const 64))) (then (return (i64.const 5))))
    i64.const 1)
  (data (i32.const 100) "cache"))
