// What the C fixtures use of the ABI.
typedef int i32;
typedef long long i64;
typedef unsigned char byte;

#define IMPORT(module, name) __attribute__((import_module(module), import_name(name)))
#define EXPORT(name) __attribute__((export_name(name)))

enum { on_event = 4, before_model = 7, after_model = 9 };
enum { go_on = 1, amend = 2, respond = 3, fail = 5 };

IMPORT("hookhost", "leaf_read") i32 leaf_read(i32 index, i32 offset, byte *buf, i32 cap);
IMPORT("hookhost", "leaf_splice") i32 leaf_splice(i32 index, i32 start, i32 end, const char *text, i32 len);
IMPORT("hookhost", "refuse") i32 refuse(const char *code, i32 code_len, const char *text, i32 text_len, i64 retry_ms);
