/* What kernels for processors without an operating system are written in: C11 without a C library. A compiler may call
 * memcpy, memmove and memset, and its own library's functions of 64-bit integers (libgcc, compiler-rt). */
#include <stddef.h>
#include <stdint.h>

typedef int32_t lb_index;
typedef uint32_t lb_unsigned_index;

#ifdef __GNUC__
/* Lanes that nothing reads are not printed apart, nor comparisons that a type decides. */
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define LB_INLINE static inline __attribute__((unused))
#define LB_NOINLINE static __attribute__((noinline, unused))
#define LB_EXPORT static __attribute__((unused))
#define LB_MAY_ALIAS __attribute__((may_alias))
#else
#define LB_INLINE static inline
#define LB_NOINLINE static
#define LB_MAY_ALIAS
#define LB_EXPORT static
#endif

void *memcpy(void *, const void *, size_t);

LB_INLINE uint32_t lb_bits_f32_i32(float x) {
  union {
    float x;
    uint32_t bits;
  } both = {x};
  return both.bits;
}
LB_INLINE float lb_bits_i32_f32(uint32_t bits) {
  union {
    uint32_t bits;
    float x;
  } both = {bits};
  return both.x;
}

#define NAN lb_bits_i32_f32(0x7FC00000u)
#define INFINITY lb_bits_i32_f32(0x7F800000u)
#define signbit(x) ((int)(lb_bits_f32_i32(x) >> 31))

/* NaN when either is NaN; -0 is below +0. With a constant b most of it is known. */
#define LB_EXTREMA(kind, type)                                    \
  LB_INLINE type lb_maximum_##kind(type a, type b) {              \
    if (b != b) return b;                                         \
    if (!(a <= b)) return a;                                      \
    return b == 0 && signbit(b) && a == b && !signbit(a) ? a : b; \
  }                                                               \
  LB_INLINE type lb_minimum_##kind(type a, type b) {              \
    if (b != b) return b;                                         \
    if (!(a >= b)) return a;                                      \
    return b == 0 && !signbit(b) && a == b && signbit(a) ? a : b; \
  }

/* Towards zero, clamped to the type; NaN gives 0. */
#define LB_TO(kind, type, low, high, least, most) \
  LB_INLINE type lb_to_##kind(float x) {          \
    if (x != x) return 0;                         \
    if (x <= low) return least;                   \
    return x >= high ? most : (type)x;            \
  }
#if defined(__GNUC__) && defined(__ARM_FP) && (__ARM_FP & 4)
/* The instructions clamp, and give 0 for NaN. */
LB_INLINE int32_t lb_to_s32(float x) {
  float bits;
  __asm__("vcvt.s32.f32 %0, %1" : "=t"(bits) : "t"(x));
  return (int32_t)lb_bits_f32_i32(bits);
}
LB_INLINE uint32_t lb_to_u32(float x) {
  float bits;
  __asm__("vcvt.u32.f32 %0, %1" : "=t"(bits) : "t"(x));
  return lb_bits_f32_i32(bits);
}
#else
LB_TO(s32, int32_t, -2147483648.0f, 2147483648.0f, INT32_MIN, INT32_MAX)
LB_TO(u32, uint32_t, 0.0f, 4294967296.0f, 0, UINT32_MAX)
#endif
#define LB_TO_NARROW(sign, kind, type, wide, least, most) \
  LB_INLINE type lb_to_##kind(float x) {                  \
    const wide whole = lb_to_##sign##32(x);               \
    return (type)(whole < least ? least : whole > most ? most : whole); \
  }
LB_TO_NARROW(s, s8, int8_t, int32_t, INT8_MIN, INT8_MAX)
LB_TO_NARROW(s, s16, int16_t, int32_t, INT16_MIN, INT16_MAX)
LB_TO_NARROW(s, u8, uint8_t, int32_t, 0, UINT8_MAX)
LB_TO_NARROW(s, u16, uint16_t, int32_t, 0, UINT16_MAX)
LB_TO(s64, int64_t, -9223372036854775808.0f, 9223372036854775808.0f, INT64_MIN, INT64_MAX)
LB_TO(u64, uint64_t, 0.0f, 18446744073709551616.0f, 0, UINT64_MAX)

/* The sum of four products of bytes, those of x without and those of y with a sign; two at a time where the processor
 * has the instructions of Arm's DSP extension. */
#if defined(__GNUC__) && defined(__ARM_FEATURE_SIMD32)
#define LB_BYTE_DOT
LB_INLINE uint32_t lb_even_unsigned(uint32_t x) {
  uint32_t halves;
  __asm__("uxtb16 %0, %1" : "=r"(halves) : "r"(x));
  return halves;
}
LB_INLINE uint32_t lb_odd_unsigned(uint32_t x) {
  uint32_t halves;
  __asm__("uxtb16 %0, %1, ror #8" : "=r"(halves) : "r"(x));
  return halves;
}
LB_INLINE uint32_t lb_even_signed(uint32_t x) {
  uint32_t halves;
  __asm__("sxtb16 %0, %1" : "=r"(halves) : "r"(x));
  return halves;
}
LB_INLINE uint32_t lb_odd_signed(uint32_t x) {
  uint32_t halves;
  __asm__("sxtb16 %0, %1, ror #8" : "=r"(halves) : "r"(x));
  return halves;
}
/* a, and the products of the halves of x and y; the flag that an overflow sets is not read. */
LB_INLINE uint32_t lb_add_products(uint32_t x, uint32_t y, uint32_t a) {
  uint32_t sum;
  __asm__("smlad %0, %1, %2, %3" : "=r"(sum) : "r"(x), "r"(y), "r"(a));
  return sum;
}
LB_INLINE uint32_t lb_byte_dot_to(uint32_t total, uint32_t x, uint32_t y) {
  total = lb_add_products(lb_even_unsigned(x), lb_even_signed(y), total);
  return lb_add_products(lb_odd_unsigned(x), lb_odd_signed(y), total);
}
LB_INLINE uint32_t lb_byte_dot(uint32_t x, uint32_t y) { return lb_byte_dot_to(0, x, y); }
#else
#define lb_byte_dot_to(total, x, y) ((total) + lb_byte_dot(x, y))
#endif

