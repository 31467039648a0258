"""Fourier transforms of a few points as scalar expressions: the butterflies of a fast transform."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from landbridge.ir.scalars import Value

#: Points of the largest butterfly: two parts of each of 16 points fill 32 vector registers.
MOST_POINTS = 16
#: Primes whose butterflies take fewer operations than a product with a table of their points.
_PRIMES = (2, 3, 5, 7, 11, 13)


class Complex(NamedTuple):
    """A complex scalar of a body: two floats of one dtype."""

    re: Value
    im: Value

    def plus(self, other: Complex) -> Complex:
        """Computes the sum of two."""
        return Complex(self.re + other.re, self.im + other.im)

    def minus(self, other: Complex) -> Complex:
        """Computes the difference of two."""
        return Complex(self.re - other.re, self.im - other.im)

    def times(self, other: Complex) -> Complex:
        """Computes the product of two."""
        return Complex(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def scaled(self, by: float) -> Complex:
        """Computes the product with a real constant."""
        return Complex(self.re * by, self.im * by)

    def rotated(self, quarters: int) -> Complex:
        """Computes the product with ``1j ** quarters``."""
        re, im = ((self.re, self.im), (-self.im, self.re), (-self.re, -self.im), (self.im, -self.re))[quarters % 4]
        return Complex(re, im)

    def times_root(self, step: int, points: int) -> Complex:
        """Computes the product with ``exp(2 pi i step / points)``, exact where that is a power of i."""
        quarters, rest = divmod(4 * step, points)
        if not rest:
            return self.rotated(quarters)
        re, im = (float(part(2 * np.pi * (step % points) / points)) for part in (np.cos, np.sin))
        return Complex(self.re * re - self.im * im, self.re * im + self.im * re)


@cache
def radices() -> tuple[int, ...]:
    """Returns the numbers of points that butterflies are made for: products of small primes."""
    return tuple(n for n in range(2, MOST_POINTS + 1) if _rest(n) == 1)


def _rest(n: int) -> int:
    for prime in _PRIMES:
        while n % prime == 0:
            n //= prime
    return n


@cache
def operations(points: int) -> int:
    """Returns about how many additions and multiplications of reals a butterfly of ``points`` takes."""
    first = _first_factor(points)
    if first == points:
        half = points // 2
        return 4 if points == 2 else 4 * half + 2 * half + half * (8 * half + 4)
    second = points // first
    factors = sum(4 * i * k % points != 0 for i in range(second) for k in range(first))
    return second * operations(first) + first * operations(second) + 6 * factors


def butterfly(values: Sequence[Complex], sign: int) -> list[Complex]:
    """Computes the transform of ``values``: bin k is the sum of ``values[n] * exp(sign * 2 pi i k n / len(values))``
    over n.

    ``sign`` is -1 for a transform and 1 for its inverse, which is not divided by the number of points.
    """
    points = len(values)
    if points == 1:
        return list(values)
    first = _first_factor(points)
    if first == points:
        return _of_prime(values, sign)
    second = points // first
    inner = [butterfly(values[i::second], sign) for i in range(second)]
    result: list[Complex | None] = [None] * points
    for k in range(first):
        column = [inner[i][k].times_root(sign * i * k, points) for i in range(second)]
        result[k::first] = butterfly(column, sign)
    return [bin_ for bin_ in result if bin_ is not None]


def _first_factor(points: int) -> int:
    """Returns the first factor that ``points`` are split by: 4 where it divides them, else the smallest prime."""
    if points % 4 == 0 and points > 4:
        return 4
    return next(p for p in (*_PRIMES, points) if points % p == 0)


def _of_prime(values: Sequence[Complex], sign: int) -> list[Complex]:
    """Returns the transform of a prime number of points: bins k and -k share the sums over points n and -n."""
    points, start = len(values), values[0]
    if points == 2:
        return [start.plus(values[1]), start.minus(values[1])]
    half = range(1, points // 2 + 1)
    sums = [values[n].plus(values[-n]) for n in half]
    differences = [values[n].minus(values[-n]) for n in half]
    total = start
    for each in sums:
        total = total.plus(each)
    result = [total] * points
    for k in half:
        even, odd = start, None
        for n, both, between in zip(half, sums, differences, strict=True):
            angle = 2 * np.pi * (k * n % points) / points
            even = even.plus(both.scaled(float(np.cos(angle))))
            term = between.scaled(float(np.sin(angle)) * sign)
            odd = term if odd is None else odd.plus(term)
        assert odd is not None  # a prime above 2 has pairs
        result[k], result[-k] = even.plus(odd.rotated(1)), even.minus(odd.rotated(1))
    return result
