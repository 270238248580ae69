// What the guest in C uses of the ABI.
#include <stddef.h>
#include <stdint.h>

#define IMPORT(name) __attribute__((import_module("hookhost"), import_name(#name)))
#define EXPORT(name) __attribute__((export_name(#name)))

enum { before_model = 7 };
enum { go_on = 1, amend = 2, respond = 3, fail = 5 };

IMPORT(leaf_read) int32_t leaf_read(int32_t index, int32_t offset, char *buf, int32_t cap);
IMPORT(leaf_splice) int32_t leaf_splice(int32_t index, int32_t start, int32_t end, const char *text, int32_t len);
IMPORT(answer) int32_t answer(int32_t kind, const char *value, int32_t len);
IMPORT(refuse) int32_t refuse(const char *code, int32_t code_len, const char *text, int32_t len, int64_t retry_ms);
IMPORT(config) int32_t config(const char *key, int32_t len, char *buf, int32_t cap);
IMPORT(reject) int32_t reject(const char *key, int32_t len, const char *text, int32_t text_len);
