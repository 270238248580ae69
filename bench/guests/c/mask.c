// Masks runs of 13 to 19 digits, in groups with one space or hyphen between
// them, that pass Luhn's check.
#include "hookhost.h"
#include "tasks.h"

static int digit(char c) { return c >= '0' && c <= '9'; }

static int luhn(const char *digits, int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) {
    int d = digits[i] - '0';
    if ((n - i) % 2 == 0 && (d *= 2) > 9) d -= 9;
    sum += d;
  }
  return sum % 10 == 0;
}

int64_t mask(const char *text, int32_t length) {
  int64_t verdict = go_on;
  for (int32_t at = 0; at < length; at++) {
    if (!digit(text[at])) continue;
    char digits[19];
    int n = 0;
    int32_t start = at;
    for (; at < length; at++) {
      if (digit(text[at])) {
        if (n < (int)sizeof digits) digits[n] = text[at];
        n++;
      } else if (!((text[at] == ' ' || text[at] == '-') && digit(text[at + 1]))) {
        break;
      }
    }
    if (n < 13 || n > (int)sizeof digits || !luhn(digits, n)) continue;
    if (leaf_splice(0, start, at, "[card]", 6) < 0) return fail;
    verdict = amend;
  }
  return verdict;
}
