"""Sine, cosine and tangent of f32, for scalars and vectors of any width: small arguments by Cody and Waite's reduction,
those beyond ``TRIGONOMETRIC_LIMIT`` by Payne and Hanek's ("Radian Reduction for Trigonometric Functions", 1983).

Coefficients are fits as those of ``exponentials``.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import inf, nan, pi

from landbridge.expansions.terms import Term

# Adding and subtracting it rounds a float below 2**22 to an integer, which then stands in the low bits.
_ROUNDER = float.fromhex("0x1.8p23")
#: pi/2 in three parts of few bits each: their products with integers below 2**12 have no rounding error.
_HALF_PI = (float.fromhex("0x1.920p+0"), float.fromhex("0x1.fb4p-12"), float.fromhex("0x1.444p-24"))
#: Above it the three parts do not reach.
TRIGONOMETRIC_LIMIT = 6000.0

#: 2/pi in digits of 16 bits, the first before the point: as many as the largest f32 needs.
_TWO_OVER_PI = (
    0, 0xA2F9, 0x836E, 0x4E44, 0x1529, 0xFC27, 0x57D1, 0xF534, 0xDDC0, 0xDB62, 0x9599, 0x3C43, 0x9041,
)  # fmt: skip
#: Digits of the window of 2/pi that decides: two bits of quadrant, and enough of the fraction for what cancels.
_WINDOW = 5
# pi/2 as two floats.
_HALF_PI_HIGH = float.fromhex("0x1.921fb6p+0")
_HALF_PI_LOW = pi / 2 - _HALF_PI_HIGH


def _quadrant(x: Term) -> tuple[Term, Term]:
    """Reduces x to n pi/2 + r with r in [-pi/4, pi/4], for magnitudes up to TRIGONOMETRIC_LIMIT; returns (n, r)."""
    shifted = x.fma(2 / pi, _ROUNDER)
    n = shifted - _ROUNDER
    rest = pi / 2 - sum(_HALF_PI) + 6.123233995736766e-17  # what f64 cuts off pi/2
    r = n.fma(-_HALF_PI[2], n.fma(-_HALF_PI[1], n.fma(-_HALF_PI[0], x)))
    return shifted.bits(), n.fma(-rest, r)


def _window(start: Term) -> list[Term]:
    """Returns ``_WINDOW`` digits of 16 bits of 2/pi, from bit ``start`` on."""
    digits = [start.like(d) for d in _TWO_OVER_PI]
    needed = _WINDOW + 1
    for step in (4, 2, 1):
        skip = (start & (step << 4)).differs(0)
        retained = needed + step - 1
        digits = [skip.where(digits[i + step], digits[i]) for i in range(retained)]
    shift = 16 - (start & 15)
    return [(((a << 16) | b) >> shift) & 0xFFFF for a, b in pairwise(digits)]


def _large_quadrant(x: Term) -> tuple[Term, Term]:
    """Reduces |x| to n pi/2 + r with r in [-pi/4, pi/4], for finite x above TRIGONOMETRIC_LIMIT; returns (n, r)."""
    bits = x.bits() & 0x7FFFFFFF
    mantissa = (bits & 0x7FFFFF) | 0x800000  # |x| = mantissa * 2**(exponent - 150)
    digits = _window((bits >> 23) - (150 - 14))
    # The low 80 bits of mantissa * digits: quadrants are 2**78. The mantissa goes in two parts of 12 bits.
    low, high = mantissa & 0xFFF, mantissa >> 12
    carry = mantissa.like(0)
    found = []
    for digit in reversed(digits):
        upper = high * digit
        total = carry + low * digit + ((upper & 15) << 12)
        found.append(total & 0xFFFF)
        carry = (total >> 16) + (upper >> 4)
    d4, d3, d2, d1, d0 = found
    top = (d0 << 16) | d1
    n = ((top + (1 << 29)) >> 30) & 3
    fraction = top - (n << 30)  # of 2**30, signed, and the digits below it
    first = (fraction >> 6).to_float() * 2.0**-24
    second = (((fraction & 63) << 16) | d2).to_float() * 2.0**-46 + ((d3 << 8) | (d4 >> 8)).to_float() * 2.0**-70
    quadrants = first + second
    rest = (first - quadrants) + second
    product = quadrants * _HALF_PI_HIGH
    lost = quadrants.product_error(_HALF_PI_HIGH, product)
    return n, product + (lost + quadrants * _HALF_PI_LOW + rest * _HALF_PI_HIGH)


def _sine_or_cosine(n: Term, r: Term) -> Term:
    """Computes sin(n pi/2 + r); fits on [-pi/4, pi/4]."""
    z = r * r
    sine = (z * r).fma(z.poly(-0.16666655, 0.008332169, -0.00019516012), r)
    cosine = (z * z).fma(z.poly(0.041666646, -0.0013887355, 2.4437006e-05), z.fma(-0.5, 1.0))
    value = (n & 1).equal(0).where(sine, cosine)
    return (value.bits() ^ ((n & 2) << 30)).as_float()


def _tangent(n: Term, r: Term) -> Term:
    """Computes tan(n pi/2 + r); fit on [-pi/4, pi/4]."""
    z = r * r
    t = (z * r).fma(
        z.poly(0.3333335, 0.13332674, 0.05405921, 0.02128414, 0.010833932, 8.8802735e-05, 0.004377879),
        r,
    )
    return (n & 1).equal(0).where(t, -1.0 / t)


def sin(x: Term) -> Term:
    """Computes the sine, for magnitudes up to TRIGONOMETRIC_LIMIT."""
    n, r = _quadrant(x)
    # sin(-0) is -0, which the sums above lose.
    return x.equal(0.0).where(x, _sine_or_cosine(n, r))


def cos(x: Term) -> Term:
    """Computes the cosine, for magnitudes up to TRIGONOMETRIC_LIMIT."""
    n, r = _quadrant(x)
    return _sine_or_cosine(n + 1, r)


def tan(x: Term) -> Term:
    """Computes the tangent, for magnitudes up to TRIGONOMETRIC_LIMIT."""
    n, r = _quadrant(x)
    return x.equal(0.0).where(x, _tangent(n, r))


def _no_angle(x: Term, y: Term) -> Term:
    return x.abs().less(inf).where(y, x.like(nan))


def _odd(x: Term, y: Term) -> Term:
    return (y.bits() ^ (x.bits() & (-1 << 31))).as_float()


def large_sin(x: Term) -> Term:
    """Computes the sine, for magnitudes above TRIGONOMETRIC_LIMIT; NaN of infinities."""
    return _no_angle(x, _odd(x, _sine_or_cosine(*_large_quadrant(x))))


def large_cos(x: Term) -> Term:
    """Computes the cosine, for magnitudes above TRIGONOMETRIC_LIMIT; NaN of infinities."""
    n, r = _large_quadrant(x)
    return _no_angle(x, _sine_or_cosine(n + 1, r))


def large_tan(x: Term) -> Term:
    """Computes the tangent, for magnitudes above TRIGONOMETRIC_LIMIT; NaN of infinities."""
    return _no_angle(x, _odd(x, _tangent(*_large_quadrant(x))))


#: What continues the expansions that hold up to TRIGONOMETRIC_LIMIT alone, where no C library does.
LARGE: dict[str, Callable[[Term], Term]] = {"sin": large_sin, "cos": large_cos, "tan": large_tan}
