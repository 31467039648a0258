"""Open dimensions in C: a struct of them, and every size of a program as an expression of its fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import accumulate, repeat
from math import prod

from landbridge.dtypes import dtype as dtype_of
from landbridge.executable.c_program import CProgram
from landbridge.executable.instance import dimensions
from landbridge.executable.parts import TensorSpec
from landbridge.sizes.printing import range_text
from landbridge.sizes.size import Extent, Size
from landbridge.sizes.terms import Atom, Clamped, Floor, Symbol, Terms, as_constant

#: Bits that products of dimensions without a bound may have, so that sizes are numbers of 64 bits, and one may have.
_PRODUCT_BITS, _MOST_BITS = 46, 31
#: The largest number of 64 bits.
_LARGEST = (1 << 63) - 1
#: Words that no field can be called, of C or C++.
_RESERVED = (
    "alignas alignof and asm auto bitand bitor bool break case catch char class compl const constexpr continue default "
    "delete do double else enum explicit export extern false float for friend goto if inline int long mutable new not "
    "namespace nullptr operator or private protected public register restrict return short signed sizeof static struct "
    "switch template this throw true try typedef typename union unsigned using virtual void volatile while xor"
)


def c_sizes(programs: Sequence[CProgram]) -> dict[str, str]:
    """Returns the texts of the header's part about open dimensions, by the placeholders for them in ``c_sizes.h``.

    ``programs`` are the specializations; the first that takes the dimensions runs.
    """
    symbols: dict[str, Symbol] = {}
    for program in programs:
        symbols = {**dimensions(program.function), **symbols}
    first = dimensions(programs[0].function)
    symbols = {**{name: symbols[name] for name in first}, **symbols}
    fields = _fields(symbols)
    declared_shapes = _declared_extents(programs)
    legal = {name: _legal(name, programs, declared_shapes) for name in symbols}
    declared = [f"  int64_t {fields[name]}; /* {_plain(name)}: {legal[name]} */" for name in symbols]
    variants = [_Specialization(program, number, fields, declared_shapes) for number, program in enumerate(programs)]
    starts = accumulate((program.table_words for program in programs), initial=0)

    def cases(text: str, values: Iterable[object] = repeat("")) -> str:
        return _lines(
            f"    case {specialization.number}: {text.format(specialization.number, value)}"
            for specialization, value in zip(variants, values, strict=False)
        )

    return {
        "LB_DIMENSIONS": _lines(declared),
        "LB_WAYS": "\n".join(specialization.text() for specialization in variants).rstrip(),
        "LB_CHOICES": _lines(
            f"  if (lb_name_takes_{specialization.number}(d)) return {specialization.number};"
            for specialization in variants
        ),
        "LB_COMPUTE": cases("lb_name_compute_sizes_{}(d, s); break;"),
        "LB_OFFSETS": cases("return INT64_C({1});", starts),
        "LB_MEMORY": cases("return LB_TENSORS + lb_name_tensor_bytes_{}(d);"),
        "LB_INPUTS_BYTES": cases("return lb_name_input_bytes_{}(d, index);"),
        "LB_OUTPUTS_BYTES": cases("return lb_name_output_bytes_{}(d, index);"),
        "LB_EXTENTS": cases("return lb_name_output_extent_{}(d, index, axis);"),
    }


def _declared_extents(programs: Sequence[CProgram]) -> list[Extent]:
    """Returns the extent of each axis of the inputs: that of the first program in which it is open, else its number."""
    axes = zip(*([e for spec in p.function.inputs for e in spec.shape] for p in programs), strict=True)
    return [next((e for e in each if isinstance(e, Size)), each[0]) for each in axes]


def _legal(name: str, programs: Sequence[CProgram], declared_shapes: Sequence[Extent]) -> str:
    """Returns a text about the legal values of the dimension ``name``."""
    found: list[str] = []
    for program in programs:
        symbol = dimensions(program.function).get(name)
        if symbol is not None:
            found.append(range_text(symbol))
            continue
        axes = [e for spec in program.function.inputs for e in spec.shape]
        found += [
            str(e)
            for e, extent in zip(axes, declared_shapes, strict=True)
            if isinstance(extent, Size) and str(extent) == name
        ][:1]
    return " or ".join(dict.fromkeys(found))


class _Specialization:
    """The functions of one specialization."""

    def __init__(
        self, program: CProgram, number: int, fields: Mapping[str, str], declared_shapes: Sequence[Extent]
    ) -> None:
        self.number = number
        self._program, self._fields, self._declared = program, fields, declared_shapes

    def text(self) -> str:
        function = self._program.function
        ins, outs = (list(enumerate(map(bytes_of, side))) for side in (function.inputs, function.outputs))
        axes = [(64 * n + axis, e) for n, spec in enumerate(function.outputs) for axis, e in enumerate(spec.shape)]
        sizes = [self._program.tensor_bytes, *self._program.sizes, *(nbytes for _, nbytes in (*ins, *outs))]
        pieces = {
            "LB_CHECKS": _lines(f"  if ({wrong}) return 0;" for wrong in self._wrong(sizes)),
            "LB_COMPUTED": _lines(f"  s[{n}] = {self._extent(s)};" for n, s in enumerate(self._program.sizes)),
            "LB_TENSOR_BYTES": self._extent(self._program.tensor_bytes),
            "LB_INPUT_BYTES": self._cases(ins, "uint64_t"),
            "LB_OUTPUT_BYTES": self._cases(outs, "uint64_t"),
            "LB_OUTPUT_EXTENTS": self._cases(axes, "int64_t"),
            "LB_WAY": str(self.number),
        }
        text = files(__package__).joinpath("c_way.h").read_text(encoding="utf-8")
        for word, value in pieces.items():
            text = text.replace(word, value)
        return text

    def _wrong(self, sizes: Sequence[Extent]) -> Iterator[str]:
        """Yields conditions under which the dimensions do not fit this specialization."""
        function = self._program.function
        degree = max((_degree(size.terms) for size in sizes if isinstance(size, Size)), default=1)
        most = (1 << min(_MOST_BITS, _PRODUCT_BITS // max(1, degree))) - 1
        for name, symbol in dimensions(function).items():
            yield _range(f"d->{self._fields[name]}", symbol, most)
        axes = [e for spec in function.inputs for e in spec.shape]
        for extent, declared_shapes in zip(axes, self._declared, strict=True):
            if extent != declared_shapes:
                yield f"{self._extent(extent)} != {self._extent(declared_shapes)}"
        for guard in function.guards:
            yield f"{self._extent(guard.found)} != {self._extent(guard.legal)}"

    def _extent(self, extent: Extent) -> str:
        return _expression(extent.terms, self._fields) if isinstance(extent, Size) else f"INT64_C({extent})"

    def _cases(self, values: Iterable[tuple[int, Extent]], kind: str) -> str:
        return _lines(f"    case {number}: return ({kind})({self._extent(text)});" for number, text in values)


def bytes_of(spec: TensorSpec) -> Extent:
    """Returns ``spec.nbytes``, where extents may be open."""
    if not any(isinstance(extent, Size) for extent in (*spec.shape, *spec.strides)):
        return spec.nbytes
    elements = prod(spec.shape)
    if spec.strides:
        elements = 1 + sum((extent - 1) * stride for extent, stride in zip(spec.shape, spec.strides, strict=True))
    return elements * dtype_of(spec.dtype).itemsize


def template() -> str:
    """Returns the text of the template ``c_sizes.h``."""
    return files(__package__).joinpath("c_sizes.h").read_text(encoding="utf-8")


def _lines(parts: Iterable[str]) -> str:
    return "\n".join(parts)


def _fields(symbols: Mapping[str, Symbol]) -> dict[str, str]:
    """Returns a name in C for each dimension: its own where C allows it."""
    found: dict[str, str] = {}
    for name in symbols:
        word = re.sub(r"[^A-Za-z0-9_]+", "_", name)
        word = f"d_{word}" if not word[:1].isalpha() or word in _RESERVED.split() else word
        while word in found.values():
            word += "_"
        found[name] = word
    return found


def _range(location: str, symbol: Symbol, most: int) -> str:
    low, high = symbol.low * symbol.unit, most
    if _has_bound(symbol):
        high = (symbol.high or 0) * symbol.unit
    low = max(low, -most)
    step = f" || {location} % {symbol.unit}" if symbol.unit > 1 else ""
    return f"{location} < INT64_C({low}) || {location} > INT64_C({high}){step}"


def _has_bound(symbol: Symbol) -> bool:
    """Returns whether ``symbol`` has an upper bound that sizes can be computed with."""
    return symbol.high is not None and symbol.high * symbol.unit < 1 << _PRODUCT_BITS


def _degree(terms: Terms) -> int:
    """Returns how many dimensions without a bound are multiplied, at most."""
    return max((sum(power * _atom_degree(atom) for atom, power in product) for product, _ in terms), default=0)


def _atom_degree(atom: Atom) -> int:
    match atom:
        case Symbol():
            return int(not _has_bound(atom))
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
        case Floor(numerator, divisor) if (as_constant(divisor) or 0) > _LARGEST:
            return f"-(int64_t)({_expression(numerator, field_of)} < 0)"  # -1 or 0
        case Floor(numerator, divisor):
            return f"lb_name_floor({_expression(numerator, field_of)}, {_expression(divisor, field_of)})"
        case Clamped(terms, low, high):
            text = _expression(terms, field_of)
            text = text if high is None else f"lb_name_min({text}, INT64_C({high}))"
            return f"lb_name_max(INT64_C({low}), {text})"
        case _:
            return f"lb_name_max(INT64_C(0), {_expression(atom.terms, field_of)})"


def _plain(text: str) -> str:
    """Returns ``text`` in a form that a comment may contain."""
    return re.sub(r"[^ -~]|\*/", "?", text)
