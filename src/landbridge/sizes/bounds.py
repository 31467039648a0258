"""Bounds of sums: the smallest and largest values that terms can have, as far as they can be derived.

Symbols are counted from their low ends, so that a product of them grows with each. A Floor is bounded by two quotients
and an AboveZero is split into its two cases, one atom at a time: what is left is a polynomial, bounded term by term. A
bound that is returned holds; a better one may exist.
"""

from __future__ import annotations

from functools import lru_cache

from landbridge.sizes.terms import (
    AboveZero,
    Atom,
    Clamped,
    Floor,
    Product,
    Symbol,
    Terms,
    add,
    as_constant,
    atoms,
    common_factor,
    constant,
    constant_part,
    divide_exactly,
    multiply,
    of_atom,
    plus_constant,
    scale,
    split_constant,
)

#: The most atoms that are replaced for one bound; atoms beyond it count as independent values.
_DEPTH = 2


def lower_bound(terms: Terms, *, thorough: bool = False) -> int | None:
    """Returns a number that ``terms`` never fall below; None if none is known. ``thorough`` tries more derivations."""
    return _lower(terms, _DEPTH + 1 if thorough else _DEPTH)


def upper_bound(terms: Terms) -> int | None:
    """Returns a number that ``terms`` never exceed; None if none is known."""
    low = _lower(scale(terms, -1), _DEPTH)
    return None if low is None else -low


def without_idle_clamps(terms: Terms) -> Terms:
    """Returns ``terms`` where each Clamped that never changes its value is that value.

    Such atoms are made on purpose (``as_one``), so that proofs treat a long sum as one.
    """
    for atom in atoms(terms):
        if isinstance(atom, Clamped) and _is_idle(atom):
            factor, others = _taken_out(terms, atom)
            if factor:
                terms = add(others, multiply(factor, atom.terms))
    return terms


def _is_idle(atom: Clamped) -> bool:
    low, high = lower_bound(atom.terms), upper_bound(atom.terms)
    return low is not None and low >= atom.low and (atom.high is None or (high is not None and high <= atom.high))


