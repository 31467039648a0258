/* What runs before main on a Cortex-M: the vector table, the memory's first contents, and what a compiler may call. */
#include <stddef.h>
#include <stdint.h>

#include "semihosting.h"

int main(void);
void reset(void);
void *memcpy(void *restrict to, const void *restrict from, size_t count);
void *memmove(void *to, const void *from, size_t count);
void *memset(void *to, int value, size_t count);

/* Of the linker script. */
extern uint32_t stack_top, data_load, data_start, data_end, bss_start, bss_end;

/* Any fault ends the program: a real one would say where. */
static void fault(void) {
  print("fault\n");
  finish(1);
}

typedef void (*vector)(void);

/* The first word is the stack, then come reset, NMI and the faults. This program uses no interrupts. */
__attribute__((section(".vectors"), used)) static const vector vectors[16] = {
    (vector)&stack_top, reset, fault, fault, fault, fault, fault, fault,
};

void reset(void) {
  /* Coprocessor access control: full access to the floating point unit; then it is on for the next instruction. */
  *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20;
  __asm__ volatile("dsb\n\tisb" ::: "memory");
  memcpy(&data_start, &data_load, (size_t)((char *)&data_end - (char *)&data_start));
  memset(&bss_start, 0, (size_t)((char *)&bss_end - (char *)&bss_start));
  finish(main());
}

/* Loops that a compiler would replace by calls of these functions are kept as they are. */
#define AS_WRITTEN __attribute__((optimize("no-tree-loop-distribute-patterns"), used))

AS_WRITTEN void *memcpy(void *restrict to, const void *restrict from, size_t count) {
  unsigned char *out = to;
  const unsigned char *in = from;
  while (count--) *out++ = *in++;
  return to;
}

AS_WRITTEN void *memmove(void *to, const void *from, size_t count) {
  unsigned char *out = to;
  const unsigned char *in = from;
  if (out <= in)
    while (count--) *out++ = *in++;
  else
    while (count--) out[count] = in[count];
  return to;
}

AS_WRITTEN void *memset(void *to, int value, size_t count) {
  unsigned char *out = to;
  while (count--) *out++ = (unsigned char)value;
  return to;
}
