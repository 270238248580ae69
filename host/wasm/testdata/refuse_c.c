// Refuses every model call.
#include "guest.h"

EXPORT("hookhost_abi_1") i64 abi(void) { return 1 << before_model; }

EXPORT("hookhost_call") i64 call(i32 hook) {
  if (refuse("policy.no", 9, "Not today.", 10, 1500) < 0) return fail;
  return respond;
}
