// Has ten thousand functions, and calls each of them.
#include "guest.h"

EXPORT("hookhost_abi_1") i64 abi(void) { return 0x7ffe; }

static volatile i32 sum;

// Four macros that do the same, since none expands within itself.
#define UNITS(F, n) F(n##0) F(n##1) F(n##2) F(n##3) F(n##4) F(n##5) F(n##6) F(n##7) F(n##8) F(n##9)
#define TENS(F, n) F(n##0) F(n##1) F(n##2) F(n##3) F(n##4) F(n##5) F(n##6) F(n##7) F(n##8) F(n##9)
#define HUNDREDS(F, n) F(n##0) F(n##1) F(n##2) F(n##3) F(n##4) F(n##5) F(n##6) F(n##7) F(n##8) F(n##9)
#define THOUSANDS(F, n) F(n##0) F(n##1) F(n##2) F(n##3) F(n##4) F(n##5) F(n##6) F(n##7) F(n##8) F(n##9)

#define DEFINE(n) __attribute__((noinline)) static void f##n(void) { sum += n; }
#define DEFINE_10(n) UNITS(DEFINE, n)
#define DEFINE_100(n) TENS(DEFINE_10, n)
#define DEFINE_1000(n) HUNDREDS(DEFINE_100, n)
THOUSANDS(DEFINE_1000, 1)

#define CALL(n) f##n();
#define CALL_10(n) UNITS(CALL, n)
#define CALL_100(n) TENS(CALL_10, n)
#define CALL_1000(n) HUNDREDS(CALL_100, n)

EXPORT("hookhost_call") i64 call(i32 hook) {
  THOUSANDS(CALL_1000, 1)
  return go_on;
}
