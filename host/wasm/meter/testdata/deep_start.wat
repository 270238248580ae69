;; A start function that calls itself for long.
(module
  (global $n (mut i32) (i32.const 10000))
  (func $start
    (global.set $n (i32.sub (global.get $n) (i32.const 1)))
    (if (global.get $n) (then (call $start))))
  (start $start))
