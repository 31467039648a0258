"""Polynomial expansions of the math functions of f32, for scalars and vectors of any width.

Each takes and gives Terms of f32 lanes. Errors stay below 4 ulp over all inputs, measured against 60-bit
arithmetic (see tests); zeros, infinities, NaN and subnormal results follow C99 Annex F.

The coefficients are our own near-minimax fits: least squares over 800 Chebyshev nodes in 40-digit arithmetic,
weighted for relative error of the function and reweighted towards the largest error (Lawson's method), then
rounded to f32. The interval of each fit stands beside it. Argument reductions are the classical ones of Cody
and Waite, "Software Manual for the Elementary Functions", 1980.
"""

from __future__ import annotations

from math import inf, log, nan

from landbridge.expansions.terms import Term

# ln 2 in two parts: the first has few bits, so that its product with a small integer is exact.
_LN2_HIGH, _LN2_LOW = float.fromhex("0x1.62e400p-1"), log(2) - float.fromhex("0x1.62e400p-1")
# Adding and subtracting it rounds a float below 2**22 to an integer, which then stands in the low bits.
ROUNDER = float.fromhex("0x1.8p23")
ROUNDER_BITS = 0x4B400000
_SMALLEST_NORMAL = 2.0**-126


def _exp_reduced(x: Term, n: Term) -> Term:
    """Computes exp(x - n ln 2), which lies in [sqrt(1/2), sqrt(2)]; fit on [-ln 2 / 2, ln 2 / 2]."""
    r = n.fma(-_LN2_LOW, n.fma(-_LN2_HIGH, x))
    p = r.poly(0.49999994, 0.1666652, 0.041668393, 0.008368781, 0.0013814465)
    return (r * r).fma(p, r) + 1.0


def times_power(x: Term, shifted: Term, less: int = 0, *, normal: bool = False) -> Term:
    """Computes x * 2**(n - less), where ``shifted`` is n + ROUNDER, for integers -280 < n - less < 256.

    ``normal``: the power is a normal number. Else it takes two steps without an instruction for it, so that each factor
    is one.
    """
    if x.body.scales:
        return x.body.call("scale", [x, shifted - (ROUNDER + less)])
    n = shifted.bits() - (ROUNDER_BITS + less)
    if normal:
        return x * ((n + 127) << 23).as_float()
    half = n >> 1
    first = ((half + 127) << 23).as_float()
    second = ((n - half + 127) << 23).as_float()
    return x * first * second


def exp(x: Term) -> Term:
    """Computes e ** x."""
    x = x.at_most(89.0).at_least(-104.0)
    shifted = x.fma(1 / log(2), ROUNDER)
    return times_power(_exp_reduced(x, shifted - ROUNDER), shifted)


def half_exp(a: Term) -> Term:
    """Computes e ** a / 2 for a >= 0, which overflows no sooner than the result."""
    a = a.at_most(90.0)
    shifted = a.fma(1 / log(2), ROUNDER)
    return times_power(_exp_reduced(a, shifted - ROUNDER), shifted, 1)


def exp2(x: Term) -> Term:
    """Computes 2 ** x."""
    x = x.at_most(129.0).at_least(-151.0)
    shifted = x + ROUNDER
    fraction = x - (shifted - ROUNDER)
    # e**(f ln 2), with the product's rounding error carried along.
    r = fraction * log(2)
    low = fraction.fma(log(2), -r) + fraction * (log(2) - float.fromhex("0x1.62e430p-1"))
    p = r.poly(0.49999994, 0.1666652, 0.041668393, 0.008368781, 0.0013814465)
    return times_power(((r * r).fma(p, low) + r) + 1.0, shifted)


