// Masks every run of digits in the leaves of an event, a request or a response.
#include "guest.h"

EXPORT("hookhost_abi_1") i64 abi(void) { return 1 << on_event | 1 << before_model | 1 << after_model; }

static byte text[4096];

static int digit(byte c) { return c >= '0' && c <= '9'; }

EXPORT("hookhost_call") i64 call(i32 hook) {
  i64 verdict = go_on;
  for (i32 leaf = 0;; leaf++) {
    i32 n = leaf_read(leaf, 0, text, sizeof text);
    if (n < 0) return verdict;
    if (n > (i32)sizeof text) return fail;
    for (i32 i = 0; i < n; i++) {
      if (!digit(text[i])) continue;
      i32 start = i;
      while (i < n && digit(text[i])) i++;
      if (leaf_splice(leaf, start, i, "[number]", 8) < 0) return fail;
      verdict = amend;
    }
  }
}
