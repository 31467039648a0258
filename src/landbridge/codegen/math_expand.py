"""Polynomial expansions of the math functions of f32, for scalars and vectors of any width.

Each takes and gives Terms of f32 lanes. Errors stay below 4 ulp over all inputs, measured against 60-bit
arithmetic (see tests); zeros, infinities, NaN and subnormal results follow C99 Annex F.

The coefficients are our own near-minimax fits: least squares over 800 Chebyshev nodes in 40-digit arithmetic,
weighted for relative error of the function and reweighted towards the largest error (Lawson's method), then
rounded to f32. The interval of each fit stands beside it. Argument reductions are the classical ones of Cody
and Waite, "Software Manual for the Elementary Functions", 1980.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, inf, log, nan, pi

from landbridge.codegen.math_builder import Term

# ln 2 in two parts: the first has few bits, so that its product with a small integer is exact.
_LN2_HIGH, _LN2_LOW = float.fromhex("0x1.62e400p-1"), log(2) - float.fromhex("0x1.62e400p-1")
# Adding and subtracting it rounds a float below 2**22 to an integer, which then stands in the low bits.
_ROUNDER = float.fromhex("0x1.8p23")
_SMALLEST_NORMAL = 2.0**-126


def _exp_reduced(x: Term, n: Term) -> Term:
    """exp(x - n ln 2), which lies in [sqrt(1/2), sqrt(2)]; fit on [-ln 2 / 2, ln 2 / 2]."""
    r = n.fma(-_LN2_LOW, n.fma(-_LN2_HIGH, x))
    p = r.poly(0.49999994, 0.1666652, 0.041668393, 0.008368781, 0.0013814465)
    return (r * r).fma(p, r) + 1.0


def _scale(x: Term, n: Term) -> Term:
    """x * 2**n for integers -280 < n < 256, in two steps: each factor stays a normal number."""
    half = n >> 1
    first = ((half + 127) << 23).as_float()
    second = ((n - half + 127) << 23).as_float()
    return x * first * second


def exp(x: Term) -> Term:
    """e ** x."""
    x = x.at_most(89.0).at_least(-104.0)
    shifted = x.fma(1 / log(2), _ROUNDER)
    return _scale(_exp_reduced(x, shifted - _ROUNDER), shifted.bits() - 0x4B400000)


def exp2(x: Term) -> Term:
    """2 ** x."""
    x = x.at_most(129.0).at_least(-151.0)
    shifted = x + _ROUNDER
    fraction = x - (shifted - _ROUNDER)
    # e**(f ln 2), with the product's rounding error carried along.
    r = fraction * log(2)
    low = fraction.fma(log(2), -r) + fraction * (log(2) - float.fromhex("0x1.62e430p-1"))
    p = r.poly(0.49999994, 0.1666652, 0.041668393, 0.008368781, 0.0013814465)
    return _scale(((r * r).fma(p, low) + r) + 1.0, shifted.bits() - 0x4B400000)


def expm1(x: Term) -> Term:
    """e ** x - 1, exact near 0; fit on [-1/2, 1/2]."""
    p = x.poly(0.50000006, 0.16666664, 0.04166536, 0.008333579, 0.0013996178, 0.00019849808)
    near = (x * x).fma(p, x)
    # Beyond the fit, 2**n (exp(r) - 1) + (2**n - 1) keeps the bits that exp(x) - 1 would lose.
    bounded = x.at_most(89.0).at_least(-18.0)
    shifted = bounded.fma(1 / log(2), _ROUNDER)
    n = shifted - _ROUNDER
    r = n.fma(-_LN2_LOW, n.fma(-_LN2_HIGH, bounded))
    q = r.poly(0.50000006, 0.16666664, 0.04166536, 0.008333579, 0.0013996178, 0.00019849808)
    m = (r * r).fma(q, r)
    # 2**n may overflow where the result does not: half of it, twice.
    half_power = ((shifted.bits() - 0x4B400000 + 126) << 23).as_float()
    far = m.fma(half_power, half_power - 0.5) * 2.0
    return x.abs().less(0.5).where(near, far).copysign(x)


def _split(x: Term) -> tuple[Term, Term]:
    """x = 2**e (1 + r) with r in [-1/3, 1/3]: (e, r), for positive finite x, subnormals too."""
    tiny = x.less(_SMALLEST_NORMAL)
    scaled = tiny.where(x * 2.0**23, x)
    bits = scaled.bits()
    exponent = (bits - 0x3F2AAAAB) >> 23
    r = (bits - (exponent << 23)).as_float() - 1.0
    return exponent.to_float() - tiny.where(x.body.constant(23.0, "float"), 0.0), r


def _log1p_reduced(r: Term) -> tuple[Term, Term]:
    """log(1 + r) = r + t for r in [-1/3, 1/3]: (r, t)."""
    p = r.poly(
        -0.5,
        0.3333321,
        -0.24999717,
        0.20010747,
        -0.16682303,
        0.1400116,
        -0.121671855,
        0.14004762,
        -0.12948833,
    )
    return r, r * r * p


def _log_edges(x: Term, y: Term) -> Term:
    """The values of a logarithm where it is no finite number: 0, negative, infinite and NaN arguments."""
    infinite = x.body.constant(inf, "float")
    y = x.less(inf).where(y, x)
    y = x.equal(0.0).where(-infinite, y)
    return x.less(0.0).where(x.body.constant(nan, "float"), y)


def log_(x: Term) -> Term:
    """Natural logarithm."""
    e, r = _split(x)
    r, t = _log1p_reduced(r)
    return _log_edges(x, e.fma(_LN2_HIGH, e.fma(_LN2_LOW, t) + r))


def _log_base(x: Term, high: float, low: float, scale_high: float, scale_low: float) -> Term:
    e, r = _split(x)
    r, t = _log1p_reduced(r)
    # r has at most 24 bits: its product with the leading bits of the scale is kept with its error.
    product = r * scale_high
    error = r.fma(scale_high, -product)
    small = r.fma(scale_low, error) + t.fma(scale_high, t * scale_low)
    return _log_edges(x, e.fma(high, product + e.fma(low, small)))


def log2_(x: Term) -> Term:
    """Logarithm to base 2."""
    high = float.fromhex("0x1.715p+0")
    return _log_base(x, 1.0, 0.0, high, 1 / log(2) - high)


def log10_(x: Term) -> Term:
    """Logarithm to base 10."""
    high, scale = float.fromhex("0x1.344p-2"), float.fromhex("0x1.bccp-2")
    return _log_base(x, high, log(2) / log(10) - high, scale, 1 / log(10) - scale)


def log1p(x: Term) -> Term:
    """log(1 + x), exact near 0."""
    u = x + 1.0
    # What rounding 1 + x lost, relative to u: the derivative of log brings it back.
    lost = (x - (u - 1.0)) / u
    y = log_(u)
    y = u.equal(0.0).where(y, u.less(inf).where(y + lost, y))
    return u.equal(1.0).where(x, y)


def tanh(x: Term) -> Term:
    """Hyperbolic tangent; fit on [0, 5/8]."""
    a = x.abs()
    z = x * x
    p = z.poly(-0.33333284, 0.13331485, -0.05374291, 0.020648565, -0.005714678)
    near = (z * a).fma(p, a)
    # 1 - 2 / (exp(2a) + 1); above 10 it rounds to 1.
    doubled = (a + a).at_most(20.0)
    shifted = doubled.fma(1 / log(2), _ROUNDER)
    power = ((shifted.bits() - 0x4B400000 + 127) << 23).as_float()
    e = _exp_reduced(doubled, shifted - _ROUNDER) * power
    far = 1.0 - 2.0 / (e + 1.0)
    return a.less(0.625).where(near, far).copysign(x)


def erf(x: Term) -> Term:
    """Error function; fits on [0, 1] and, for log(1 - erf), on [1, 4]."""
    a = x.abs().at_most(4.0)
    z = x * x
    near = x * z.poly(1.1283791, -0.37612626, 0.112836, -0.026854444, 0.005189535, -0.0008020841, 7.889119e-05)
    q = a.poly(
        0.00018804023,
        -1.1295785,
        -0.6332199,
        -0.10841858,
        0.025208257,
        -0.004204562,
        0.00044133636,
        -2.168685e-05,
    )
    shifted = q.fma(1 / log(2), _ROUNDER)
    power = ((shifted.bits() - 0x4B400000 + 127) << 23).as_float()
    far = (1.0 - _exp_reduced(q, shifted - _ROUNDER) * power).copysign(x)
    return a.less(1.0).where(near, far)


#: pi/2 in three parts of few bits each: their products with integers below 2**12 have no rounding error.
_HALF_PI = (float.fromhex("0x1.920p+0"), float.fromhex("0x1.fb4p-12"), float.fromhex("0x1.444p-24"))
#: Above it the three parts do not reach: those arguments take the C library's function.
TRIGONOMETRIC_LIMIT = 6000.0


def _quadrant(x: Term) -> tuple[Term, Term]:
    """x = n pi/2 + r with r in [-pi/4, pi/4]: (n, r)."""
    shifted = x.fma(2 / pi, _ROUNDER)
    n = shifted - _ROUNDER
    rest = pi / 2 - sum(_HALF_PI) + 6.123233995736766e-17  # what f64 cuts off pi/2
    r = n.fma(-_HALF_PI[2], n.fma(-_HALF_PI[1], n.fma(-_HALF_PI[0], x)))
    return shifted.bits(), n.fma(-rest, r)


def _sine_or_cosine(n: Term, r: Term) -> Term:
    """sin(n pi/2 + r); fits on [-pi/4, pi/4]."""
    z = r * r
    sine = (z * r).fma(z.poly(-0.16666655, 0.008332169, -0.00019516012), r)
    cosine = (z * z).fma(z.poly(0.041666646, -0.0013887355, 2.4437006e-05), z.fma(-0.5, 1.0))
    value = (n & 1).equal(0).where(sine, cosine)
    return (value.bits() ^ ((n & 2) << 30)).as_float()


def sin(x: Term) -> Term:
    """Sine, for magnitudes up to TRIGONOMETRIC_LIMIT."""
    n, r = _quadrant(x)
    # sin(-0) is -0, which the sums above lose.
    return x.equal(0.0).where(x, _sine_or_cosine(n, r))


def cos(x: Term) -> Term:
    """Cosine, for magnitudes up to TRIGONOMETRIC_LIMIT."""
    n, r = _quadrant(x)
    return _sine_or_cosine(n + 1, r)


def pow_(x: Term, y: Term) -> Term:
    """x ** y as exp2(y log2 |x|) in f64, where the series need no fits; then C99's special cases."""
    magnitude = x.abs()
    exact_x, exact_y = magnitude.to_double(), y.to_double()
    # |x| = 2**e m, m in [sqrt(1/2), sqrt(2)]; log m = 2 artanh((m - 1) / (m + 1)). Every f32 is normal in f64.
    bits = exact_x.bits()
    exponent = (bits - 0x3FE6A09E667F3BCD) >> 52
    m = (bits - (exponent << 52)).as_float()
    s = (m - 1.0) / (m + 1.0)
    series = (s * s).poly(*(2 / log(2) / (2 * k + 1) for k in range(8)))
    exponent = exponent.to_double()
    logarithm = s.fma(series, exponent)
    logarithm = exact_x.equal(0.0).where(x.body.constant(-inf, "double"), logarithm)
    logarithm = exact_x.less(inf).where(logarithm, exact_x)
    t = (exact_y * logarithm).at_most(200.0).at_least(-200.0)
    shifted = t + 1.5 * 2.0**52
    f = t - (shifted - 1.5 * 2.0**52)
    power = ((shifted.bits() + 1023) << 52).as_float()
    result = (f.poly(*(log(2) ** k / factorial(k) for k in range(12))) * power).to_single()
    return power_edges(x, y, result)


