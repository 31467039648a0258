/* A compiled program, made by Landbridge. C99 or C++; link with one of the libraries beside this file, and
 * with -lm -lpthread -ldl. Its code is for LB_ISA.
 *
LB_USAGE
 *
 * Inputs are read and outputs written where they lie. Nothing is allocated, and no thread started, but by
 * lb_name_start_threads. A program is run by one thread at a time; several may be inited, each with memory of its own.
 * Threads are one program's: lb_name_stop_threads comes before another lb_name_init of it.
 * A run takes at most LB_STACK bytes of stack on each thread, with what it calls. Functions give LB_NAME_OK or say what is wrong. */
#ifndef LB_NAME_H
#define LB_NAME_H
#if !(LB_CONDITION)
#error "this program is code for LB_MACHINE, and this compiler makes another: export it with -t for what you build for"
#endif

#include <stdint.h>
#include <string.h>

LB_CONSTANTS

enum {
  LB_NAME_OK = 0,
  LB_NAME_ERROR_NULL = 1,      /* a pointer is null */
  LB_NAME_ERROR_ALIGNMENT = 2, /* an address is no multiple of the alignment that its constant says */
  LB_NAME_ERROR_SIZE = 3,      /* there are fewer bytes than the constant says */
  LB_NAME_ERROR_INDEX = 4,     /* there is no input or output of that number */
  LB_NAME_ERROR_NOT_SET = 5,   /* an input or output was never set */
  LB_NAME_ERROR_THREADS = 6,   /* the system starts no more threads, or they were started already */
  LB_NAME_ERROR_CPU = 7,       /* this CPU has not what the code needs */
  LB_NAME_ERROR_SIZES = 8      /* the program is not for these dimensions */
};

LB_SIZES

/* Set by the functions alone. */
typedef struct lb_name_program {
  const int64_t *table;
  int64_t *words;
  void *pool;
  unsigned char is_set[LB_NAME_INPUTS + LB_NAME_OUTPUTS + 1];
} lb_name_program;

#ifdef __cplusplus
extern "C" {
#endif
/* Of the library. */
const int64_t *lb_name_table(void);
#if !LB_WEIGHTS_APART
const void *lb_name_weights(void);
#endif
int64_t lb_name_run_records(void *pool, void *workspace, const int64_t *records, int64_t count);
void *lb_name_create_pool(int64_t threads, int64_t workspace_bytes);
void lb_name_destroy_pool(void *pool);
#ifdef __cplusplus
}
#endif

LB_CHECK_CPU

/* Let base reach address in each word that wants it. */
static inline void lb_name_bind(lb_name_program *self, int64_t base, const void *address) {
  const int64_t *table = self->table;
  const int64_t *fixup = table + 4 + table[0];
  int64_t i;
  for (i = 0; i < table[1]; ++i, fixup += 3) {
    if (fixup[1] == base) self->words[fixup[0]] = (int64_t)(intptr_t)address + fixup[2];
#if LB_OPEN
    if (fixup[1] == -1 - base)
      self->words[fixup[0]] = (int64_t)(intptr_t)address + self->words[table[0] + fixup[2]];
#endif
  }
}

/* Where kernels on the calling thread have their temporaries. */
static inline void *lb_name_workspace(lb_name_program *self) {
  return (unsigned char *)self->words + LB_WORKSPACE_AT;
}

/* Make a program in memory, which stays the caller's and in use; weights: the bytes of the file of that name. Where this
 * fails, self is a program that the other functions refuse, and lb_name_stop_threads does nothing to. */
