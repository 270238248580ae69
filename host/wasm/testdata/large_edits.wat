;; Drafts an edit of the largest JSON that fits, for ever.
(module
  (import "hookhost" "edit" (func $edit (param i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 49)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64)
    (if (i32.ne (local.get $hook) (i32.const 7)) (then (return (i64.const 1))))
    (memory.fill (i32.const 0) (i32.const 0x20) (i32.const 0x300000))
    (i32.store8 (i32.const 0x2fffff) (i32.const 0x30))
    (loop $again (drop (call $edit (i32.const 1) (i32.const 0x300000) (i32.const 2) (i32.const 0) (i32.const 0x300000))) (br $again))
    i64.const 1)
  (data (i32.const 0x300000) "/a"))
