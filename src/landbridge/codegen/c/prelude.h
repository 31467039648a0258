/* What kernels printed by Landbridge are written in: C11, with vector types where the compiler has them. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && !defined(LB_PORTABLE)
#define LB_VECTOR_TYPES 1
#define LB_INLINE static inline __attribute__((always_inline, unused))
#define LB_NOINLINE static __attribute__((noinline))
#define LB_EXPORT __attribute__((visibility("default")))
/* name_at is the type in memory: aligned to its element only, and free to alias others. */
#define LB_VECTOR(name, element, lanes)                                                                     \
  typedef element name __attribute__((vector_size(sizeof(element) * (lanes))));                             \
  typedef element name##_at __attribute__((vector_size(sizeof(element) * (lanes)), aligned(sizeof(element)), may_alias));
#define LB_LANE(v, i) ((v)[i])
#define LB_MAKE(name, ...) ((name){__VA_ARGS__})
#else
#define LB_VECTOR_TYPES 0
#define LB_INLINE static inline
#define LB_NOINLINE static
#define LB_EXPORT
#define LB_VECTOR(name, element, lanes) LB_ARRAY(name, element, lanes)
#define LB_LANE(v, i) ((v).lane[i])
#define LB_MAKE(name, ...) ((name){{__VA_ARGS__}})
#endif

/* Vectors that no compiler has a type for. */
#define LB_ARRAY(name, element, lanes) \
  typedef struct {                     \
    element lane[lanes];               \
  } name;
#define LB_ITEM(v, i) ((v).lane[i])
#define LB_MAKE_ARRAY(name, ...) ((name){{__VA_ARGS__}})

#define LB_BITS(before, from, after, to)               \
  LB_INLINE to lb_bits_##before##_##after(from x) {    \
    to y;                                              \
    memcpy(&y, &x, sizeof y);                          \
    return y;                                          \
  }
LB_BITS(f32, float, i32, uint32_t)
LB_BITS(i32, uint32_t, f32, float)
LB_BITS(f64, double, i64, uint64_t)
LB_BITS(i64, uint64_t, f64, double)

/* NaN when either is NaN; -0 is below +0. */
#define LB_EXTREMA(kind, type)                                              \
  LB_INLINE type lb_maximum_##kind(type a, type b) {                        \
    if (a > b || a != a) return a;                                          \
    return a == b && signbit(b) ? a : b;                                    \
  }                                                                         \
  LB_INLINE type lb_minimum_##kind(type a, type b) {                        \
    if (a < b || a != a) return a;                                          \
    return a == b && signbit(a) ? a : b;                                    \
  }
LB_EXTREMA(f32, float)
LB_EXTREMA(f64, double)

/* Towards zero, clamped to the type; NaN gives 0. The limits are exact in f64. */
#define LB_TO(kind, type, low, high, least, most) \
  LB_INLINE type lb_to_##kind(double x) {         \
    if (x != x) return 0;                         \
    if (x <= low) return least;                   \
    return x >= high ? most : (type)x;            \
  }
LB_TO(s8, int8_t, -128.0, 127.0, INT8_MIN, INT8_MAX)
LB_TO(s16, int16_t, -32768.0, 32767.0, INT16_MIN, INT16_MAX)
LB_TO(s32, int32_t, -2147483648.0, 2147483647.0, INT32_MIN, INT32_MAX)
LB_TO(s64, int64_t, -9223372036854775808.0, 9223372036854775808.0, INT64_MIN, INT64_MAX)
LB_TO(u8, uint8_t, 0.0, 255.0, 0, UINT8_MAX)
LB_TO(u16, uint16_t, 0.0, 65535.0, 0, UINT16_MAX)
LB_TO(u32, uint32_t, 0.0, 4294967295.0, 0, UINT32_MAX)
LB_TO(u64, uint64_t, 0.0, 18446744073709551616.0, 0, UINT64_MAX)

LB_INLINE int64_t lb_floordiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
LB_INLINE int64_t lb_ceildiv(int64_t a, int64_t b) { return a / b + (a % b != 0 && (a < 0) == (b < 0)); }
LB_INLINE uint64_t lb_ceildiv_u(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

LB_INLINE uint64_t lb_ctpop(uint64_t x) {
  uint64_t n = 0;
  for (; x; x &= x - 1) ++n;
  return n;
}
LB_INLINE uint64_t lb_cttz(uint64_t x, uint64_t bits) { return x ? lb_ctpop(~x & (x - 1)) : bits; }
LB_INLINE uint64_t lb_ctlz(uint64_t x, uint64_t bits) {
  for (; x; x >>= 1) --bits;
  return bits;
}

/* The upper half of a product of two 64-bit numbers, from products of halves. */
LB_INLINE uint64_t lb_high_u64(uint64_t a, uint64_t b) {
  const uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
  const uint64_t middle = ah * bl + (al * bl >> 32);
  return ah * bh + (middle >> 32) + ((al * bh + (uint32_t)middle) >> 32);
}
LB_INLINE uint64_t lb_high_s64(uint64_t a, uint64_t b) {
  return lb_high_u64(a, b) - (a >> 63 ? b : 0) - (b >> 63 ? a : 0);
}

/* 16-bit floats, rounded to nearest, ties to even. */
LB_INLINE float lb_bf16_to_f32(uint16_t x) { return lb_bits_i32_f32((uint32_t)x << 16); }
LB_INLINE uint16_t lb_f32_to_bf16(float x) {
  const uint32_t bits = lb_bits_f32_i32(x);
  if (x != x) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
LB_INLINE float lb_f16_to_f32(uint16_t x) {
  const uint32_t sign = (uint32_t)(x & 0x8000) << 16, exponent = x >> 10 & 31, fraction = x & 1023;
  if (exponent == 31) return lb_bits_i32_f32(sign | 0x7F800000 | fraction << 13);
  if (exponent == 0) return (sign ? -1.0f : 1.0f) * (float)fraction * 0x1p-24f;
  return lb_bits_i32_f32(sign | (exponent + 112) << 23 | fraction << 13);
}
LB_INLINE uint16_t lb_f32_to_f16(float x) {
  const uint32_t bits = lb_bits_f32_i32(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return (uint16_t)(sign | 0x7E00);
  if (magnitude >= 143u << 23) return (uint16_t)(sign | 0x7C00);
  /* Below the smallest normal number, adding 1/2 rounds to the last bit of a subnormal one. */
  if (magnitude < 113u << 23) return (uint16_t)(sign | (lb_bits_f32_i32(lb_bits_i32_f32(magnitude) + 0.5f) - 0x3F000000));
  return (uint16_t)(sign | (magnitude - (112u << 23) + 0xFFF + (magnitude >> 13 & 1)) >> 13);
}
/* f64 to f32 such that rounding the result once more is as rounding x once. */
LB_INLINE float lb_round_to_odd(double x) {
  const float nearest = (float)x;
  uint32_t bits = lb_bits_f32_i32(nearest);
  if ((double)nearest == x || x != x) return nearest;
  if (fabs((double)nearest) > fabs(x)) --bits;
  return lb_bits_i32_f32(bits | 1);
}
LB_INLINE uint16_t lb_f64_to_f16(double x) { return lb_f32_to_f16(lb_round_to_odd(x)); }
LB_INLINE uint16_t lb_f64_to_bf16(double x) { return lb_f32_to_bf16(lb_round_to_odd(x)); }
