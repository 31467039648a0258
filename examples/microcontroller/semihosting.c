#include "semihosting.h"

enum { OPEN = 0x01, CLOSE = 0x02, WRITE0 = 0x04, WRITE = 0x05, READ = 0x06, EXIT_EXTENDED = 0x20 };
enum { MODE_READ = 1, MODE_WRITE = 5 }; /* rb, wb */
enum { APPLICATION_EXIT = 0x20026 };

static uint32_t call(uint32_t operation, const void *argument) {
  register uint32_t r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

void print(const char *text) { call(WRITE0, text); }

void print_number(uint32_t number) {
  char digits[11];
  char *first = digits + 10;
  *first = 0;
  do *--first = (char)('0' + number % 10);
  while (number /= 10);
  print(first);
}

void print_float(float number) {
  uint32_t millionths, digit;
  if (number != number || number >= 4000.0f || number <= -4000.0f) {
    print(number != number ? "nan" : number > 0 ? "large" : "-large");
    return;
  }
  if (number < 0) print("-"), number = -number;
  millionths = (uint32_t)(number * 1000000.0f + 0.5f);
  print_number(millionths / 1000000);
  print(".");
  for (digit = 100000; digit; digit /= 10) print_number(millionths / digit % 10);
}

static uint32_t length(const char *text) {
  uint32_t n = 0;
  while (text[n]) ++n;
  return n;
}

static uint32_t transfer(const char *name, uint32_t mode, uint32_t operation, uintptr_t memory, uint32_t bytes) {
  const uintptr_t opening[3] = {(uintptr_t)name, mode, length(name)};
  const uint32_t file = call(OPEN, opening);
  const uintptr_t moving[3] = {file, memory, bytes};
  const uintptr_t closing[1] = {file};
  uint32_t left;
  if (file == UINT32_MAX) return bytes;
  left = call(operation, moving);
  call(CLOSE, closing);
  return left;
}

int read_file(const char *name, void *memory, uint32_t bytes) {
  return transfer(name, MODE_READ, READ, (uintptr_t)memory, bytes) == 0;
}

int write_file(const char *name, const void *memory, uint32_t bytes) {
  return transfer(name, MODE_WRITE, WRITE, (uintptr_t)memory, bytes) == 0;
}

void finish(int status) {
  const uintptr_t block[2] = {APPLICATION_EXIT, (uintptr_t)status};
  call(EXIT_EXTENDED, block);
  for (;;) {
  }
}
