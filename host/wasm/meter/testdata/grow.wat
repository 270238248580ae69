;; A memory and a table that grow as far as the caller says.
(module
  (memory (export "memory") 1 10)
  (table $t 1 externref)
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "table_grow") (param i32) (result i32) (table.grow $t (ref.null extern) (local.get 0))))
