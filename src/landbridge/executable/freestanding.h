/* A compiled program for processors without an operating system, made by Landbridge. C99 or C++; compile lb_name.c and
 * lb_name_weights.c (C11) with the application. Nothing of a C library is called but memcpy, memmove and memset, nothing
 * is allocated, and no thread is started.
 *
 *   static _Alignas(LB_NAME_MEMORY_ALIGNMENT) unsigned char memory[LB_NAME_MEMORY_BYTES];
 *   static lb_name_program self;
 *   lb_name_init(&self, memory, sizeof memory);
 *   lb_name_set_input(&self, 0, frame);  lb_name_set_output(&self, 0, result);
 *   lb_name_run(&self);
 *
 * The memory is LB_TENSOR_BYTES bytes of planned tensors and LB_WORKSPACE_BYTES of temporaries. Weights are constants
 * (.rodata); -DLB_NAME_WEIGHTS_SECTION='__attribute__((section(".name")))' puts them elsewhere. Inputs are read and
 * outputs written where they lie. A program is run by one thread or interrupt level at a time; several may be inited,
 * each with memory of its own. Functions give LB_NAME_OK or say what is wrong. */
#ifndef LB_NAME_H
#define LB_NAME_H

#include <stdint.h>

LB_CONSTANTS

enum {
  LB_NAME_OK = 0,
  LB_NAME_ERROR_NULL = 1,      /* a pointer is null */
  LB_NAME_ERROR_ALIGNMENT = 2, /* an address is no multiple of the alignment that its constant says */
  LB_NAME_ERROR_SIZE = 3,      /* there are fewer bytes than the constant says */
  LB_NAME_ERROR_INDEX = 4,     /* there is no input or output of that number */
  LB_NAME_ERROR_NOT_SET = 5    /* an input or output was never set */
};

/* Set by the functions alone. */
typedef struct lb_name_program {
  unsigned char *memory;
  unsigned char *io[LB_COUNT + 1];
} lb_name_program;

#ifdef __cplusplus
extern "C" {
#endif
/* Make a program in memory, which stays the caller's and in use. Where this fails, self is a program that the other
 * functions refuse. */
int32_t lb_name_init(lb_name_program *self, void *memory, uint32_t memory_bytes);
/* Read input number index from address, LB_NAME_INPUT_..._BYTES of it, in every run from now on. */
int32_t lb_name_set_input(lb_name_program *self, int32_t index, const void *address);
/* Write output number index to address, LB_NAME_OUTPUT_..._BYTES of it, in every run from now on. */
int32_t lb_name_set_output(lb_name_program *self, int32_t index, void *address);
/* The bytes of input or output number index; 0 where there is none. */
uint32_t lb_name_input_bytes(int32_t index);
uint32_t lb_name_output_bytes(int32_t index);
/* Run the program once; outputs are written when it returns. */
int32_t lb_name_run(lb_name_program *self);
#ifdef __cplusplus
}
#endif

#endif
