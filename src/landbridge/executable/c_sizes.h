/* The open dimensions. A program is inited for one choice of them, and may be inited again for another. */
typedef struct lb_name_sizes {
LB_DIMENSIONS
} lb_name_sizes;

static inline int64_t lb_name_floor(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
static inline int64_t lb_name_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t lb_name_min(int64_t a, int64_t b) { return a < b ? a : b; }

LB_WAYS

/* The first way that is for dimensions d; -1 where none is. */
static inline int32_t lb_name_way(const lb_name_sizes *d) {
LB_CHOICES
  return -1;
}

/* Whether the program is for dimensions d. */
static inline int32_t lb_name_check_sizes(const lb_name_sizes *d) {
  if (!d) return LB_NAME_ERROR_NULL;
  return lb_name_way(d) < 0 ? LB_NAME_ERROR_SIZES : LB_NAME_OK;
}

/* What follows from dimensions d, which were checked, and the place of the table that is for them. */
static inline void lb_name_compute_sizes(const lb_name_sizes *d, int64_t *s) {
  switch (lb_name_way(d)) {
LB_COMPUTE
  }
}
static inline int64_t lb_name_table_offset(const lb_name_sizes *d) {
  switch (lb_name_way(d)) {
LB_OFFSETS
  }
  return 0;
}

/* Bytes of memory, of an input and of an output for dimensions d, which were checked. */
static inline uint64_t lb_name_memory_bytes(const lb_name_sizes *d) {
  switch (lb_name_way(d)) {
LB_MEMORY
  }
  return 0;
}
static inline uint64_t lb_name_input_bytes(const lb_name_sizes *d, int32_t index) {
  switch (lb_name_way(d)) {
LB_INPUTS_BYTES
  }
  return 0;
}
static inline uint64_t lb_name_output_bytes(const lb_name_sizes *d, int32_t index) {
  switch (lb_name_way(d)) {
LB_OUTPUTS_BYTES
  }
  return 0;
}

/* The extent of an output's axis for dimensions d, which were checked. */
static inline int64_t lb_name_output_extent(const lb_name_sizes *d, int32_t index, int32_t axis) {
  switch (lb_name_way(d)) {
LB_EXTENTS
  }
  return 0;
}
