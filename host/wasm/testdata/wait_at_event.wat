;; Waits at on_event, where nobody may, and continues elsewhere.
(module
  (memory (export "memory") 1)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64)
    (if (result i64) (i32.eq (local.get $hook) (i32.const 4)) (then (i64.const 0x3e800000004)) (else (i64.const 1)))))
