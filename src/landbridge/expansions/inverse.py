"""Inverse and hyperbolic functions and roots of f32, for scalars and vectors of any width: for targets whose own are
not exact enough.

Errors stay below 3 ulp. Coefficients are fits as those of ``exponentials``, on the intervals stated; identities are
those of Abramowitz and Stegun, chapter 4.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log, nan, pi

from landbridge.expansions.exponentials import exp, expm1, half_exp, log1p, log_
from landbridge.expansions.terms import Term

# pi/2 as two floats.
_HALF_PI = float.fromhex("0x1.921fb6p+0")
_HALF_PI_LOW = pi / 2 - _HALF_PI
_LN2 = log(2)


def _asin_tail(z: Term) -> Term:
    """Computes the tail of asin(s) = s + s z tail with z = s**2; fit on [0, 1/4]."""
    return z.poly(0.1666666, 0.07500518, 0.044514578, 0.03182587, 0.01437479, 0.037600663)


def _halved(a: Term) -> tuple[Term, Term]:
    """Computes asin(sqrt((1 - a) / 2)) for a in [1/2, 1], half of acos(a), as a sum of two; NaN above 1."""
    z = (1.0 - a) * 0.5
    s = root(z)
    lost = -s.product_error(s, z) / (s + s)  # the rounding error of the root
    lost = z.greater(0.0).where(lost, a.greater(1.0).where(a.like(nan), 0.0))
    return s, lost + s * z * _asin_tail(z)


def asin(x: Term) -> Term:
    """Computes the inverse sine."""
    a, z = x.abs(), x * x
    s, rest = _halved(a)
    large = _HALF_PI - ((s + s) - (_HALF_PI_LOW - (rest + rest)))
    small = (a * z).fma(_asin_tail(z), a)
    return a.greater(0.5).where(large, small).copysign(x)


def acos(x: Term) -> Term:
    """Computes the inverse cosine."""
    a, z = x.abs(), x * x
    s, rest = _halved(a)
    right = (s + rest) * 2.0
    left = 2.0 * _HALF_PI - ((s + s) + ((rest + rest) - 2.0 * _HALF_PI_LOW))
    small = _HALF_PI - (x + ((x * z) * _asin_tail(z) - _HALF_PI_LOW))
    return x.greater(0.5).where(right, x.less(-0.5).where(left, small))


def _arc(numerator: Term, denominator: Term) -> Term:
    """Computes atan(numerator / denominator) for 0 <= numerator <= denominator; fit on [0, tan(pi/8)]."""
    above = numerator.greater(denominator * 0.41421357)
    # atan(a / b) = pi/4 + atan((a - b) / (a + b))
    t = above.where(numerator - denominator, numerator) / above.where(numerator + denominator, denominator)
    z = t * t
    tail = t * z * z.poly(-0.33333316, 0.19998534, -0.14244549, 0.10600485, -0.060935535)
    quarter = t + (tail + _HALF_PI_LOW / 2)
    return above.where(quarter + _HALF_PI / 2, t + tail)


def atan(x: Term) -> Term:
    """Computes the inverse tangent."""
    a = x.abs()
    steep = a.greater(1.0)
    one = x.like(1.0)
    arc = _arc(steep.where(one, a), steep.where(a, one))
    arc = steep.where(_HALF_PI - (arc - _HALF_PI_LOW), arc)
    return a.less(inf).where(arc, x.not_number().where(a, _HALF_PI)).copysign(x)


def atan2(y: Term, x: Term) -> Term:
    """Computes the angle of the point (x, y)."""
    a, b = y.abs(), x.abs()
    large = a.not_less(2.0**100) | b.not_less(2.0**100)  # sums of the two must not overflow
    scale = large.where(x.like(2.0**-30), 1.0)
    both = a.equal(inf) & b.equal(inf)
    one = x.like(1.0)
    a, b = both.where(one, a * scale), both.where(one, b * scale)
    steep = a.greater(b)
    least, most = steep.where(b, a), steep.where(a, b)
    ratio = _arc(least, most)
    arc = least.equal(0.0).where(least, most.equal(inf).where(x.like(0.0), ratio))
    arc = steep.where(_HALF_PI - (arc - _HALF_PI_LOW), arc)
    arc = x.bits().less(0).where(2.0 * _HALF_PI - (arc - 2.0 * _HALF_PI_LOW), arc)
    nan_found = x.not_number() | y.not_number()
    return nan_found.where(x + y, arc.copysign(y))


def cosh(x: Term) -> Term:
    """Computes the hyperbolic cosine."""
    half = half_exp(x.abs())
    return half + 0.25 / half


def sinh(x: Term) -> Term:
    """Computes the hyperbolic sine."""
    a = x.abs()
    m = expm1(a)
    small = (m + m / (m + 1.0)) * 0.5
    return a.less(20.0).where(small, half_exp(a)).copysign(x)


def asinh(x: Term) -> Term:
    """Computes the inverse hyperbolic sine."""
    a = x.abs()
    z = a * a
    small = log1p(a + z / (root(z + 1.0) + 1.0))
    return a.less(1e9).where(small, log_(a) + _LN2).copysign(x)


def acosh(x: Term) -> Term:
    """Computes the inverse hyperbolic cosine; NaN below 1."""
    t = x - 1.0
    y = x.less(1e9).where(log1p(t + root(t * (x + 1.0))), log_(x) + _LN2)
    return x.less(1.0).where(x.like(nan), y)


def atanh(x: Term) -> Term:
    """Computes the inverse hyperbolic tangent; NaN beyond -1 and 1."""
    a = x.abs()
    y = (log1p((a + a) / (1.0 - a)) * 0.5).copysign(x)
    return a.greater(1.0).where(x.like(nan), y)


def cbrt(x: Term) -> Term:
    """Computes the cube root: from the logarithm, then one step of Newton's method on y**3 = x."""
    a = x.abs()
    y = exp(log_(a) * (1 / 3))
    y = y - (y * y * y - a) / (y * y * 3.0)
    finite = a.less(inf) & a.greater(0.0)
    return finite.where(y.copysign(x), x)


def root(x: Term) -> Term:
    """Computes the square root."""
    return x.body.call("sqrt", [x])


#: The expansion of each function, by the name C gives it.
EXPANSIONS: dict[str, Callable[..., Term]] = {
    "asin": asin, "acos": acos, "atan": atan, "atan2": atan2, "sinh": sinh, "cosh": cosh, "asinh": asinh,
    "acosh": acosh, "atanh": atanh, "cbrt": cbrt,
}  # fmt: skip