def pow_single(x: Term, y: Term) -> Term:
    """x ** y without f64: the error grows with y log2 |x|, to some hundred ulp where that is near 127."""
    logarithm = log2_(x.abs())
    product = y * logarithm
    lost = y.fma(logarithm, -product)
    finite = product.abs().less(256.0)
    result = exp2(product)
    result = finite.where(result + result * (lost * log(2)), result)
    return power_edges(x, y, result)


def power_edges(x: Term, y: Term, result: Term) -> Term:
    """|x| ** y as x ** y, with C99's special cases."""
    magnitude = x.abs()
    whole = y.trunc().equal(y)
    odd = whole & (y * 0.5).trunc().differs(y * 0.5)
    negative = x.bits().less(0)
    result = (odd & negative).where(-result, result)
    # A negative finite base has no real power of a fraction; infinite exponents count as even.
    fraction = (y.trunc().differs(y)) & x.less(0.0) & magnitude.less(inf)
    result = fraction.where(x.body.literal(nan, x.kind), result)
    one = (x.equal(1.0) | y.equal(0.0)) | (magnitude.equal(1.0) & y.abs().equal(inf))
    return one.where(x.body.literal(1.0, x.kind), result)


#: The expansion of each function, by the name C gives it.
EXPANSIONS: dict[str, Callable[..., Term]] = {
    "exp": exp,
    "exp2": exp2,
    "expm1": expm1,
    "log": log_,
    "log2": log2_,
    "log10": log10_,
    "log1p": log1p,
    "tanh": tanh,
    "erf": erf,
    "sin": sin,
    "cos": cos,
    "pow": pow_,
}

#: Functions whose expansion holds only for magnitudes up to the limit; others take the C library's.
LIMITED: dict[str, float] = {"sin": TRIGONOMETRIC_LIMIT, "cos": TRIGONOMETRIC_LIMIT}
