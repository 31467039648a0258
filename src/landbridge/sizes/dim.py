"""Dim: a user's declaration of an open dimension."""

from __future__ import annotations

from collections.abc import Mapping

from landbridge.errors import ShapeError
from landbridge.records import record
from landbridge.sizes.parsing import parse_range
from landbridge.sizes.size import LARGEST_EXTENT, Extent, dimension
from landbridge.sizes.terms import Symbol


@record(frozen=True)
class Dim:
    """Declares an open dimension: a multiple of ``multiple_of`` from ``low`` to ``high``, both included; None is no
    bound.

    Memory is planned for ``likely``, the expected value; every other legal value works as well. The narrower the range
    and the larger the factor, the faster the code: kernels test what they do not know.
    """

    low: int = 1
    high: int | None = None
    multiple_of: int = 1
    likely: int | None = None


def dimension_of(name: str, declared: Dim | str | int) -> Extent:
    """Returns the dimension ``name`` as declared: a Dim, text like ``32..2560:8``, or a fixed number.

    Raises ShapeError if no number is legal.
    """
    if isinstance(declared, int) and not isinstance(declared, bool):
        declared = Dim(declared, declared)
    if isinstance(declared, str) and not declared.lstrip().startswith("-"):
        return parse_range(name, declared)
    if not isinstance(declared, Dim):
        raise ShapeError(f"dimension {name!r} is {declared!r}; a Dim is legal, a number, or text as '32..2560:8@320'")
    low, high, by = declared.low, declared.high, declared.multiple_of
    for field, number in (("low", low), ("high", high), ("multiple_of", by), ("likely", declared.likely)):
        if number is not None and (isinstance(number, bool) or not hasattr(number, "__index__")):
            raise ShapeError(f"dimension {name!r}: {field}={number!r} is not legal; give one integer")
    if low < 0:
        raise ShapeError(f"dimension {name!r}: {declared} is not legal; numbers of at least 0 are")
    try:
        return dimension(name, low, LARGEST_EXTENT if high is None else high, by, declared.likely)
    except (ValueError, TypeError) as error:
        raise ShapeError(f"dimension {name!r}: {error}; {declared} is not legal") from None


def declaration_of(symbol: Symbol) -> Dim:
    """Returns the Dim that declares all that is known of ``symbol``."""
    unit, likely = symbol.unit, symbol.expected
    high = None if symbol.high is None or (symbol.high + 1) * unit > LARGEST_EXTENT else symbol.high * unit
    return Dim(symbol.low * unit, high, unit, None if likely is None else likely * unit)


def either(one: Dim, other: Dim) -> Dim:
    """Returns the range from the least to the largest value of both."""
    high = None if one.high is None or other.high is None else max(one.high, other.high)
    by = one.multiple_of if one.multiple_of == other.multiple_of else 1
    return Dim(min(one.low, other.low), high, by, one.likely or other.likely)


def declared_dimensions(dims: Mapping[str, Dim | str | int]) -> dict[str, Extent]:
    """Returns the dimensions that ``dims`` declares, by name."""
    return {name: dimension_of(identifier(name), declared) for name, declared in dims.items()}


def identifier(name: str) -> str:
    """Returns ``name`` as sizes write it: every character that is no letter, digit or underscore becomes an
    underscore."""
    cleaned = "".join(c if c.isalnum() else "_" for c in name)
    return cleaned if cleaned.isidentifier() else f"_{cleaned}"
