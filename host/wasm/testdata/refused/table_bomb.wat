;; Grows its table until it gets no more.
(module
  (table $t 1 funcref)
  (memory (export "memory") 1)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64)
    (loop $again (br_if $again (i32.ne (table.grow $t (ref.null func) (i32.const 0x10000)) (i32.const -1))))
    i64.const 1))
