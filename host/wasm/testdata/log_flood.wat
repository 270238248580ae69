;; Writes 1 GB of output, and another one as log.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "hookhost" "log" (func $log (param i32 i32 i32) (result i32)))
  (memory (export "memory") 32)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64) (local $i i32)
    (if (i32.ne (local.get $hook) (i32.const 7)) (then (return (i64.const 1))))
    (memory.fill (i32.const 0x10000) (i32.const 0x78) (i32.const 0x100000))
    (i32.store (i32.const 0) (i32.const 0x10000))
    (i32.store (i32.const 4) (i32.const 0x100000))
    (loop $print
      (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))
      (local.set $i (i32.add (local.get $i) (i32.load (i32.const 16))))
      (br_if $print (i32.lt_u (local.get $i) (i32.const 0x40000000))))
    (local.set $i (i32.const 1024))
    (loop $log
      (drop (call $log (i32.const 2) (i32.const 0x10000) (i32.const 0x100000)))
      (br_if $log (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
    i64.const 1))
