#include <sys/auxv.h>
/* Whether this CPU has what the code needs: extensions that are letters, those that only Linux 6.4 and newer name by a
   system call of RISC-V (riscv_hwprobe), and vector registers of a certain length, which a register holds. */
static inline int32_t lb_name_check_cpu(void) {
  const unsigned long letters = LB_HWCAP;
  const uint64_t extensions = UINT64_C(LB_HWPROBE);
  const unsigned long bytes = LB_VECTOR_BYTES;
  struct { int64_t key; uint64_t value; } pair = {4, 0};
  unsigned long found = 0;
  if ((getauxval(16) & letters) != letters) return LB_NAME_ERROR_CPU;
  if (extensions != 0) {
    register long first __asm__("a0") = (long)&pair;
    register long count __asm__("a1") = 1;
    register long cores __asm__("a2") = 0;
    register long set __asm__("a3") = 0;
    register long flags __asm__("a4") = 0;
    register long number __asm__("a7") = 258;
    __asm__ volatile("ecall" : "+r"(first) : "r"(count), "r"(cores), "r"(set), "r"(flags), "r"(number) : "memory");
    if (first != 0 || pair.key != 4 || (pair.value & extensions) != extensions) return LB_NAME_ERROR_CPU;
  }
  if (bytes != 0) __asm__ volatile("csrr %0, 0xc22" : "=r"(found));
  return found >= bytes ? LB_NAME_OK : LB_NAME_ERROR_CPU;
}
