"""The exact remainder of f32 division, for scalars and vectors of any width, with the sign of the dividend.

A step takes a quotient of few bits, rounded up so that it is right or one too large even where division is off by 2.5
ulp; then ``a - q b`` is exact, and ``b`` is added again where it is negative.
"""

from __future__ import annotations

from math import inf, nan

from landbridge.expansions.terms import Term

#: Quotients up to this are taken in one step.
LARGEST_QUOTIENT = 2.0**18
_BITS = 18
_ABOVE = 1 + 2.0**-21
# The exponents of f32 differ by less than 2**277.
_STEPS = 16
_LARGE, _SCALE = 2.0**100, 2.0**-24


def _step(a: Term, b: Term) -> Term:
    """Computes a modulo b for positive numbers whose quotient is below 2**19; a where b is infinite."""
    q = (a / b * _ABOVE).trunc()
    product = q * b
    rest = (a - product) - q.product_error(b, product)
    rest = rest.less(0.0).where(rest + b, rest)
    return q.equal(0.0).where(a, rest)


def _scaled_step(a: Term, b: Term) -> Term:
    """Computes the same where products could overflow: both operands are then large, and exact when scaled down by a
    power of 2.
    """
    large = a.not_less(_LARGE)
    small = large.where(a.like(_SCALE), 1.0)
    return _step(a * small, b * small) * large.where(a.like(1 / _SCALE), 1.0)


def _edges(x: Term, y: Term, rest: Term) -> Term:
    """Returns NaN for an infinite dividend, a divisor of 0, and NaN; else ``rest`` with the sign of the dividend."""
    legal = x.abs().less(inf) & y.abs().greater(0.0)
    return legal.where(rest.copysign(x), x.like(nan))


def small_fmod(x: Term, y: Term) -> Term:
    """Computes the remainder where the quotient's magnitude is below NEAR."""
    return _edges(x, y, _scaled_step(x.abs(), y.abs()))


def is_large(x: Term, y: Term) -> Term:
    """Returns the lanes where the quotient's magnitude may be NEAR or more."""
    return (x.abs() / y.abs()).not_less(LARGEST_QUOTIENT)


def large_fmod(x: Term, y: Term) -> Term:
    """Computes the remainder of any quotient, 18 bits a step."""
    a, b = x.abs(), y.abs()
    large = a.not_less(_LARGE)
    small = large.where(a.like(_SCALE), 1.0)
    rest = a * small
    # b 2**(18 k): infinite where it exceeds all dividends, and then nothing is subtracted.
    for k in reversed(range(2, _STEPS)):
        divisor, exponent = b, _BITS * k
        while exponent:
            part = min(exponent, 120)
            divisor, exponent = divisor * 2.0**part, exponent - part
        rest = _step(rest, divisor * small)
    rest = rest * large.where(a.like(1 / _SCALE), 1.0)
    return _edges(x, y, _scaled_step(_scaled_step(rest, b * 2.0**_BITS), b))
