// The guest in C: what it does to the first text of a request, the key `task`
// of its configuration says.
#include <string.h>

#include "hookhost.h"
#include "tasks.h"

static const struct task {
  const char *name;
  int64_t (*perform)(const char *, int32_t);
} tasks[] = {{"verdict", verdict}, {"json", json}, {"regexp", regexp}, {"mask", mask}};

static const struct task *chosen;
static char text[64 << 10];

EXPORT(hookhost_abi_1) int64_t abi(void) { return 1 << before_model; }

EXPORT(hookhost_configure) int32_t configure(void) {
  char name[16];
  int32_t n = config("task", 4, name, sizeof name - 1);
  for (size_t i = 0; n >= 0 && n < (int32_t)sizeof name && i < sizeof tasks / sizeof *tasks; i++)
    if ((size_t)n == strlen(tasks[i].name) && !memcmp(name, tasks[i].name, n)) chosen = &tasks[i];
  if (chosen && !regexp_compile()) return 0;
  static const char why[] = "no such task";
  reject("task", 4, why, sizeof why - 1);
  return 1;
}

EXPORT(hookhost_call) int64_t call(int32_t hook) {
  (void)hook;
  int32_t n = leaf_read(0, 0, text, sizeof text - 1);
  if (n < 0 || n >= (int32_t)sizeof text) return fail;
  text[n] = 0;
  return chosen->perform(text, n);
}

int64_t say(const char *answer_text) { return answer(1, answer_text, strlen(answer_text)) < 0 ? fail : respond; }
