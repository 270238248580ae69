;; Functions with names, behind an import.
(module
  (import "env" "imported" (func $imported))
  (func $inner (unreachable))
  (func $outer (export "outer") (call $imported) (call $inner) (call $outer)))
