;; A command, and nothing of the ABI.
(module
  (memory (export "memory") 1)
  (func (export "_start")))
