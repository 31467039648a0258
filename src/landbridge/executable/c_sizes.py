"""Open dimensions in C: a struct of them, and every size of a program as an expression of its fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from math import prod

from landbridge.dtypes import numpy_dtype
from landbridge.executable.c_program import CProgram
from landbridge.executable.instance import dimensions
from landbridge.executable.parts import Function, TensorSpec
from landbridge.sizes.printing import range_text
from landbridge.sizes.size import Extent, Size
from landbridge.sizes.terms import Atom, Clamped, Floor, Symbol, Terms

#: Bits that products of dimensions without a bound may have, so that sizes are numbers of 64 bits, and one may have.
_PRODUCT_BITS, _MOST_BITS = 46, 31
#: Words that no field can be called, of C or C++.
_RESERVED = (
    "alignas alignof and asm auto bitand bitor bool break case catch char class compl const constexpr continue default "
    "delete do double else enum explicit export extern false float for friend goto if inline int long mutable new not "
    "namespace nullptr operator or private protected public register restrict return short signed sizeof static struct "
    "switch template this throw true try typedef typename union unsigned using virtual void volatile while xor"
)


def c_sizes(main: Function, program: CProgram) -> dict[str, str]:
    """The text of the header's part about open dimensions, by the words that stand for its pieces in ``c_sizes.h``."""
    symbols = dimensions(main)
    field_of = _fields(symbols)

    def text(extent: Extent) -> str:
        return _expression(extent.terms, field_of) if isinstance(extent, Size) else f"INT64_C({extent})"

    def cases(values: Iterable[tuple[int, Extent]], kind: str) -> str:
        return _lines(f"    case {number}: return ({kind})({text(extent)});" for number, extent in values)

    declared = [f"  int64_t {field_of[name]}; /* {_plain(name)}: {range_text(s)} */" for name, s in symbols.items()]
    ins, outs = (list(enumerate(map(bytes_of, side))) for side in (main.inputs, main.outputs))
    every = [program.tensor_bytes, *program.sizes, *(nbytes for _, nbytes in (*ins, *outs))]
    degree = max((_degree(size.terms) for size in every if isinstance(size, Size)), default=1)
    most = (1 << min(_MOST_BITS, _PRODUCT_BITS // max(1, degree))) - 1
    ranges = [_range(f"d->{field_of[name]}", symbol, most) for name, symbol in symbols.items()]
    guards = [f"{text(guard.found)} != {text(guard.legal)}" for guard in main.guards]
    checks = [f"  if ({wrong}) return LB_NAME_ERROR_SIZES;" for wrong in (*ranges, *guards)]
    axes = [(64 * number + axis, e) for number, spec in enumerate(main.outputs) for axis, e in enumerate(spec.shape)]
    return {
        "LB_DIMENSIONS": _lines(declared),
        "LB_CHECKS": _lines(checks),
        "LB_COMPUTED": _lines(f"  s[{number}] = {text(size)};" for number, size in enumerate(program.sizes)),
        "LB_TENSOR_BYTES": text(program.tensor_bytes),
        "LB_INPUT_BYTES": cases(ins, "uint64_t"),
        "LB_OUTPUT_BYTES": cases(outs, "uint64_t"),
        "LB_OUTPUT_EXTENTS": cases(axes, "int64_t"),
    }


def bytes_of(spec: TensorSpec) -> Extent:
    """``spec.nbytes``, where extents may be open."""
    if not any(isinstance(extent, Size) for extent in (*spec.shape, *spec.strides)):
        return spec.nbytes
    elements = prod(spec.shape)
    if spec.strides:
        elements = 1 + sum((extent - 1) * stride for extent, stride in zip(spec.shape, spec.strides, strict=True))
    return elements * numpy_dtype(spec.dtype).itemsize


def template() -> str:
    """The part itself."""
    return files(__package__).joinpath("c_sizes.h").read_text(encoding="utf-8")


def _lines(parts: Iterable[str]) -> str:
    return "\n".join(parts)


def _fields(symbols: Mapping[str, Symbol]) -> dict[str, str]:
    """A name in C for each dimension: its own where it can be one."""
    found: dict[str, str] = {}
    for name in symbols:
        word = re.sub(r"[^A-Za-z0-9_]+", "_", name)
        word = f"d_{word}" if not word[:1].isalpha() or word in _RESERVED.split() else word
        while word in found.values():
            word += "_"
        found[name] = word
    return found


def _range(place: str, symbol: Symbol, most: int) -> str:
    low = symbol.low * symbol.unit
    high = most if symbol.high is None else symbol.high * symbol.unit
    step = f" || {place} % {symbol.unit}" if symbol.unit > 1 else ""
    return f"{place} < INT64_C({low}) || {place} > INT64_C({high}){step}"


def _degree(terms: Terms) -> int:
    """How many dimensions without a bound are multiplied, at most."""
    return max((sum(power * _atom_degree(atom) for atom, power in product) for product, _ in terms), default=0)


def _atom_degree(atom: Atom) -> int:
    match atom:
        case Symbol():
            return int(atom.high is None)
        case Floor():
            return _degree(atom.numerator)
        case _:
            return _degree(atom.terms)


def _expression(terms: Terms, field_of: Mapping[str, str]) -> str:
    parts = []
    for product, number in terms:
        factors = [f"INT64_C({number})"] if number != 1 or not product else []
        for atom, power in product:
            factors += [_atom(atom, field_of)] * power
        parts.append(" * ".join(factors))
    return f"({' + '.join(parts)})" if len(parts) > 1 else parts[0] if parts else "INT64_C(0)"


def _atom(atom: Atom, field_of: Mapping[str, str]) -> str:
    match atom:
        case Symbol(name):
            return f"(d->{field_of[name]} / {atom.unit})" if atom.unit > 1 else f"d->{field_of[name]}"
        case Floor(numerator, divisor):
            return f"lb_name_floor({_expression(numerator, field_of)}, {_expression(divisor, field_of)})"
        case Clamped(terms, low, high):
            text = _expression(terms, field_of)
            text = text if high is None else f"lb_name_min({text}, INT64_C({high}))"
            return f"lb_name_max(INT64_C({low}), {text})"
        case _:
            return f"lb_name_max(INT64_C(0), {_expression(atom.terms, field_of)})"


def _plain(text: str) -> str:
    """``text`` as a comment may hold it."""
    return re.sub(r"[^ -~]|\*/", "?", text)
