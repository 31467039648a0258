#include <sys/auxv.h>
/* Whether this CPU has what the code needs. */
static inline int32_t lb_name_check_cpu(void) {
  const unsigned long first = LB_HWCAP_FIRST, second = LB_HWCAP_SECOND;
  return (getauxval(16) & first) == first && (getauxval(26) & second) == second ? LB_NAME_OK : LB_NAME_ERROR_CPU;
}
