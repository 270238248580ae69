// Loops as guests have them. Each runs once over a buffer of 4 KiB, or n times
// what it is named for, and returns something that depends on all of it.
#define EXPORT(name) __attribute__((export_name(#name)))

typedef unsigned char byte;
typedef unsigned int word;

static byte text[4096];
static byte table[16][256];

EXPORT(_initialize) void initialize(void) {
  for (word i = 0; i < sizeof text; i++) text[i] = "card 4111 1111 1111 1111, mail a.b@example.com; "[i % 48];
  for (word s = 0; s < 16; s++)
    for (word c = 0; c < 256; c++) table[s][c] = (s * 7 + c * 13) & 15;
}

EXPORT(scan) word scan(word n) {
  word found = 0;
  for (word i = 0; i < sizeof text; i++)
    if (text[i] == n) found = i;
  return found;
}

EXPORT(dfa) word dfa(word n) {
  byte state = n & 15;
  for (word i = 0; i < sizeof text; i++) state = table[state][text[i]];
  return state;
}

static word rotate(word x, word n) { return x >> n | x << (32 - n); }

EXPORT(hash) word hash(word n) {
  word a = n, b = 0xbb67ae85, c = 0x3c6ef372, d = 0xa54ff53a;
  for (word i = 0; i < sizeof text; i += 4) {
    word w = *(word *)(text + i);
    word s = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    word t = d + s + ((a & b) | (c & (a ^ b))) + w;
    d = c; c = b; b = a; a = t + rotate(t, 7);
  }
  return a ^ b ^ c ^ d;
}

EXPORT(fib) word fib(word n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

// Digits of card numbers are masked: runs of 13 to 19, with blanks between.
EXPORT(mask) word mask(word n) {
  static byte out[sizeof text];
  word masked = 0;
  for (word i = 0; i < sizeof text;) {
    word digits = 0, end = i, sum = n;
    for (word j = i; j < sizeof text; j++) {
      if (text[j] >= '0' && text[j] <= '9') { digits++; sum += text[j]; end = j + 1; }
      else if (text[j] != ' ' || digits == 0) break;
    }
    if (digits >= 13 && digits <= 19) {
      for (word j = i; j < end; j++) out[j] = text[j] == ' ' ? ' ' : '*';
      masked += digits + (sum & 1);
      i = end;
    } else {
      out[i] = text[i];
      i++;
    }
  }
  return masked;
}

static int compare(const word *a, const word *b) { return (*a > *b) - (*a < *b); }
static int (*volatile order)(const word *, const word *) = compare;

// Insertion sort of n numbers with a comparison through a table.
EXPORT(sort) word sort(word n) {
  static word numbers[256];
  word seed = 1;
  if (n > 256) n = 256;
  for (word i = 0; i < n; i++) numbers[i] = seed = seed * 1664525 + 1013904223;
  for (word i = 1; i < n; i++)
    for (word j = i; j > 0 && order(numbers + j - 1, numbers + j) > 0; j--) {
      word t = numbers[j]; numbers[j] = numbers[j - 1]; numbers[j - 1] = t;
    }
  return numbers[0];
}

// Short strings moved about, as formatting does.
EXPORT(copies) word copies(word n) {
  static byte out[8192];
  word at = 0;
  for (word i = 0; i + 16 < sizeof text; i += 1 + (n & 15)) {
    word length = text[i] & 15;
    __builtin_memcpy(out + at, text + i, length);
    at = (at + length) & 4095;
  }
  return at;
}
