/* The checker of packed functions, as landbridge.executable.packed describes it. */
#include <alloca.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* tvm-ffi's TVMFFIAny, and DLPack's DLTensor. */
typedef struct {
  int32_t type;
  uint32_t padding;
  void *pointer;
} any_t;

typedef struct {
  char *data;
  int32_t device_type, device_id;
  int32_t rank;
  uint32_t type;
  const int64_t *shape, *strides;
  uint64_t byte_offset;
} tensor_t;

enum { TYPE_TENSOR_POINTER = 7, TYPE_TENSOR_OBJECT = 70, OBJECT_HEADER = 24, DEVICE_CPU = 1 };
enum { COUNT, NO_TENSOR, DEVICE, ELEMENT, RANK, EXTENT, STRIDE, ALIGNMENT, REASONS };
enum { KERNEL, TASKS, OPERANDS, NAME, MESSAGES, FIRST = MESSAGES + 2 * REASONS, OPERAND_WORDS = 5 };

typedef void (*kernel_t)(void **args, int64_t begin, int64_t end);
typedef void (*raise_t)(const char *kind, const char *message);

static __attribute__((noinline)) int refuse(const int64_t *d, int reason, int64_t number, int64_t text, int64_t a, int64_t b) {
  const char *base = (const char *)d;
  const int64_t *message = d + MESSAGES + 2 * reason;
  char line[512];
  /* Whoever calls a packed function has loaded tvm-ffi; the image itself does not need it. */
  raise_t raise = (raise_t)(intptr_t)dlsym(RTLD_DEFAULT, "TVMFFIErrorSetRaisedFromCStr");
  snprintf(line, sizeof line, base + message[1], base + d[NAME], (long long)number, text ? base + text : "", (long long)a,
           (long long)b);
  if (raise) raise(base + message[0], line);
  return -1;
}

__attribute__((visibility("default"))) int landbridge_packed_v1(const int64_t *d, const any_t *given, int32_t count) {
  const char *base = (const char *)d;
  if (count != d[OPERANDS]) return refuse(d, COUNT, d[OPERANDS], 0, count, 0);
  void **args = alloca(8 * (size_t)(count + 1));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t *operand = d + FIRST + OPERAND_WORDS * i, rank = operand[2], text = operand[4];
    const int64_t *shape = (const int64_t *)(base + operand[3]), *strides = shape + rank;
    const char *pointer = given[i].pointer;
    if (given[i].type == TYPE_TENSOR_OBJECT)
      pointer += OBJECT_HEADER;
    else if (given[i].type != TYPE_TENSOR_POINTER)
      return refuse(d, NO_TENSOR, i, text, 0, 0);
    const tensor_t *tensor = (const tensor_t *)pointer;
    if (tensor->device_type != DEVICE_CPU) return refuse(d, DEVICE, i, text, tensor->device_type, 0);
    if (tensor->type != operand[0]) return refuse(d, ELEMENT, i, text, tensor->type & 255, tensor->type >> 8 & 255);
    if (tensor->rank != rank) return refuse(d, RANK, i, text, tensor->rank, 0);
    int64_t size = 1;
    for (int64_t k = 0; k < rank; ++k) {
      if (tensor->shape[k] != shape[k]) return refuse(d, EXTENT, i, text, k, tensor->shape[k]);
      size *= shape[k];
    }
    for (int64_t k = 0; k < rank && tensor->strides && size; ++k)
      if (shape[k] != 1 && tensor->strides[k] != strides[k]) return refuse(d, STRIDE, i, text, k, tensor->strides[k]);
    args[i] = tensor->data + tensor->byte_offset;
    if ((uintptr_t)args[i] & (uintptr_t)(operand[1] - 1)) return refuse(d, ALIGNMENT, i, text, operand[1], 0);
  }
  ((kernel_t)(intptr_t)(base + d[KERNEL]))(args, 0, d[TASKS]);
  return 0;
}
