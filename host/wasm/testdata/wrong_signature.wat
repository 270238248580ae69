;; hookhost_call takes an i64.
(module
  (memory (export "memory") 1)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param i64) (result i64) i64.const 1))
