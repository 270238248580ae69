;; A module with nothing of the ABI.
(module
  (func (export "hello")))
