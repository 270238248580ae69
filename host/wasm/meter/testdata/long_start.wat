;; A start function that goes on for long, behind an active data segment.
(module
  (memory (export "memory") 1)
  (data (i32.const 8) "there")
  (func $start (local i32)
    (local.set 0 (i32.const 1000000))
    (loop $l (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
  (start $start))
