/* What kernels printed in the C family share. The file before this one defines LB_INLINE, the bits of floats as
 * integers, and LB_F64 where doubles can be computed on. */

#ifndef LB_EXTREMA
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
#endif
LB_EXTREMA(f32, float)
#ifdef LB_F64
LB_EXTREMA(f64, double)
#endif

/* Floats as arithmetic reads them: zero of its sign where that flushes a denormal number. What looks at bits is given
 * these: it would take the exponent of what its arithmetic finds to be 0. */
#define LB_AS_READ(kind, type)                \
  LB_INLINE type lb_as_read_##kind(type x) {  \
    if (x != 0) return x;                     \
    return signbit(x) ? -(type)0 : (type)0;   \
  }
LB_AS_READ(f32, float)
#ifdef LB_F64
LB_AS_READ(f64, double)
#endif

#ifndef LB_BYTE_DOT
/* The sum of four products of bytes, those of x without and those of y with a sign. */
LB_INLINE uint32_t lb_byte_dot(uint32_t x, uint32_t y) {
  int32_t sum = 0;
  for (int i = 0; i < 32; i += 8) {
    int32_t byte = (int32_t)((y >> i) & 255u);
    sum += (int32_t)((x >> i) & 255u) * (byte < 128 ? byte : byte - 256);
  }
  return (uint32_t)sum;
}
#endif

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
#ifdef LB_F64
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
#endif
