;; Has a table of 100 million elements to begin with.
(module
  (table 100000000 funcref)
  (memory (export "memory") 1)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64) i64.const 1))
