#include <cpuid.h>
/* Whether this CPU has what the code needs, and the system saves its registers. */
static inline int32_t lb_name_check_cpu(void) {
  static const uint32_t wanted[][4] = {LB_WANTED}; /* leaf, part, register, bits */
  const uint32_t saved = LB_SAVED;
  uint32_t found[4] = {0, 0, 0, 0}, low = 0, high = 0;
  size_t i;
  for (i = 0; i < sizeof wanted / sizeof wanted[0]; ++i) {
    __get_cpuid_count(wanted[i][0], wanted[i][1], &found[0], &found[1], &found[2], &found[3]);
    if ((found[wanted[i][2]] & wanted[i][3]) != wanted[i][3]) return LB_NAME_ERROR_CPU;
  }
  if (saved) __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  (void)high;
  return (low & saved) == saved ? LB_NAME_OK : LB_NAME_ERROR_CPU;
}
