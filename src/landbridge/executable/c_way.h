/* Way LB_WAY of the program: whether it is for dimensions d, and what follows from them then. */
static inline int32_t lb_name_takes_LB_WAY(const lb_name_sizes *d) {
  (void)d;
LB_CHECKS
  return 1;
}
static inline void lb_name_compute_sizes_LB_WAY(const lb_name_sizes *d, int64_t *s) {
  (void)d, (void)s;
LB_COMPUTED
}
static inline uint64_t lb_name_tensor_bytes_LB_WAY(const lb_name_sizes *d) {
  (void)d;
  return (uint64_t)(LB_TENSOR_BYTES);
}
static inline uint64_t lb_name_input_bytes_LB_WAY(const lb_name_sizes *d, int32_t index) {
  (void)d;
  switch (index) {
LB_INPUT_BYTES
  }
  return 0;
}
static inline uint64_t lb_name_output_bytes_LB_WAY(const lb_name_sizes *d, int32_t index) {
  (void)d;
  switch (index) {
LB_OUTPUT_BYTES
  }
  return 0;
}
static inline int64_t lb_name_output_extent_LB_WAY(const lb_name_sizes *d, int32_t index, int32_t axis) {
  (void)d;
  switch (index * 64 + axis) {
LB_OUTPUT_EXTENTS
  }
  return 0;
}
