/* What kernels printed by Landbridge are written in: C11, with vector types where the compiler has them. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "these kernels are for little-endian CPUs, and this compiler makes code for a big-endian one"
#endif

typedef int64_t lb_index;
typedef uint64_t lb_unsigned_index;

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
#define LB_BRACED(...) {__VA_ARGS__}
#else
#define LB_VECTOR_TYPES 0
#define LB_INLINE static inline
#define LB_NOINLINE static
#define LB_EXPORT
#define LB_VECTOR(name, element, lanes) LB_ARRAY(name, element, lanes)
#define LB_LANE(v, i) ((v).lane[i])
#define LB_BRACED(...) {{__VA_ARGS__}}
#endif
/* lanes: all of them, in parentheses. */
#define LB_MAKE(name, lanes) ((name)LB_BRACED lanes)

/* The lanes of a and then of b that are numbered; where the compiler shuffles nothing, the list of these lanes. */
#if LB_VECTOR_TYPES && (defined(__clang__) || __GNUC__ >= 12)
#define LB_SHUFFLE(name, a, b, lanes, ...) ((name)__builtin_shufflevector(a, b, __VA_ARGS__))
#else
#define LB_SHUFFLE(name, a, b, lanes, ...) ((name)LB_BRACED lanes)
#endif

/* Vectors that no compiler has a type for. */
#define LB_ARRAY(name, element, lanes) \
  typedef struct {                     \
    element lane[lanes];               \
  } name;
#define LB_ITEM(v, i) ((v).lane[i])
#define LB_BRACED_ARRAY(...) {{__VA_ARGS__}}
#define LB_MAKE_ARRAY(name, lanes) ((name)LB_BRACED_ARRAY lanes)

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

#define LB_F64 1