static inline int32_t lb_name_init(lb_name_program *self,
#if LB_OPEN
                                const lb_name_sizes *sizes,
#endif
                                void *memory, uint64_t memory_bytes
#if LB_WEIGHTS_APART
                                ,
                                const void *weights, uint64_t weights_bytes
#endif
) {
  const int64_t *table = lb_name_table();
#if LB_OPEN
  const int32_t wrong = lb_name_check_sizes(sizes);
  if (wrong == LB_NAME_OK) table += lb_name_table_offset(sizes);
#endif
  if (!self) return LB_NAME_ERROR_NULL;
  memset(self, 0, sizeof *self);
  if (!memory) return LB_NAME_ERROR_NULL;
  if (lb_name_check_cpu() != LB_NAME_OK) return LB_NAME_ERROR_CPU;
#if LB_OPEN
  if (wrong != LB_NAME_OK) return wrong;
#endif
  if ((uintptr_t)memory % LB_NAME_MEMORY_ALIGNMENT) return LB_NAME_ERROR_ALIGNMENT;
#if LB_OPEN
  if (memory_bytes < lb_name_memory_bytes(sizes)) return LB_NAME_ERROR_SIZE;
#else
  if (memory_bytes < LB_NAME_MEMORY_BYTES) return LB_NAME_ERROR_SIZE;
#endif
#if LB_WEIGHTS_APART
  if (!weights) return LB_NAME_ERROR_NULL;
  if ((uintptr_t)weights % 64) return LB_NAME_ERROR_ALIGNMENT;
  if (weights_bytes < LB_NAME_WEIGHTS_BYTES) return LB_NAME_ERROR_SIZE;
#else
  const void *weights = lb_name_weights();
#endif
  self->table = table;
  self->words = (int64_t *)memory;
  memcpy(self->words, table + 4, (size_t)table[0] * sizeof(int64_t));
#if LB_OPEN
  lb_name_compute_sizes(sizes, self->words + table[0]);
  lb_name_bind(self, 4, 0);
#endif
  lb_name_bind(self, 0, (unsigned char *)memory + LB_TENSORS);
  lb_name_bind(self, 1, weights);
  lb_name_bind(self, 2, table);
  lb_name_bind(self, 3, self->words);
  return (int32_t)lb_name_run_records(0, lb_name_workspace(self), self->words, table[2]);
}

/* Whether address suits input number index, or the output of that number less LB_NAME_INPUTS. */
static inline int lb_name_is_aligned(int32_t index, const void *address) {
  static const unsigned char alignments[LB_NAME_INPUTS + LB_NAME_OUTPUTS + 1] = {LB_ALIGNMENTS};
  return (uintptr_t)address % alignments[index] == 0;
}

/* Read input number index from address, LB_NAME_INPUT_..._BYTES of it, in every run from now on. */
static inline int32_t lb_name_set_input(lb_name_program *self, int32_t index, const void *address) {
  if (!self || !self->words || !address) return LB_NAME_ERROR_NULL;
  if (index < 0 || index >= LB_NAME_INPUTS) return LB_NAME_ERROR_INDEX;
  if (!lb_name_is_aligned(index, address)) return LB_NAME_ERROR_ALIGNMENT;
  lb_name_bind(self, 5 + index, address);
  self->is_set[index] = 1;
  return LB_NAME_OK;
}

/* Write output number index to address, LB_NAME_OUTPUT_..._BYTES of it, in every run from now on. */
static inline int32_t lb_name_set_output(lb_name_program *self, int32_t index, void *address) {
  if (!self || !self->words || !address) return LB_NAME_ERROR_NULL;
  if (index < 0 || index >= LB_NAME_OUTPUTS) return LB_NAME_ERROR_INDEX;
  if (!lb_name_is_aligned(LB_NAME_INPUTS + index, address)) return LB_NAME_ERROR_ALIGNMENT;
  lb_name_bind(self, 5 + LB_NAME_INPUTS + index, address);
  self->is_set[LB_NAME_INPUTS + index] = 1;
  return LB_NAME_OK;
}

/* Run the program once; outputs are written when it returns. */
static inline int32_t lb_name_run(lb_name_program *self) {
  int32_t i;
  if (!self || !self->words) return LB_NAME_ERROR_NULL;
  for (i = 0; i < LB_NAME_INPUTS + LB_NAME_OUTPUTS; ++i)
    if (!self->is_set[i]) return LB_NAME_ERROR_NOT_SET;
  return (int32_t)lb_name_run_records(self->pool, lb_name_workspace(self), self->words + 4 * self->table[2], self->table[3]);
}

/* Let runs use threads in all, the caller's among them; this allocates. */
static inline int32_t lb_name_start_threads(lb_name_program *self, int64_t threads) {
  if (!self || !self->words) return LB_NAME_ERROR_NULL;
  if (self->pool || threads < 1) return LB_NAME_ERROR_THREADS;
  self->pool = lb_name_create_pool(threads, LB_WORKSPACE_BYTES);
  return self->pool ? LB_NAME_OK : LB_NAME_ERROR_THREADS;
}

/* End the threads, if there are any; runs go on the caller's alone. */
static inline void lb_name_stop_threads(lb_name_program *self) {
  if (self && self->pool) lb_name_destroy_pool(self->pool);
  if (self) self->pool = 0;
}

#endif
