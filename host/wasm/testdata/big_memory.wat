;; Begins with 64 MiB.
(module
  (memory (export "memory") 1024)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64)
    i64.const 1))
