;; Empties the one entry of its table, and so answers once only: continue, and a trap after that.
(module
  (memory (export "memory") 1)
  (table 1 funcref)
  (elem (i32.const 0) $answer)
  (type $answer (func (result i64)))
  (func $answer (result i64) i64.const 1)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64)
    (call_indirect (type $answer) (i32.const 0))
    (table.set 0 (i32.const 0) (ref.null func))))
