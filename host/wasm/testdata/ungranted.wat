;; Imports limits and claims.
(module
  (import "hookhost_limit" "take" (func (param i32 i32 i64 i32 i32) (result i32)))
  (import "hookhost_claim" "renew" (func (param i32 i32 i32 i32 i64 i64) (result i32)))
  (memory (export "memory") 1)
  (func (export "hookhost_abi_1") (result i64) i64.const 0x7ffe)
  (func (export "hookhost_call") (param $hook i32) (result i64)
    i64.const 1))
