#include <sys/auxv.h>
#include <sys/prctl.h>
/* Whether this CPU has what the code needs, registers of SVE of a certain length among it. */
static inline int32_t lb_name_check_cpu(void) {
  const unsigned long first = LB_HWCAP_FIRST, second = LB_HWCAP_SECOND;
  const int sve_bytes = LB_SVE_BYTES;
  if ((getauxval(16) & first) != first || (getauxval(26) & second) != second) return LB_NAME_ERROR_CPU;
  return sve_bytes == 0 || (prctl(51, 0, 0, 0, 0) & 0xffff) == sve_bytes ? LB_NAME_OK : LB_NAME_ERROR_CPU;
}
