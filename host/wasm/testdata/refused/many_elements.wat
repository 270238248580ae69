(module
  ;; Elements are memory beside the memory.
  (memory (export "memory") 1)
  (func (export "hookhost_abi_1") (result i64) (i64.const -1))
  (func (export "hookhost_call") (param i32) (result i64) (i64.const 1))
  (table 70000 funcref)
  (table 70000 funcref)
)
