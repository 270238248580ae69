;; Functions that go on for long, in every shape: fuel_* end after n rounds of
;; something, depth_* after n calls within each other, and short_* use much of
;; neither. All of them end by themselves, so that a test shows what stops them.
(module
  (type $n (func (param i32)))
  (type $pair (func (param i32) (result i32 i64)))
  (table funcref (elem $fuel_table_calls $depth_table $depth_tail_table $fuel_tail_table $fan_table))
  (global $count (mut i32) (i32.const 0))

  ;; loops
  (func (export "fuel_loop") (param i32)
    (loop $l (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "fuel_loop_in_block") (param i32)
    (block $out
      (loop $l
        (br_if $out (i32.eqz (local.get 0)))
        (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
        (br $l))))
  (func (export "fuel_loop_in_then") (param i32)
    (if (local.get 0) (then
      (loop $l (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))))
  (func (export "fuel_loop_in_else") (param i32)
    (if (i32.eqz (local.get 0)) (then) (else
      (loop $l (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))))
  (func (export "fuel_loop_from_then") (param i32)
    (loop $l
      (if (local.get 0) (then
        (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
        (br $l)))))
  (func (export "fuel_loop_values") (param i32) (result i32)
    (i32.const 0) (local.get 0)
    (loop $l (param i32 i32) (result i32)
      (local.set 0 (i32.sub (i32.const 1)))
      (i32.add (local.get 0))
      (local.get 0)
      (br_if $l (local.get 0))
      (drop)))
  (func (export "fuel_br_table_back") (param i32)
    (loop $l
      (block $out
        (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
        (br_table $out $l (i32.ne (local.get 0) (i32.const 0))))))
  (func (export "fuel_br_table_out") (param i32)
    (block $out
      (loop $l
        (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
        (block $on (br_table $out $on (i32.ne (local.get 0) (i32.const 0))))
        (br $l))))
  (func (export "fuel_return_in_loop") (param i32)
    (loop $l
      (if (i32.eqz (local.get 0)) (then (return)))
      (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
      (br $l))
    (unreachable))
  (func (export "fuel_inner_loop") (param i32)
    (loop $outer
      (loop $inner (br_if $inner (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))
  (func (export "fuel_outer_loop") (param i32)
    (loop $outer
      (loop $inner)
      (br_if $outer (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "fuel_loop_skips_inner") (param i32)
    (loop $outer
      (if (i32.eqz (local.get 0)) (then (loop $inner (br_if $inner (local.get 0)))))
      (br_if $outer (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "fuel_dispatch") (param i32) ;; as Go has it: any block jumps to any other
    (local $pc i32)
    (loop $next
      (block $c (block $b (block $a (br_table $a $b $c (local.get $pc))))
        ;; $a and $b
        (local.set $pc (i32.xor (local.get $pc) (i32.const 1)))
        (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
        (br_if $next (local.get 0))
        (local.set $pc (i32.const 2))
        (br $next))))
  (func (export "fuel_loop_behind_code") (param i32)
    (if (i32.lt_s (local.get 0) (i32.const 0)) (then (return)))
    (block
      (loop $l (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))
  (func (export "fuel_loop_in_dead_code_too") (param i32)
    (loop $l (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (return)
    (loop $dead (br $dead)))
  (func $leaf (param i32) (result i32) (i32.sub (local.get 0) (i32.const 1)))
  (func (export "fuel_loop_calls_leaf") (param i32)
    (loop $l (br_if $l (local.tee 0 (call $leaf (local.get 0))))))

  ;; calls without a loop: $fan_k calls 2^k times
  (func $fan_0 (global.set $count (i32.add (global.get $count) (i32.const 1))))
  (func $fan_2 (call $fan_0) (call $fan_0) (call $fan_0) (call $fan_0))
  (func $fan_4 (call $fan_2) (call $fan_2) (call $fan_2) (call $fan_2))
  (func $fan_6 (call $fan_4) (call $fan_4) (call $fan_4) (call $fan_4))
  (func $fan_8 (call $fan_6) (call $fan_6) (call $fan_6) (call $fan_6))
  (func $fan_10 (call $fan_8) (call $fan_8) (call $fan_8) (call $fan_8))
  (func $fan_12 (call $fan_10) (call $fan_10) (call $fan_10) (call $fan_10))
  (func $fan_14 (call $fan_12) (call $fan_12) (call $fan_12) (call $fan_12))
  (func $fan_16 (call $fan_14) (call $fan_14) (call $fan_14) (call $fan_14))
  (func (export "fuel_fan_out") (param i32)
    (call $fan_16) (call $fan_16) (call $fan_16) (call $fan_16))
  (func $fan_table (param i32)
    (if (i32.eqz (local.get 0)) (then (return)))
    (local.set 0 (i32.shr_u (local.get 0) (i32.const 1)))
    (call_indirect (type $n) (local.get 0) (i32.const 4))
    (call_indirect (type $n) (local.get 0) (i32.const 4)))
  (func (export "fuel_fan_out_table") (param i32) (call $fan_table (local.get 0)))
  (func $fib (param i32) (result i32)
    (if (result i32) (i32.lt_u (local.get 0) (i32.const 2)) (then (local.get 0))
      (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1)))
                     (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
  (func (export "fuel_recursion") (param i32) (drop (call $fib (i32.const 24))))
  (func $fan_even (param i32)
    (if (local.get 0) (then
      (call $fan_odd (i32.sub (local.get 0) (i32.const 1)))
      (call $fan_odd (i32.sub (local.get 0) (i32.const 1))))))
  (func $fan_odd (param i32)
    (if (local.get 0) (then
      (call $fan_even (i32.sub (local.get 0) (i32.const 1)))
      (call $fan_even (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "fuel_mutual_recursion") (param i32) (call $fan_even (i32.const 16)))
  (func $fuel_table_calls (param i32))
  (func (export "fuel_calls_of_empty_functions") (param i32)
    (loop $l
      (call_indirect (type $n) (local.get 0) (i32.const 0))
      (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))

  ;; tail calls
  (func $fuel_tail (export "fuel_tail_call") (param i32)
    (if (local.get 0) (then (return_call $fuel_tail (i32.sub (local.get 0) (i32.const 1))))))
  (func $fuel_tail_even (export "fuel_tail_mutual") (param i32)
    (if (local.get 0) (then (return_call $fuel_tail_odd (i32.sub (local.get 0) (i32.const 1))))))
  (func $fuel_tail_odd (param i32)
    (if (local.get 0) (then (return_call $fuel_tail_even (i32.sub (local.get 0) (i32.const 1))))))
  (func $fuel_tail_table (export "fuel_tail_table") (param i32)
    (if (local.get 0) (then
      (return_call_indirect (type $n) (i32.sub (local.get 0) (i32.const 1)) (i32.const 3)))))

  ;; depth
  (func $depth_self (export "depth_self") (param i32)
    (if (local.get 0) (then (call $depth_self (i32.sub (local.get 0) (i32.const 1))))))
  (func $depth_even (export "depth_mutual") (param i32)
    (if (local.get 0) (then (call $depth_odd (i32.sub (local.get 0) (i32.const 1))))))
  (func $depth_odd (param i32)
    (if (local.get 0) (then (call $depth_even (i32.sub (local.get 0) (i32.const 1))))))
  (func $depth_table (export "depth_table") (param i32)
    (if (local.get 0) (then
      (call_indirect (type $n) (i32.sub (local.get 0) (i32.const 1)) (i32.const 1)))))
  (func $depth_values (export "depth_values") (param i32) (result i32 i64)
    (if (result i32 i64) (local.get 0)
      (then (call $depth_values (i32.sub (local.get 0) (i32.const 1))))
      (else (i32.const 1) (i64.const 2))))
  (func $depth_return (export "depth_return") (param i32) (result i32)
    (block (if (local.get 0) (then
      (return (i32.add (i32.const 1) (call $depth_return (i32.sub (local.get 0) (i32.const 1))))))))
    (i32.const 0))
  (func $depth_br (export "depth_br") (param i32) (result i32)
    (block
      (br_if 0 (i32.eqz (local.get 0)))
      (br 1 (i32.add (i32.const 1) (call $depth_br (i32.sub (local.get 0) (i32.const 1))))))
    (i32.const 0))
  (func $depth_br_table (export "depth_br_table") (param i32) (result i32)
    (block (result i32)
      (i32.const 7)
      (if (param i32) (result i32) (local.get 0)
        (then (i32.add (call $depth_br_table (i32.sub (local.get 0) (i32.const 1)))))
        (else (br_table 1 2 2 (i32.const 1))))))
  (func $depth_locals (export "depth_locals") (param i32)
    (local i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64)
    (if (local.get 0) (then (call $depth_locals (i32.sub (local.get 0) (i32.const 1))))))
  (func $depth_between (param i32)
    (if (local.get 0) (then (call $depth_through (i32.sub (local.get 0) (i32.const 1))))))
  (func $depth_through (export "depth_through") (param i32)
    (call $depth_between (local.get 0)))
  (func $depth_tail_table (param i32)
    (if (local.get 0) (then (call $depth_with_tail (i32.sub (local.get 0) (i32.const 1))))))
  (func $depth_with_tail (export "depth_with_tail") (param i32)
    (return_call_indirect (type $n) (local.get 0) (i32.const 2)))

  ;; much of neither
  (func (export "short_add") (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))
  (func (export "short_calls") (param i32) (result i32)
    (local i32)
    (local.set 1 (i32.const 100))
    (loop $l
      (drop (call $fib (i32.const 3)))
      (drop (call $depth_return (i32.const 5)))
      (drop (call $depth_br (i32.const 5)))
      (drop (call $depth_br_table (i32.const 5)))
      (call $depth_with_tail (i32.const 5))
      (drop (drop (call $depth_values (i32.const 5))))
      (br_if $l (local.tee 1 (i32.sub (local.get 1) (i32.const 1)))))
    (local.get 0))
)
