;; Requires a feature that does not exist.
(module
  (memory (export "memory") 1)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x0000000100007ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64)
    i64.const 1))
