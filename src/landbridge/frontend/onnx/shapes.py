"""Static shapes of graph inputs: from the file, from ``shapes=``, and from dimensions with the same name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import onnx_ir as ir
from xdsl.ir import SSAValue

from landbridge.errors import ImportModelError, InputError, ModelWarning, ShapeError
from landbridge.frontend.onnx.anonymous_dimensions import ANONYMOUS
from landbridge.frontend.onnx.attributes import dtype_of_onnx, stored_dtype
from landbridge.frontend.wanted_inputs import MOST_ELEMENTS, names_of_elements
from landbridge.ir.types import dtype_of, shape_of
from landbridge.ops.extent_arrays import array_dtype
from landbridge.reporting.warning_notes import warn
from landbridge.sizes.dim import identifier
from landbridge.sizes.parsing import parse_size
from landbridge.sizes.size import Extent, Size, dimension, dimensions_of, same
from landbridge.sizes.terms import Symbol
from landbridge.text.did_you_mean import did_you_mean


def _dims(value: ir.Value) -> list[int | str] | None:
    """Returns the extents that the file declares; a name, or an empty text, for an open one; None if it declares no
    shape.
    """
    if value.shape is None:
        return None
    dims: list[int | str] = []
    for dim in value.shape:
        if isinstance(dim, int):
            dims.append(dim if dim >= 0 else "")
        else:
            dims.append(dim.value if isinstance(dim.value, str) else "")
    return dims


def input_shapes(
    inputs: Sequence[ir.Value], given: Mapping[str, Sequence[int | str]], dimensions: Mapping[str, Extent] | None = None
) -> tuple[dict[str, tuple[Extent, ...]], list[str]]:
    """Returns the known shapes of inputs by name, and a line of advice for each unknown one.

    With ``dimensions``, ranges by name, dimensions that the file leaves open stay open; their names become identifiers.

    Raises InputError for a name in ``given`` that is no input, ShapeError for a shape that contradicts the file.
    """
    names = [str(v.name) for v in inputs]
    for name in given:
        if name not in names:
            raise InputError(f"the model has no input {name!r}; its inputs: {', '.join(names) or 'none'}")
    declared = {str(v.name): _dims(v) for v in inputs}
    symbols: dict[str, tuple[Extent, str]] = {}
    read = {name: read_extents(shape, dimensions or {}) for name, shape in given.items()}
    for name, shape in read.items():
        _match(name, shape, declared[name], symbols)
    known: dict[str, tuple[Extent, ...]] = {}
    advice = []
    for name, dims in declared.items():
        if name in given:
            known[name] = read[name]
            continue
        if dims is None:
            advice.append(f"input {name!r} has no shape: give shapes={{{name!r}: (...)}} or --shape {name}=...")
            continue
        bound = [symbols.get(d, (d,))[0] if isinstance(d, str) else d for d in dims]
        if not any(isinstance(d, str) for d in bound):
            known[name] = tuple(d for d in bound if not isinstance(d, str))
            continue
        if dimensions is not None:
            known[name] = tuple(
                _dimension(d, f"{name}_{axis}", dimensions) if isinstance(d, str) else d for axis, d in enumerate(bound)
            )
            continue
        shown = [str(d) if isinstance(d, int) or d not in ANONYMOUS else "?" for d in bound]
        example = [str(d) if isinstance(d, int) else f"<{d}>" for d in _placeholders(bound)]
        tuple_text = f"({', '.join(example)}{',' * (len(example) == 1)})"
        advice.append(
            f"input {name!r} has unknown dimensions ({', '.join(shown)}): give "
            f"shapes={{{name!r}: {tuple_text}}} or --shape '{name}={'x'.join(example)}', a number for each <...>, "
            "or leave them open: dims={} or --dim"
        )
    return known, advice


def _placeholders(dims: Sequence[Extent | str]) -> list[Extent | str]:
    """Returns ``dims`` with ``axis N`` for each that has no name.

    The text becomes part of advice; a number might be copied from it by mistake.
    """
    return [d if not isinstance(d, str) or d not in ANONYMOUS else f"axis {axis}" for axis, d in enumerate(dims)]


def check_declared_inputs(
    inputs: Sequence[ir.Value], given: Iterable[Any], dimensions: Mapping[str, Extent], settled: Collection[str] = ()
) -> None:
    """Raises InputError for one of ``dimensions`` that occurs neither in the file nor in a text extent of ``given``.

    Names of elements of small inputs are legal too. Dimensions of inputs in ``settled`` are not open.
    """
    known: list[str] = []
    closed: list[str] = []
    elements: list[str] = []
    for value in inputs:
        dims = _dims(value)
        for axis, dim in enumerate(dims or ()):
            if isinstance(dim, str):
                names = closed if value.name in settled else known
                names.append(f"{value.name}_{axis}" if dim in ANONYMOUS else dim)
        values = [d for d in dims or () if isinstance(d, int)]
        if dims is not None and len(values) == len(dims) < 2 and prod(values) <= MOST_ELEMENTS:
            elements += names_of_elements(str(value.name), prod(values))
    for extent in given:
        known += re.findall(r"[^\W\d]\w*", extent) if isinstance(extent, str) else dimensions_of([extent])
    legal = {identifier(name) for name in (*known, *closed, *elements)}
    for name in dimensions:
        if identifier(name) not in legal:
            listed = ", ".join(dict.fromkeys(known)) or "none"
            raise InputError(
                f"dims: the model has no open dimension {name!r}{did_you_mean(name, known)}; it has: {listed}"
            )


def _dimension(name: str, instead: str, declared: Mapping[str, Extent]) -> Extent:
    """Returns the extent that ``declared`` has for the dimension ``name``; else an open dimension of that name.

    ``instead`` is the name if ``name`` means nothing in a file (empty, ``?``, ``None``).
    """
    wanted = instead if name in ANONYMOUS else name
    known = identifier(wanted)
    return declared.get(wanted, declared.get(known, dimension(known)))


def read_extents(shape: Sequence[int | str], declared: Mapping[str, Extent]) -> tuple[Extent, ...]:
    """Returns ``shape`` with its text extents parsed: each is the name of a dimension, or an expression of names.

    ``declared`` gives the dimensions that have a range or a size; other names become open dimensions.
    """
    known: dict[str, Symbol | int] = {identifier(n): e for n, e in declared.items() if isinstance(e, int)}
    known |= dimensions_of(declared.values())
    for text in (e for e in shape if isinstance(e, str)):
        for name in re.findall(r"[^\W\d]\w*", text):
            if name not in known and name not in ("max", "min"):
                known |= dimensions_of([declared.get(name, dimension(name))])
    return tuple(parse_size(e, known) if isinstance(e, str) else e if isinstance(e, Size) else int(e) for e in shape)


def check_declared(value: ir.Value, found: object, subject: str, strict: bool = True) -> None:
    """Raises ShapeError, or ImportModelError for a dtype, if the file declares ``value`` differently from ``found``.

    ``found`` is an array or a value of the graph; unknown values pass. Without ``strict`` another shape is only a
    ModelWarning: shape inference, which has faults, writes these declarations.
    """
    if isinstance(found, np.ndarray):
        shape, dtype = found.shape, array_dtype(found)
    elif isinstance(found, SSAValue):
        shape, dtype = shape_of(found.type), dtype_of(found.type)
    else:
        return
    if isinstance(value.type, ir.TensorType) and value.type.dtype != ir.DataType.UNDEFINED:
        declared = (stored_dtype if isinstance(found, np.ndarray) else dtype_of_onnx)(value.type.dtype)
        if declared != dtype:
            raise ImportModelError(
                f"{subject} {value.name!r} is {dtype}, the file declares {declared}; correct the file"
            )
    dims = _dims(value)
    if not dims:  # some writers declare a scalar if they do not know the shape
        return
    pairs = zip(dims, shape, strict=False)
    if len(dims) != len(shape) or any(isinstance(d, int) and same(d, e) is False for d, e in pairs):
        shown = f"({', '.join(str(d) if d != '' else '?' for d in dims)})"
        text = f"{subject} {value.name!r} has shape {tuple(shape)}, the file declares {shown}; "
        if strict:
            raise ShapeError(f"{text}correct the file, or drop what it declares")
        warn(f"{text}the former counts", ModelWarning)


def _match(
    name: str, shape: tuple[Extent, ...], dims: list[int | str] | None, symbols: dict[str, tuple[Extent, str]]
) -> None:
    """Check a given shape against the file, and record the sizes of its named dimensions in ``symbols``."""
    if any(e < 0 for e in shape):
        raise ShapeError(f"shape {shape} of input {name!r} has a negative extent")
    if dims is None:
        return
    shown = f"({', '.join(str(d) if d != '' else '?' for d in dims)})"
    if len(shape) != len(dims):
        raise ShapeError(
            f"shape {shape} of input {name!r} has rank {len(shape)}, the file says {shown}, rank {len(dims)}"
        )
    for extent, dim in zip(shape, dims, strict=True):
        if isinstance(dim, int):
            if extent != dim:
                raise ShapeError(f"shape {shape} of input {name!r} contradicts the file, which says {shown}")
        elif dim not in ANONYMOUS:
            before, owner = symbols.setdefault(dim, (extent, name))
            if before != extent:
                raise ShapeError(
                    f"dimension {dim!r} is {before} in input {owner!r} and {extent} in input {name!r}; "
                    "the file says they are equal"
                )
