"""Powers of f32, for scalars and vectors of any width, with C99's special cases (Annex F)."""

from __future__ import annotations

from math import factorial, inf, log, nan

from landbridge.expansions.exponentials import ROUNDER, times_power
from landbridge.expansions.terms import Term

_TWO_OVER_LN2 = float.fromhex("0x1.715476p+1")  # as a float, and what it lacks
_CUBIC = 0.9617967
_TWO_OVER_LN2_LOW = 2 / log(2) - _TWO_OVER_LN2


def pow_(x: Term, y: Term) -> Term:
    """Computes x ** y as exp2(y log2 |x|) in f64, where the series need no fits."""
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
    logarithm = exact_x.equal(0.0).where(exact_x.like(-inf), logarithm)
    logarithm = exact_x.less(inf).where(logarithm, exact_x)
    t = (exact_y * logarithm).at_most(200.0).at_least(-200.0)
    shifted = t + 1.5 * 2.0**52
    f = t - (shifted - 1.5 * 2.0**52)
    power = ((shifted.bits() + 1023) << 52).as_float()
    result = (f.poly(*(log(2) ** k / factorial(k) for k in range(12))) * power).to_single()
    return power_edges(x, y, result)


def pow_single(x: Term, y: Term) -> Term:
    """Computes x ** y without f64: log2 |x| and its product with y are sums of two floats; fits of 2 artanh(s) for s
    within tan(pi/8)**2, and of exp2 on [-1/2, 1/2].
    """
    magnitude = x.abs()
    tiny = magnitude.less(2.0**-126)
    bits = tiny.where(magnitude * 2.0**23, magnitude).bits()
    exponent = (bits - 0x3F3504F3) >> 23
    m = (bits - (exponent << 23)).as_float()  # in [sqrt(1/2), sqrt(2)]
    e = exponent.to_float() - tiny.where(x.like(23.0), 0.0)
    # s = (m - 1) / (m + 1), and the rounding errors of it and of m + 1.
    top, bottom = m - 1.0, m + 1.0
    bottom_lost = m - (bottom - 1.0)
    s = top / bottom
    product = s * bottom
    s_lost = ((top - product) - s.product_error(bottom, product) - s * bottom_lost) / bottom
    # log2 m = s (2 / ln 2) + s**3 (c + z ...), z = s**2: the first two terms with their rounding errors.
    z = s * s
    cube = s * z
    second = cube * _CUBIC
    cube_lost = s.product_error(z, cube) + s * s.product_error(s, z) + z * s_lost * 3.0
    first = s * _TWO_OVER_LN2
    both = first + second
    rest = s.product_error(_TWO_OVER_LN2, first) + cube.product_error(_CUBIC, second)
    rest = rest + (second - (both - first)) + (s * _TWO_OVER_LN2_LOW + s_lost * _TWO_OVER_LN2 + cube_lost * _CUBIC)
    rest = rest + cube * z * z.poly(0.57707906, 0.41190627, 0.33693644)
    whole = e + both
    rest = rest + (both - (whole - e))
    logarithm = whole + rest
    rest = rest - (logarithm - whole)
    # Beyond 2**32, y makes every power but that of 1 overflow or vanish.
    bounded = y.at_most(2.0**32).at_least(-(2.0**32))
    t = bounded * logarithm
    lost = bounded.product_error(logarithm, t) + bounded * rest
    inside = t.abs().less(200.0)
    t = t.at_most(200.0).at_least(-200.0)
    shifted = t + ROUNDER
    f = (t - (shifted - ROUNDER)) + inside.where(lost, 0.0)
    p = f.poly(0.6931472, 0.2402265, 0.05550406, 0.009618077, 0.0013336828, 0.00015456358, 1.45996355e-05)
    result = times_power(f.fma(p, 1.0), shifted)
    # The cases of 0 and infinity.
    infinite, zero = x.like(inf), x.like(0.0)
    of_zero = y.less(0.0).where(infinite, zero)
    of_infinity = y.less(0.0).where(zero, infinite)
    result = magnitude.equal(0.0).where(of_zero, magnitude.less(inf).where(result, of_infinity))
    result = (x.not_number() | y.not_number()).where(x + y, result)
    return power_edges(x, y, result)


def power_edges(x: Term, y: Term, result: Term) -> Term:
    """Corrects |x| ** y to x ** y, with C99's special cases."""
    magnitude = x.abs()
    whole = y.trunc().equal(y)
    odd = whole & (y * 0.5).trunc().differs(y * 0.5)
    negative = x.bits().less(0)
    result = (odd & negative).where(-result, result)
    # A negative finite base has no real power of a fraction; infinite exponents count as even.
    fraction = (y.trunc().differs(y)) & x.less(0.0) & magnitude.less(inf)
    result = fraction.where(x.like(nan), result)
    one = (x.equal(1.0) | y.equal(0.0)) | (magnitude.equal(1.0) & y.abs().equal(inf))
    return one.where(x.like(1.0), result)
