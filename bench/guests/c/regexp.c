// Lists all numbers of cases, with the matcher of the C library.
#include <regex.h>
#include <string.h>

#include "tasks.h"

static regex_t pattern;

int regexp_compile(void) { return regcomp(&pattern, "[A-Z]{2,3}-[0-9]{4,8}", REG_EXTENDED); }

int64_t regexp(const char *text, int32_t length) {
  static char found[64 << 10];
  (void)length;
  size_t n = 0;
  regmatch_t m;
  for (; regexec(&pattern, text, 1, &m, 0) == 0; text += m.rm_eo) {
    if (n > 0) found[n++] = ',';
    memcpy(found + n, text + m.rm_so, m.rm_eo - m.rm_so);
    n += m.rm_eo - m.rm_so;
  }
  found[n] = 0;
  return say(found);
}
