/* What kernels printed by Landbridge are written in: OpenCL C 1.2, with doubles where a kernel uses them. */
#pragma OPENCL FP_CONTRACT ON

typedef char int8_t;
typedef uchar uint8_t;
typedef short int16_t;
typedef ushort uint16_t;
typedef int int32_t;
typedef uint uint32_t;
typedef long int64_t;
typedef ulong uint64_t;
typedef LB_INDEX lb_index;
typedef LB_UNSIGNED_INDEX lb_unsigned_index;

#define LB_INLINE static inline
#define LB_VECTOR_TYPES 1
/* lanes: all of them, in parentheses, as OpenCL C has macros of fixed arguments alone (3.0 specification, section 6.12). */
#define LB_MAKE(name, lanes) ((name)lanes)
#define LB_LANE(v, i) ((v)[i])

#define lb_bits_f32_i32(x) as_uint(x)
#define lb_bits_i32_f32(x) as_float(x)
#define lb_bits_f64_i64(x) as_ulong(x)
#define lb_bits_i64_f64(x) as_double(x)

/* In one expression, which FP_CONTRACT lets become one operation where the device has one (OpenCL C 3.0, 6.9.2). */
#define lb_mad(a, b, c) ((a) * (b) + (c))

/* Towards zero, clamped to the type; NaN gives 0 (OpenCL C 3.0, section 6.4.3.3, for _sat). */
#define lb_to_s8(x) convert_char_sat(x)
#define lb_to_s16(x) convert_short_sat(x)
#define lb_to_s32(x) convert_int_sat(x)
#define lb_to_s64(x) convert_long_sat(x)
#define lb_to_u8(x) convert_uchar_sat(x)
#define lb_to_u16(x) convert_ushort_sat(x)
#define lb_to_u32(x) convert_uint_sat(x)
#define lb_to_u64(x) convert_ulong_sat(x)

#define lb_floordiv(a, b) ((a) / (b) - ((a) % (b) != 0 && ((a) < 0) != ((b) < 0)))
#define lb_ceildiv(a, b) ((a) / (b) + ((a) % (b) != 0 && ((a) < 0) == ((b) < 0)))
#define lb_ceildiv_u(a, b) ((a) / (b) + ((a) % (b) != 0))

/* For polynomials: once rounded where that costs nothing. */
#ifdef FP_FAST_FMAF
#define lb_fma(a, b, c) fma(a, b, c)
#else
#define lb_fma(a, b, c) ((a) * (b) + (c))
#endif

/* Functions of OpenCL C take every width: the suffixed names of C are theirs too. Those that promise too little are
 * written out where a kernel uses them, and have their names from print_source. */
#define fabsf fabs
#define ceilf ceil
#define copysignf copysign
#define floorf floor
#define fmaf fma
#define fmaxf fmax
#define fminf fmin
#define rintf rint
#define roundf round
#define sqrtf sqrt
#define truncf trunc
