;; Asks the store for ever.
(module
  (import "hookhost_kv" "get" (func $kv (param i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64)
    (if (i32.ne (local.get $hook) (i32.const 7)) (then (return (i64.const 1))))
    (loop $again
      (drop (call $kv (i32.const 0) (i32.const 5) (i32.const 5) (i32.const 3) (i32.const 64) (i32.const 64)))
      (br $again))
    i64.const 1)
  (data (i32.const 0) "cachekey"))
