"""Quotients of sums, rounded down, in canonical form.

Whole multiples of the divisor are moved out; the rest has a positive first coefficient, shares no factor with the
divisor and is no quotient itself. A quotient that has the same value for all dimensions becomes that number.
"""

from __future__ import annotations

from functools import lru_cache

from landbridge.sizes.bounds import lower_bound, upper_bound
from landbridge.sizes.terms import (
    KNOWN,
    Floor,
    Product,
    Terms,
    add,
    as_constant,
    common_factor,
    constant,
    divide_exactly,
    divide_product,
    multiply,
    of_atom,
    scale,
    split_constant,
)

#: The most steps of a long division; a quotient of more terms is left as it is.
_STEPS = 64


@lru_cache(maxsize=KNOWN)
def floor(terms: Terms, by: int) -> Terms:
    """Returns ``terms // by``, for a number ``by`` of at least 1."""
    parts, number = split_constant(terms)
    whole: list[tuple[Product, int]] = []
    rest: list[tuple[Product, int]] = []
    for product, coefficient in parts:
        quotient = abs(coefficient) // by * (1 if coefficient > 0 else -1)
        if quotient:
            whole.append((product, quotient))
        if coefficient - quotient * by:
            rest.append((product, coefficient - quotient * by))
    outside, number = add(tuple(whole), constant(number // by)), number % by
    return add(outside, _of_rest(tuple(rest), number, by)) if rest else outside


def _of_rest(rest: Terms, number: int, by: int) -> Terms:
    """Returns ``(rest + number) // by``, for coefficients and a number below ``by``."""
    if rest[0][1] < 0:  # floor(-x / by) is -ceil(x / by)
        return scale(floor(add(scale(rest, -1), constant(by - 1 - number)), by), -1)
    factor = common_factor((*rest, ((), by)))
    if factor > 1:
        divided = divide_exactly(rest, factor)
        assert divided is not None
        return floor(add(divided, constant(number // factor)), by // factor)
    match rest:
        case ((((Floor(inner, divisor), 1),), 1),):
            if (inner_by := as_constant(divisor)) is not None:  # (x // a + c) // b is (x + a * c) // (a * b)
                return floor(add(inner, constant(number * inner_by)), inner_by * by)
    terms = add(rest, constant(number))
    low, high = lower_bound(terms), upper_bound(terms)
    if low is not None and high is not None and low // by == high // by:
        return constant(low // by)
    return of_atom(Floor(terms, constant(by)))


@lru_cache(maxsize=KNOWN)
def floor_by_terms(terms: Terms, divisor: Terms) -> Terms:
    """Returns ``terms // divisor``, for a sum of at least 1; exact if it is a factor. Common factors are cancelled."""
    shared = positive_factor((*terms, *divisor)) if terms else ()
    if shared:
        terms, divisor = without_factor(terms, shared), without_factor(divisor, shared)
        number = as_constant(divisor)
        return floor_by_terms(terms, divisor) if number is None else floor(terms, number)
    quotient, left = _long_division(terms, divisor)
    for less in (0, 1):  # m * n - 1 divided by n is m - 1, with n - 1 left
        over = add(left, scale(divisor, less))
        if _is_natural(over) and _is_natural(add(divisor, scale(over, -1), constant(-1))):
            return add(quotient, constant(-less))
    low, below = lower_bound(terms), lower_bound(add(divisor, scale(terms, -1)))
    if low is not None and low >= 0 and below is not None and below > 0:
        return ()
    return of_atom(Floor(terms, divisor))


def positive_factor(terms: Terms) -> Product:
    """Returns the product of atoms that divides all of ``terms``, at least one term; the atoms are at least 1."""
    shared: Product = terms[0][0]
    for product, _ in terms[1:]:
        powers = dict(product)
        shared = tuple((atom, min(n, powers[atom])) for atom, n in shared if atom in powers)
    return tuple(each for each in shared if (lower_bound(of_atom(each[0])) or 0) >= 1)


def without_factor(terms: Terms, factor: Product) -> Terms:
    """Returns ``terms`` divided by ``factor``, which divides each of them."""
    return add(tuple((divide_product(product, factor) or (), number) for product, number in terms))


def _is_natural(terms: Terms) -> bool:
    low = lower_bound(terms)
    return low is not None and low >= 0


def _long_division(terms: Terms, divisor: Terms) -> tuple[Terms, Terms]:
    """Returns the quotient, in the order of products, and the remainder: ``terms`` is ``quotient * divisor + left``."""
    quotient: Terms = ()
    lead, by = divisor[0]
    left = terms
    for _ in range(_STEPS):
        if not left:
            break
        first, coefficient = left[0]
        powers = dict(first)
        for atom, power in lead:
            powers[atom] = powers.get(atom, 0) - power
        if coefficient % by or any(power < 0 for power in powers.values()):
            break
        step: Terms = ((tuple((atom, powers[atom]) for atom, _ in first if powers[atom]), coefficient // by),)
        quotient = add(quotient, step)
        left = add(left, scale(multiply(step, divisor), -1))
    return quotient, left
