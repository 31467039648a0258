/* The kernels of a program and the calls of them, made by Landbridge; lb_name.h says how it is used. */
#include "lb_name.h"

LB_KERNELS
LB_WEIGHTS
LB_WORDS
typedef int64_t lb_count_at LB_MAY_ALIAS;

static void lb_name_prepare(unsigned char *memory) {
  unsigned char *const workspace = memory + LB_WORKSPACE_AT;
  unsigned char *const *io = 0;
  (void)workspace, (void)io;
LB_PREPARED
}

int32_t lb_name_init(lb_name_program *self, void *memory, uint32_t memory_bytes) {
  int32_t i;
  if (!self) return LB_NAME_ERROR_NULL;
  self->memory = 0;
  for (i = 0; i < LB_NAME_INPUTS + LB_NAME_OUTPUTS + 1; ++i) self->io[i] = 0;
  if (!memory) return LB_NAME_ERROR_NULL;
  if ((uintptr_t)memory % LB_NAME_MEMORY_ALIGNMENT) return LB_NAME_ERROR_ALIGNMENT;
  if (memory_bytes < LB_NAME_MEMORY_BYTES) return LB_NAME_ERROR_SIZE;
  self->memory = (unsigned char *)memory;
  lb_name_prepare(self->memory);
  return LB_NAME_OK;
}

static int32_t lb_name_set(lb_name_program *self, int32_t index, void *address) {
  static const unsigned char alignments[] = {LB_ALIGNMENTS};
  if ((uintptr_t)address % alignments[index]) return LB_NAME_ERROR_ALIGNMENT;
  self->io[index] = (unsigned char *)address;
  return LB_NAME_OK;
}

int32_t lb_name_set_input(lb_name_program *self, int32_t index, const void *address) {
  if (!self || !self->memory || !address) return LB_NAME_ERROR_NULL;
  if (index < 0 || index >= LB_NAME_INPUTS) return LB_NAME_ERROR_INDEX;
  return lb_name_set(self, index, (void *)(uintptr_t)address);
}

int32_t lb_name_set_output(lb_name_program *self, int32_t index, void *address) {
  if (!self || !self->memory || !address) return LB_NAME_ERROR_NULL;
  if (index < 0 || index >= LB_NAME_OUTPUTS) return LB_NAME_ERROR_INDEX;
  return lb_name_set(self, LB_NAME_INPUTS + index, address);
}

static uint32_t lb_name_bytes(int32_t index) {
  static const uint32_t bytes[] = {LB_SIZES};
  return bytes[index];
}

uint32_t lb_name_input_bytes(int32_t index) {
  return index < 0 || index >= LB_NAME_INPUTS ? 0 : lb_name_bytes(index);
}

uint32_t lb_name_output_bytes(int32_t index) {
  return index < 0 || index >= LB_NAME_OUTPUTS ? 0 : lb_name_bytes(LB_NAME_INPUTS + index);
}

int32_t lb_name_run(lb_name_program *self) {
  unsigned char *memory, *workspace, *const *io;
  int32_t i;
  if (!self || !self->memory) return LB_NAME_ERROR_NULL;
  for (i = 0; i < LB_NAME_INPUTS + LB_NAME_OUTPUTS; ++i)
    if (!self->io[i]) return LB_NAME_ERROR_NOT_SET;
  memory = self->memory, workspace = memory + LB_WORKSPACE_AT, io = self->io;
  (void)workspace, (void)memory, (void)io;
LB_RUN
  return LB_NAME_OK;
}
