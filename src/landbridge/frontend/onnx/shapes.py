"""Static shapes of graph inputs: from the file, from ``shapes=``, and from dimensions with one name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir
from xdsl.ir import SSAValue

from landbridge.dtypes import dtype_name
from landbridge.errors import ImportModelError, InputError, ModelWarning, ShapeError
from landbridge.frontend.onnx.attributes import dtype_of_onnx
from landbridge.ir.types import dtype_of, shape_of
from landbridge.warning_notes import warn

#: Exporters write these for a dimension they know nothing about: two of them need not be equal.
_ANONYMOUS = ("", "?", "None")


def _dims(value: ir.Value) -> list[int | str] | None:
    """Extents, or names of unknown ones; None when the file has no shape at all."""
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
    inputs: Sequence[ir.Value], given: Mapping[str, Sequence[int]]
) -> tuple[dict[str, tuple[int, ...]], list[str]]:
    """(shape of each input that is known, a line of advice for each that is not).

    Raises InputError for a name in ``given`` that is no input, ShapeError for a shape that contradicts the file.
    """
    names = [str(v.name) for v in inputs]
    for name in given:
        if name not in names:
            raise InputError(f"the model has no input {name!r}; its inputs: {', '.join(names) or 'none'}")
    declared = {str(v.name): _dims(v) for v in inputs}
    symbols: dict[str, tuple[int, str]] = {}
    for name, shape in given.items():
        _match(name, tuple(int(e) for e in shape), declared[name], symbols)
    known: dict[str, tuple[int, ...]] = {}
    advice = []
    for name, dims in declared.items():
        if name in given:
            known[name] = tuple(int(e) for e in given[name])
            continue
        if dims is None:
            advice.append(f"input {name!r} has no shape: give shapes={{{name!r}: (...)}} or --shape {name}=...")
            continue
        bound = [symbols.get(d, (d,))[0] if isinstance(d, str) else d for d in dims]
        if all(isinstance(d, int) for d in bound):
            known[name] = tuple(int(d) for d in bound)
            continue
        shown = [str(d) if isinstance(d, int) or d not in _ANONYMOUS else "?" for d in bound]
        example = [d if isinstance(d, int) else 1 for d in bound]
        tuple_text = f"({', '.join(map(str, example))}{',' * (len(example) == 1)})"
        advice.append(
            f"input {name!r} has unknown dimensions ({', '.join(shown)}): give "
            f"shapes={{{name!r}: {tuple_text}}} or --shape {name}={'x'.join(map(str, example))} with your extents"
        )
    return known, advice


def check_declared(value: ir.Value, found: object, what: str, strict: bool = True) -> None:
    """Raise ShapeError, or ImportModelError for a dtype, where the file declares ``value`` other than ``found`` is.

    ``found`` is an array or a value of the graph; others are not known. Without ``strict`` another shape is a
    ModelWarning: what files declare of results is made by shape inference, which has faults.
    """
    if isinstance(found, np.ndarray):
        shape, dtype = found.shape, dtype_name(found.dtype)
    elif isinstance(found, SSAValue):
        shape, dtype = shape_of(found.type), dtype_of(found.type)
    else:
        return
    if isinstance(value.type, ir.TensorType) and value.type.dtype != ir.DataType.UNDEFINED:
        declared = dtype_of_onnx(value.type.dtype)
        if declared != dtype:
            raise ImportModelError(f"{what} {value.name!r} is {dtype}, the file declares {declared}; correct the file")
    dims = _dims(value)
    if not dims:  # no axes is also what writers put where they know nothing
        return
    if len(dims) != len(shape) or any(isinstance(d, int) and d != e for d, e in zip(dims, shape, strict=True)):
        shown = f"({', '.join(str(d) if d != '' else '?' for d in dims)})"
        text = f"{what} {value.name!r} has shape {tuple(shape)}, the file declares {shown}; "
        if strict:
            raise ShapeError(f"{text}correct the file, or drop what it declares")
        warn(f"{text}the former counts", ModelWarning, stacklevel=2)


def _match(
    name: str, shape: tuple[int, ...], dims: list[int | str] | None, symbols: dict[str, tuple[int, str]]
) -> None:
    """Check a given shape against the file and bind its named dimensions."""
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
        elif dim not in _ANONYMOUS:
            before, owner = symbols.setdefault(dim, (extent, name))
            if before != extent:
                raise ShapeError(
                    f"dimension {dim!r} is {before} in input {owner!r} and {extent} in input {name!r}; "
                    "the file says they are equal"
                )
