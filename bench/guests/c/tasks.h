// Each task looks at the zero-terminated text of leaf 0 and gives a verdict.
#include <stdint.h>

int64_t verdict(const char *text, int32_t length);
int64_t json(const char *text, int32_t length);
int64_t regexp(const char *text, int32_t length);
int64_t mask(const char *text, int32_t length);

int regexp_compile(void); // 0 if it worked
int64_t say(const char *answer_text);
