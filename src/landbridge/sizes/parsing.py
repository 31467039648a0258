"""Parses Sizes from text, as printing.py and users write it: ``W // 8 + 1``."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from landbridge.errors import ShapeError
from landbridge.sizes.size import LARGEST_EXTENT, Extent, Size, clamped, dimension, largest, of_symbol, smallest
from landbridge.sizes.terms import Symbol, divide_exactly

_RANGE = re.compile(r"(-?\d+)(?:\.\.(-?\d+|)(?::(\d+))?(?:@(\d+))?)?")
_LEGAL = "names of dimensions, integers, + - * // /, max(...) and min(...) are legal"


def parse_size(text: str, symbols: Mapping[str, Symbol | int]) -> Extent:
    """Returns the extent that ``text`` writes over the dimensions ``symbols``, by name; one with a single value is a
    number.

    Raises ShapeError for an unknown name, for ``/`` that leaves a remainder and for a syntax error.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        return _extent(tree, symbols)
    except (SyntaxError, RecursionError, ValueError, ZeroDivisionError) as error:
        raise ShapeError(f"{text!r} is not a size: {error}; {_LEGAL}") from None


def parse_range(name: str, text: str) -> Extent:
    """Returns the dimension ``name`` with the range that ``text`` writes: ``32..2560:8``; raises ShapeError for other
    text."""
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise ShapeError(
            f"{text!r} is not a range of dimension {name!r}; legal are 32..2560, 32.., 32..2560:8, 32..2560:8@320 "
            "and 48"
        )
    low, high, unit, expected = match.groups()
    try:
        bound = int(high) if high else LARGEST_EXTENT if ".." in text else int(low)
        return dimension(name, int(low), bound, int(unit or 1), int(expected) if expected else None)
    except (ValueError, ZeroDivisionError) as error:
        raise ShapeError(f"dimension {name!r}: {error}") from None


def _extent(node: ast.expr, symbols: Mapping[str, Symbol | int]) -> Extent:
    match node:
        case ast.Constant(int(number)) if not isinstance(number, bool):
            return number
        case ast.Name(name):
            if name not in symbols:
                raise ShapeError(f"there is no dimension {name!r}; legal: {', '.join(symbols) or 'none'}")
            known = symbols[name]
            return known if isinstance(known, int) else of_symbol(known)
        case ast.UnaryOp(ast.USub(), operand):
            return -_extent(operand, symbols)
        case ast.BinOp(left, ast.Add(), right):
            return _extent(left, symbols) + _extent(right, symbols)
        case ast.BinOp(left, ast.Sub(), right):
            return _extent(left, symbols) - _extent(right, symbols)
        case ast.BinOp(left, ast.Mult(), right):
            return _extent(left, symbols) * _extent(right, symbols)
        case ast.BinOp(left, ast.FloorDiv(), right):
            return _extent(left, symbols) // _extent(right, symbols)
        case ast.BinOp(left, ast.Div(), right):
            return exactly(_extent(left, symbols), _extent(right, symbols))
        case ast.Call(ast.Name("max"), [first, *others], []):
            return largest(_extent(first, symbols), *(_extent(each, symbols) for each in others))
        case ast.Call(ast.Name("min"), [first, *others], []):
            return smallest(_extent(first, symbols), *(_extent(each, symbols) for each in others))
        case ast.Call(ast.Name("clamped"), [inner, low, *high], []) if len(high) < 2:
            ends = [_number(_extent(each, symbols)) for each in (low, *high)]
            return clamped(_extent(inner, symbols), *ends)
    raise ValueError(f"{ast.unparse(node)!r} is not legal here")


def _number(extent: Extent) -> int:
    if isinstance(extent, int):
        return extent
    raise ValueError(f"clamped ends at numbers, not at {extent}")


def exactly(left: Extent, right: Extent) -> Extent:
    """Returns ``left / right``; raises ValueError where that is not known to be an integer."""
    if not isinstance(right, int) or right < 1:
        raise ValueError(f"/ divides by a number of at least 1, not by {right}")
    if isinstance(left, Size):
        terms = divide_exactly(left.terms, right)
        if terms is not None:
            return Size(terms)
    elif left % right == 0:
        return left // right
    raise ValueError(f"{left} is not a multiple of {right}; // rounds down")