@lru_cache(maxsize=1 << 17)
def _lower(terms: Terms, depth: int) -> int | None:
    number = as_constant(terms)
    if number is not None:
        return number
    rest, number = split_constant(terms)
    if (factor := common_factor(rest)) > 1:  # for integers, whose bounds can be rounded up
        one = plus_constant(tuple((product, coefficient // factor) for product, coefficient in rest), number // factor)
        low = _lower(one, depth)
        return None if low is None else factor * low + number % factor
    best = _by_term(terms, depth)
    if depth:
        for atom in atoms(terms):
            match atom:
                case Floor():
                    bounds = [_without_floor(terms, atom, *quotient, depth - 1) for quotient in _quotients(atom, terms)]
                case AboveZero(inner):
                    bounds = [_without_rest(terms, atom, inner, depth - 1)]
                case _:
                    continue
            best = max((bound for bound in (best, *bounds) if bound is not None), default=None)
        if best is None or best < 0:
            best = max((bound for bound in (best, _by_factor(terms, depth - 1)) if bound is not None), default=None)
    return best


def _by_factor(terms: Terms, depth: int) -> int | None:
    """Returns the bound of an atom that divides every term, times that of the quotient, if neither is negative."""
    for atom, _ in terms[0][0]:
        factor, others = _taken_out(terms, atom)
        if not others and factor:
            least, low = _range(atom, depth)[0], _lower(factor, depth)
            if least is not None and low is not None and least >= 0 and low >= 0:
                return least * low
    return None


def _quotients(atom: Floor, terms: Terms) -> list[tuple[Terms, int]]:
    """Returns pairs of a numerator and a divisor whose quotient is ``atom``, also ones of other quotients in ``terms``.

    Of ``x // 18`` and ``x // 2`` the first is ``(x // 2) // 9``; of ``x // 8`` and ``3 * x // 4`` it is
    ``(3 * x // 4) // 6``. Of ``(x + 3) // 7`` and ``2 * x // 7`` it is ``(2 * x // 7 + 1) // 2``, as it is
    ``(2 * x + 7) // 14`` too.
    """
    by = as_constant(atom.divisor)
    if by is None:
        return []
    found = [(atom.numerator, by)]
    for other in atoms(terms):
        if isinstance(other, Floor) and other != atom and (part := as_constant(other.divisor)):
            times = max(other.numerator[0][1] // atom.numerator[0][1], 1)
            if times * by % part:
                continue
            difference = add(scale(atom.numerator, times), scale(other.numerator, -1))
            more = -constant_part(difference) % part
            shift = divide_exactly(plus_constant(difference, more), part) if more < times else None
            if shift is not None:
                found.append((add(of_atom(other), shift), times * by // part))
    return found


def _without_floor(terms: Terms, atom: Floor, numerator: Terms, by: int, depth: int) -> int | None:
    """Bound ``terms`` by ``numerator - by + 1 <= by * atom <= numerator``, if the atom's factor has a known sign."""
    factor, others = _taken_out(terms, atom)
    sign = _sign(factor, depth)
    if sign == 0:
        return None
    least = add(numerator, constant(1 - by)) if sign > 0 else numerator
    low = _lower(add(scale(others, by), multiply(factor, least)), depth)
    return None if low is None else -(-low // by)


def _without_rest(terms: Terms, atom: AboveZero, inner: Terms, depth: int) -> int | None:
    """Returns the lower of the bounds of an AboveZero's two cases; where the atom adds, either case gives a bound."""
    factor, others = _taken_out(terms, atom)
    sign = _sign(factor, depth)
    if sign == 0:
        return None
    cases = [_lower(others, depth), _lower(add(others, multiply(factor, inner)), depth)]
    known = [case for case in cases if case is not None]
    if sign > 0:
        return max(known, default=None)
    return min(known) if len(known) == 2 else None


def _taken_out(terms: Terms, atom: Atom) -> tuple[Terms, Terms]:
    """Returns the factor of ``atom`` and the terms without it; no factor if the atom has a power."""
    factor: list[tuple[Product, int]] = []
    others: list[tuple[Product, int]] = []
    for product, coefficient in terms:
        power = dict(product).get(atom, 0)
        if power > 1:
            return (), terms
        if power:
            factor.append((tuple(each for each in product if each[0] != atom), coefficient))
        else:
            others.append((product, coefficient))
    return add(tuple(factor)), tuple(others)


def _sign(factor: Terms, depth: int) -> int:
    """Returns 1 if ``factor`` is never negative, -1 if it is never positive, 0 if neither is known."""
    if not factor:
        return 0
    low, high = _lower(factor, depth), _upper(factor, depth)
    return 1 if low is not None and low >= 0 else -1 if high is not None and high <= 0 else 0


def _by_term(terms: Terms, depth: int) -> int | None:
    """Returns the bound of the polynomial in variables that begin at 0: each atom counted from its low end."""
    values: dict[Atom, int] = {}
    ranges: list[tuple[int | None, int | None]] = []
    shifted: dict[tuple[int, ...], int] = {}  # by the numbers of the atoms that are multiplied, sorted
    for product, coefficient in terms:
        factors: list[int] = []
        for atom, power in product:
            number = values.setdefault(atom, len(values))
            if number == len(ranges):
                ranges.append(_range(atom, depth))
            if ranges[number][0] is None:
                return _by_products(terms, depth)
            factors += [number] * power
        parts: dict[tuple[int, ...], int] = {(): coefficient}
        for number in sorted(factors):
            low = ranges[number][0] or 0
            grown = {(*key, number): value for key, value in parts.items()}
            if low:
                for key, value in parts.items():
                    grown[key] = grown.get(key, 0) + low * value
            parts = grown
        for key, value in parts.items():
            shifted[key] = shifted.get(key, 0) + value
    total = 0
    for key, coefficient in shifted.items():
        if coefficient < 0:
            most = 1
            for number in key:
                least, end = ranges[number]
                if least is None or end is None:
                    return None
                most *= end - least
            total += coefficient * most
        elif not key:
            total += coefficient
    return total


def _by_products(terms: Terms, depth: int) -> int | None:
    """Returns the sum of the bounds of each term by interval arithmetic, for atoms without a lower bound."""
    total = 0
    for product, coefficient in terms:
        low, high = 1, 1
        for atom, power in product:
            ends = _range(atom, depth)
            if ends[0] is None or ends[1] is None:
                return None
            for _ in range(power):
                corners = [x * y for x in (low, high) for y in (ends[0], ends[1])]
                low, high = min(corners), max(corners)
        total += min(coefficient * low, coefficient * high)
    return total


def _range(atom: object, depth: int) -> tuple[int | None, int | None]:
    """Returns the ends of an atom's range; None for an unknown one."""
    inner = max(depth - 1, 0)
    match atom:
        case Symbol() | Clamped():
            return atom.low, atom.high
        case AboveZero(terms):
            low, high = _lower(terms, inner), _upper(terms, inner)
            return max(low or 0, 0), None if high is None else max(high, 0)
        case Floor(numerator, divisor):
            low, high = _lower(numerator, inner), _upper(numerator, inner)
            least, most = _lower(divisor, inner), _upper(divisor, inner)
            least = max(least or 1, 1)
            by_low = (least if low < 0 else most) if low is not None else None
            down = None if low is None else (low // by_low if by_low else (0 if low >= 0 else None))
            by_high = (least if high >= 0 else most) if high is not None else None
            up = None if high is None else (high // by_high if by_high else (-1 if high < 0 else None))
            return down, up
    raise AssertionError(atom)


def _upper(terms: Terms, depth: int) -> int | None:
    low = _lower(scale(terms, -1), depth)
    return None if low is None else -low
