// Adds up the orders of a document that are paid.
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tasks.h"

// place is what a value is in the document.
enum place { other, root, orders, order, items, item };

static const char *at;
static int64_t paid, cents; // of the document
static bool is_paid;        // the order that is read
static int64_t order_cents, quantity, item_cents;

static bool value(enum place, int depth);

static void space(void) {
  while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r') at++;
}

static bool take(char c) {
  space();
  if (*at != c) return false;
  at++;
  return true;
}

static bool word(const char *w) {
  size_t n = strlen(w);
  if (strncmp(at, w, n)) return false;
  at += n;
  return true;
}

static bool hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

static bool string(const char **start, size_t *length) {
  if (!take('"')) return false;
  *start = at;
  for (; *at != '"'; at++) {
    if ((unsigned char)*at < 0x20) return false;
    if (*at != '\\') continue;
    at++;
    if (*at == 'u') {
      for (int i = 0; i < 4; i++)
        if (!hex(*++at)) return false;
    } else if (!*at || !strchr("\"\\/bfnrt", *at)) {
      return false;
    }
  }
  *length = at++ - *start;
  return true;
}

static bool digits(int64_t *n) {
  const char *start = at;
  for (; *at >= '0' && *at <= '9'; at++) *n = *n * 10 + (*at - '0');
  return at > start;
}

static bool number(int64_t *n) {
  bool minus = word("-");
  int64_t rest = 0;
  *n = 0;
  if (!word("0") && !digits(n)) return false;
  if (minus) *n = -*n;
  if (word(".") && !digits(&rest)) return false;
  if (*at == 'e' || *at == 'E') {
    at++;
    if (*at == '+' || *at == '-') at++;
    return digits(&rest);
  }
  return true;
}

static bool is(const char *key, size_t length, const char *name) {
  return length == strlen(name) && !memcmp(key, name, length);
}

static bool member(enum place p, const char *key, size_t n, int depth) {
  if (p == root && is(key, n, "orders")) return value(orders, depth);
  if (p == order && is(key, n, "items")) return value(items, depth);
  space();
  if (p == order && is(key, n, "paid") && (*at == 't' || *at == 'f')) is_paid = *at == 't';
  if (p == item && is(key, n, "quantity")) return number(&quantity);
  if (p == item && is(key, n, "cents")) return number(&item_cents);
  return value(other, depth);
}

static bool object(enum place p, int depth) {
  if (p == order) is_paid = false, order_cents = 0;
  if (p == item) quantity = item_cents = 0;
  if (take('}')) return true;
  do {
    const char *key;
    size_t n;
    if (!string(&key, &n) || !take(':') || !member(p, key, n, depth)) return false;
  } while (take(','));
  if (p == item) order_cents += quantity * item_cents;
  return take('}');
}

static bool array(enum place p, int depth) {
  if (take(']')) return true;
  do {
    if (!value(p == orders ? order : p == items ? item : other, depth)) return false;
    if (p == orders && is_paid) paid++, cents += order_cents;
  } while (take(','));
  return take(']');
}

static bool value(enum place p, int depth) {
  if (depth == 0) return false;
  const char *start;
  size_t length;
  int64_t n;
  space();
  switch (*at) {
  case '{': at++; return object(p, depth - 1);
  case '[': at++; return array(p, depth - 1);
  case '"': return string(&start, &length);
  case 't': return word("true");
  case 'f': return word("false");
  case 'n': return word("null");
  default: return number(&n);
  }
}

int64_t json(const char *text, int32_t length) {
  char result[64];
  at = text;
  paid = cents = 0;
  is_paid = false;
  bool ok = value(root, 100);
  space();
  if (!ok || at != text + length) return say("malformed");
  snprintf(result, sizeof result, "%lld paid, %lld cents", (long long)paid, (long long)cents);
  return say(result);
}
