"""Functions of f64 that GLSL.std.450 has for f32 alone, from arithmetic: series long enough for the last bits.

Argument reductions are those of Cody and Waite, "Software Manual for the Elementary Functions", 1980; the series are
Taylor's, of exp on [-ln 2 / 2, ln 2 / 2] and of 2 artanh s = log((1 + s) / (1 - s)).
"""

from __future__ import annotations

from math import factorial, inf, log, nan

from landbridge.expansions.power import power_edges
from landbridge.expansions.terms import Term

# ln 2 in two parts: the product of the first with an integer below 2**21 is exact.
_LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
# Adding and subtracting it rounds a double below 2**51 to an integer, which then stands in the low bits.
_ROUNDER = 1.5 * 2.0**52
_ROUNDER_BITS = 0x4338000000000000
_SMALLEST_NORMAL = 2.0**-1022
#: Whole exponents below it are powers by squaring, exact where the result is.
_SQUARINGS = 11


def exp(x: Term) -> Term:
    """Computes e ** x."""
    bounded = x.at_most(710.0).at_least(-746.0)
    shifted = bounded.fma(1 / log(2), _ROUNDER)
    n = shifted - _ROUNDER
    r = n.fma(-_LN2_LOW, n.fma(-_LN2_HIGH, bounded))
    power = r.poly(*(1 / factorial(k) for k in range(14)))
    exponent = shifted.bits() - _ROUNDER_BITS
    half = exponent >> 1
    first = ((half + 1023) << 52).as_float()
    second = ((exponent - half + 1023) << 52).as_float()
    return power * first * second


def expm1(x: Term) -> Term:
    """Computes e ** x - 1, exact near 0."""
    small = x * x.poly(*(1 / factorial(k + 1) for k in range(15)))
    return x.abs().less(0.5).where(small, exp(x) - 1.0)


def log_(x: Term) -> Term:
    """Computes the natural logarithm."""
    tiny = x.less(_SMALLEST_NORMAL)
    scaled = tiny.where(x * 2.0**54, x)
    bits = scaled.bits()
    exponent = (bits - 0x3FE6A09E667F3BCD) >> 52  # of a fraction in [sqrt(1/2), sqrt(2)]
    m = (bits - (exponent << 52)).as_float()
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    tail = z * s * z.poly(*(2 / (2 * k + 3) for k in range(11)))
    e = exponent.to_double() - tiny.where(x.like(54.0), 0.0)
    y = e.fma(_LN2_HIGH, s + (s + e.fma(_LN2_LOW, tail)))
    y = x.less(inf).where(y, x)
    y = x.equal(0.0).where(x.like(-inf), y)
    return x.less(0.0).where(x.like(nan), y)


def pow_(x: Term, y: Term) -> Term:
    """Computes x ** y: by squaring for integer y of small magnitude, else from the logarithm, to some hundred ulp."""
    magnitude = x.abs()
    steps = y.abs()
    count = (steps + _ROUNDER).bits()
    whole = x.like(1.0)
    square = magnitude
    for k in range(_SQUARINGS):
        whole = ((count >> k) & 1).equal(1).where(whole * square, whole)
        square = square * square
    whole = y.less(0.0).where(1.0 / whole, whole)
    is_whole = y.trunc().equal(y) & steps.less(2.0**_SQUARINGS)
    product = (y * log_(magnitude)).at_most(800.0).at_least(-800.0)
    return power_edges(x, y, is_whole.where(whole, exp(product)))