def expm1(x: Term) -> Term:
    """Computes e ** x - 1, exact near 0; fit on [-1/2, 1/2]."""
    p = x.poly(0.50000006, 0.16666664, 0.04166536, 0.008333579, 0.0013996178, 0.00019849808)
    small = (x * x).fma(p, x)
    # Beyond the fit, 2**n (exp(r) - 1) + (2**n - 1) keeps the bits that exp(x) - 1 would lose.
    bounded = x.at_most(89.0).at_least(-18.0)
    shifted = bounded.fma(1 / log(2), ROUNDER)
    n = shifted - ROUNDER
    r = n.fma(-_LN2_LOW, n.fma(-_LN2_HIGH, bounded))
    q = r.poly(0.50000006, 0.16666664, 0.04166536, 0.008333579, 0.0013996178, 0.00019849808)
    m = (r * r).fma(q, r)
    # 2**n may overflow where the result does not: half of it, twice.
    half_power = ((shifted.bits() - ROUNDER_BITS + 126) << 23).as_float()
    large = m.fma(half_power, half_power - 0.5) * 2.0
    return x.abs().less(0.5).where(small, large).copysign(x)


def _split(x: Term) -> tuple[Term, Term]:
    """Splits x into 2**e (1 + r) with r in [-1/3, 1/3], for positive finite x, subnormals too; returns (e, r)."""
    tiny = x.less(_SMALLEST_NORMAL)
    scaled = tiny.where(x * 2.0**23, x)
    bits = scaled.bits()
    exponent = (bits - 0x3F2AAAAB) >> 23
    r = (bits - (exponent << 23)).as_float() - 1.0
    return exponent.to_float() - tiny.where(x.like(23.0), 0.0), r


def _log1p_reduced(r: Term) -> tuple[Term, Term]:
    """Computes log(1 + r) = r + t for r in [-1/3, 1/3]; returns (r, t)."""
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
    """Computes the values of a logarithm where it is no finite number: 0, negative, infinite and NaN arguments."""
    infinite = x.like(inf)
    y = x.less(inf).where(y, x)
    y = x.equal(0.0).where(-infinite, y)
    return x.less(0.0).where(x.like(nan), y)


def log_(x: Term) -> Term:
    """Computes the natural logarithm."""
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
    """Computes the logarithm to base 2."""
    high = float.fromhex("0x1.715p+0")
    return _log_base(x, 1.0, 0.0, high, 1 / log(2) - high)


def log10_(x: Term) -> Term:
    """Computes the logarithm to base 10."""
    high, scale = float.fromhex("0x1.344p-2"), float.fromhex("0x1.bccp-2")
    return _log_base(x, high, log(2) / log(10) - high, scale, 1 / log(10) - scale)


def log1p(x: Term) -> Term:
    """Computes log(1 + x), exact near 0."""
    u = x + 1.0
    # What rounding 1 + x lost, relative to u: the derivative of log brings it back.
    lost = (x - (u - 1.0)) / u
    y = log_(u)
    y = u.equal(0.0).where(y, u.less(inf).where(y + lost, y))
    return u.equal(1.0).where(x, y)


def tanh(x: Term) -> Term:
    """Computes the hyperbolic tangent; fit on [0, 5/8]."""
    a = x.abs()
    z = x * x
    p = z.poly(-0.33333284, 0.13331485, -0.05374291, 0.020648565, -0.005714678)
    small = (z * a).fma(p, a)
    # 1 - 2 / (exp(2a) + 1); above 10 it rounds to 1.
    doubled = (a + a).at_most(20.0)
    shifted = doubled.fma(1 / log(2), ROUNDER)
    e = times_power(_exp_reduced(doubled, shifted - ROUNDER), shifted, normal=True)
    large = 1.0 - 2.0 / (e + 1.0)
    return a.less(0.625).where(small, large).copysign(x)


def erf(x: Term) -> Term:
    """Computes the error function; fits on [0, 1] and, for log(1 - erf), on [1, 4]."""
    a = x.abs().at_most(4.0)
    z = x * x
    small = x.fma(
        z.poly(0.12837917, -0.37612626, 0.11283583, -0.026853692, 0.005188074, -0.0008007878, 7.846108e-05),
        x,
    )
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
    shifted = q.fma(1 / log(2), ROUNDER)
    large = (1.0 - times_power(_exp_reduced(q, shifted - ROUNDER), shifted, normal=True)).copysign(x)
    return a.less(1.0).where(small, large)
