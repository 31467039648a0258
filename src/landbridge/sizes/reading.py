"""Reads Sizes from files, where the same parts are written in many of them: each is read once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, MutableMapping
from operator import mul

from landbridge.sizes.parsing import exactly, parse_size
from landbridge.sizes.size import Extent, Size, clamped, largest, of_symbol, smallest
from landbridge.sizes.terms import AboveZero, Floor, Symbol, constant, of_atom

_TOKEN = re.compile(r" *(?:([0-9]+)|([A-Za-z_][A-Za-z_0-9]*)|(//|[-+*/(),]))")
_BRACKET = re.compile(r"[()]")


def read_parts(text: str, symbols: Mapping[str, Symbol | int], parts: MutableMapping[str, Extent]) -> Extent:
    """Returns the extent that ``text`` writes over the dimensions ``symbols``, by name.

    For text that ``printing.py`` wrote it is what was printed, and what ``parse_size`` returns. Quotients and maxima of
    other text stay as they are written. ``parts`` has the values of what is in brackets, by its text, for these
    ``symbols``; what is read is added. Raises ShapeError as ``parse_size``.
    """
    try:
        return _Reader(text, symbols, parts).whole()
    except (_UnknownError, RecursionError, ValueError, ZeroDivisionError):
        return parse_size(text, symbols)  # it says what is wrong


class _UnknownError(Exception):
    """The text is not one that ``printing.py`` writes."""


class _Reader:
    """Reads one text from its beginning to its end."""

    def __init__(self, text: str, symbols: Mapping[str, Symbol | int], parts: MutableMapping[str, Extent]) -> None:
        self._text, self._symbols, self._parts = text, symbols, parts
        #: Where the next token begins, and the token: an operator, a bracket, a number or a name; "" at the end.
        self._next, self._token = 0, ""
        self._closes = _closing(text)
        self._advance()

    def whole(self) -> Extent:
        """Returns the extent that the text writes."""
        found = self._sum()
        if self._token:
            raise _UnknownError
        return found

    def _advance(self) -> None:
        match = _TOKEN.match(self._text, self._next)
        if match is None:
            if self._text[self._next :].strip(" "):
                raise _UnknownError
            self._token = ""
            return
        self._next, self._token = match.end(), match[match.lastindex or 0]

    def _take(self, token: str) -> None:
        if self._token != token:
            raise _UnknownError
        self._advance()

    def _sum(self) -> Extent:
        found = self._product()
        while (token := self._token) in ("+", "-"):
            self._advance()
            found = found + self._product() if token == "+" else found - self._product()
        return found

    def _product(self) -> Extent:
        found = self._factor()
        while (token := self._token) in _PRODUCTS:
            self._advance()
            right = self._factor()
            found = (
                found * right if token == "*" else _quotient(found, right) if token == "//" else exactly(found, right)
            )
        return found

    def _factor(self) -> Extent:
        token = self._token
        if token == "-":
            self._advance()
            return -self._factor()
        if token.isdigit():
            self._advance()
            return int(token)
        if token == "(":
            return self._bracket("")
        self._advance()
        if self._token == "(":
            return self._bracket(token)
        known = self._symbols.get(token)
        if known is None:
            raise _UnknownError
        return known if isinstance(known, int) else of_symbol(known)

    def _bracket(self, function: str) -> Extent:
        """Returns the value of what is in the brackets that begin here, or of ``function`` called with that."""
        begin = self._next - 1
        end = self._closes.get(begin)
        if end is None:
            raise _UnknownError
        part = function + self._text[begin:end]
        found = self._parts.get(part)
        if found is None:
            self._advance()
            values = [self._sum()]
            while self._token == ",":
                self._advance()
                values.append(self._sum())
            if self._token != ")":
                raise _UnknownError
            found = self._parts[part] = _called(function, values)
        self._next = end
        self._advance()
        return found


def _quotient(left: Extent, right: Extent) -> Extent:
    """Returns ``left // right`` as it is written: what was simplified when it was made needs no proofs again."""
    if isinstance(left, Size) and isinstance(right, int) and right > 1:
        return Size(of_atom(Floor(left.terms, constant(right))))
    return left // right


_PRODUCTS: dict[str, Callable[[Extent, Extent], Extent]] = {"*": mul, "//": _quotient, "/": exactly}


def _called(function: str, values: list[Extent]) -> Extent:
    match function, values:
        case "", [inner]:
            return inner
        case "max", [0, Size() as inner]:  # as it is written, too
            return Size(of_atom(AboveZero(inner.terms)))
        case "max", [first, *others]:
            return largest(first, *others)
        case "min", [first, *others]:
            return smallest(first, *others)
        case "clamped", [inner, int(low), *ends] if len(ends) < 2 and all(isinstance(end, int) for end in ends):
            return clamped(inner, low, *(int(end) for end in ends))
    raise _UnknownError


def _closing(text: str) -> dict[int, int]:
    """Returns for each bracket that opens where its text ends, by where it begins."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for match in _BRACKET.finditer(text):
        if match[0] == "(":
            opened.append(match.start())
        elif opened:
            found[opened.pop()] = match.end()
    return found