/* Divisions of 64 bits only where an operand has them: they are calls. */
#define LB_DIVISIONS(bits)                                                                                       \
  LB_INLINE int##bits##_t lb_floordiv_##bits(int##bits##_t a, int##bits##_t b) {                                 \
    return a / b - (a % b != 0 && (a < 0) != (b < 0));                                                           \
  }                                                                                                              \
  LB_INLINE int##bits##_t lb_ceildiv_##bits(int##bits##_t a, int##bits##_t b) {                                  \
    return a / b + (a % b != 0 && (a < 0) == (b < 0));                                                           \
  }                                                                                                              \
  LB_INLINE uint##bits##_t lb_ceildiv_u_##bits(uint##bits##_t a, uint##bits##_t b) { return a / b + (a % b != 0); }
LB_DIVISIONS(32)
LB_DIVISIONS(64)
#define lb_floordiv(a, b) _Generic((a), int64_t: lb_floordiv_64, default: lb_floordiv_32)(a, b)
#define lb_ceildiv(a, b) _Generic((a), int64_t: lb_ceildiv_64, default: lb_ceildiv_32)(a, b)
#define lb_ceildiv_u(a, b) _Generic((a), uint64_t: lb_ceildiv_u_64, default: lb_ceildiv_u_32)(a, b)

LB_INLINE float fabsf(float x) { return lb_bits_i32_f32(lb_bits_f32_i32(x) & 0x7FFFFFFFu); }
LB_INLINE float copysignf(float x, float sign) {
  return lb_bits_i32_f32((lb_bits_f32_i32(x) & 0x7FFFFFFFu) | (lb_bits_f32_i32(sign) & 0x80000000u));
}
LB_INLINE float fmaxf(float a, float b) { return a > b || b != b ? a : b; }
LB_INLINE float fminf(float a, float b) { return a < b || b != b ? a : b; }
#if defined(__GNUC__) && defined(__ARM_FEATURE_DIRECTED_ROUNDING)
#define truncf __builtin_truncf
#define floorf __builtin_floorf
#define ceilf __builtin_ceilf
#define roundf __builtin_roundf
LB_INLINE float rintf(float x) {
  float whole;
  __asm__("vrintn.f32 %0, %1" : "=t"(whole) : "t"(x));
  return whole;
}
#else
/* From 2**23 on every float is whole, and NaN stays. */
LB_INLINE float truncf(float x) { return fabsf(x) < 0x1p23f ? copysignf((float)(int32_t)x, x) : x; }
LB_INLINE float floorf(float x) {
  const float whole = truncf(x);
  return copysignf(whole > x ? whole - 1.0f : whole, x);
}
LB_INLINE float ceilf(float x) {
  const float whole = truncf(x);
  return copysignf(whole < x ? whole + 1.0f : whole, x);
}
LB_INLINE float roundf(float x) {
  const float whole = truncf(x);
  return copysignf(fabsf(x - whole) >= 0.5f ? whole + copysignf(1.0f, x) : whole, x);
}
/* The sum with 2**23 has no bits behind the point, and is rounded as all sums are. */
LB_INLINE float rintf(float x) {
  const float whole = fabsf(x) + 0x1p23f;
  return fabsf(x) < 0x1p23f ? copysignf(whole - 0x1p23f, x) : x;
}
#endif
#if defined(__GNUC__) && (defined(__ARM_FEATURE_FMA) || defined(__riscv_flen))
#define fmaf __builtin_fmaf
#else
LB_INLINE float fmaf(float a, float b, float c) { return a * b + c; }
#endif

#if defined(__GNUC__) && defined(__ARM_FP) && (__ARM_FP & 4)
LB_INLINE float sqrtf(float x) {
  float root;
  __asm__("vsqrt.f32 %0, %1" : "=t"(root) : "t"(x));
  return root;
}
#elif defined(__GNUC__) && defined(__riscv_flen)
LB_INLINE float sqrtf(float x) {
  float root;
  __asm__("fsqrt.s %0, %1" : "=f"(root) : "f"(x));
  return root;
}
#else
/* Bit by bit: the root of a mantissa of 48 bits, rounded to nearest. */
LB_NOINLINE float sqrtf(float x) {
  uint32_t bits = lb_bits_f32_i32(x), root = 0, bit;
  uint64_t rest;
  int32_t exponent;
  if (!(x > 0.0f) || bits == 0x7F800000u) return x < 0.0f ? NAN : x;
  if (bits < 0x00800000u) return sqrtf(x * 0x1p24f) * 0x1p-12f;
  exponent = (int32_t)(bits >> 23) - 127;
  rest = (uint64_t)((bits & 0x7FFFFFu) | 0x800000u) << ((exponent & 1) ? 26 : 25);
  for (bit = 1u << 24; bit; bit >>= 1)
    if ((uint64_t)(root | bit) * (root | bit) <= rest) root |= bit;
  root = (root >> 1) + (root & 1);
  return lb_bits_i32_f32(((uint32_t)(((exponent - (exponent & 1)) / 2) + 126) << 23) + root);
}
#endif
