/* Run the program `model` once: inputs come from the files input0, input1, ... of the host and outputs go to output0,
 * output1, ... An application has its sensor in the place of the one, and what it does in the place of the other. */
#include <stdint.h>

#include "model.h"
#include "semihosting.h"

#ifndef IO_BYTES
#define IO_BYTES (64 * 1024)
#endif

static _Alignas(MODEL_MEMORY_ALIGNMENT) unsigned char memory[MODEL_MEMORY_BYTES];
static _Alignas(16) unsigned char io[IO_BYTES];
static model_program model;

/* SysTick, a timer that every Cortex-M has: it counts clocks of the processor down from 2**24 - 1. */
#define SYSTICK ((volatile uint32_t *)0xE000E010u)
static void start_clock(void) {
  SYSTICK[1] = 0xFFFFFFu;
  SYSTICK[2] = 0;
  SYSTICK[0] = 5;
}
static uint32_t clocks(void) { return 0xFFFFFFu - SYSTICK[2]; }

static int fail(const char *what, int32_t error) {
  print(what);
  print(" failed: error ");
  print_number((uint32_t)error);
  print("\n");
  return 1;
}

/* The name of a file, such as input0. */
static const char *numbered(const char *kind, int32_t number) {
  static char name[16];
  char *end = name;
  while (*kind) *end++ = *kind++;
  if (number >= 10) *end++ = (char)('0' + number / 10);
  *end++ = (char)('0' + number % 10);
  *end = 0;
  return name;
}

int main(void) {
  uint32_t used = 0, output_at[MODEL_OUTPUTS] = {0};
  int32_t i, error;
  if ((error = model_init(&model, memory, sizeof memory)) != MODEL_OK) return fail("model_init", error);
  for (i = 0; i < MODEL_INPUTS + MODEL_OUTPUTS; ++i) {
    const int32_t number = i < MODEL_INPUTS ? i : i - MODEL_INPUTS;
    const uint32_t bytes = i < MODEL_INPUTS ? model_input_bytes(number) : model_output_bytes(number);
    if (bytes > IO_BYTES - used) return fail("IO_BYTES, which -D sets: room for tensors", i);
    if (i < MODEL_INPUTS) {
      if (!read_file(numbered("input", number), io + used, bytes)) return fail("reading an input", i);
      error = model_set_input(&model, number, io + used);
    } else {
      output_at[number] = used;
      error = model_set_output(&model, number, io + used);
    }
    if (error != MODEL_OK) return fail("setting a tensor", error);
    used += (bytes + 15) & ~15u;
  }
  start_clock();
  error = model_run(&model);
  used = clocks();
  if (error != MODEL_OK) return fail("model_run", error);
  for (i = 0; i < MODEL_OUTPUTS; ++i) {
    if (!write_file(numbered("output", i), io + output_at[i], model_output_bytes(i))) return fail("writing an output", i);
  }
#ifdef PRINTED_FLOATS
  for (i = 0; i < PRINTED_FLOATS; ++i) {
    print_float(((const float *)(const void *)(io + output_at[0]))[i]);
    print(i + 1 < PRINTED_FLOATS ? " " : "\n");
  }
#endif
  print("clocks: ");
  print_number(used);
  print("\n");
  return 0;
}
