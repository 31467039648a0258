"""LabelEncoder of ``ai.onnx.ml``: maps each element, as a key, to a value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.operators import kernel
from landbridge.ops.accuracy import EXACT, accuracy
from landbridge.ops.context import Array, BodyBuffer, OpContext, Operand
from landbridge.ops.rules import rules
from landbridge.ops.slicing import index_within

_ML = "ai.onnx.ml"
#: Integer keys are looked up by their distance from the smallest, where the table has at most so many entries a key.
_MOST_SPREAD = 16


@rules("X: ...")
@kernel(_ML, "LabelEncoder", since=2)
@accuracy(EXACT)
def label_encoder_2(c: OpContext, x: Operand) -> Operand:
    """Maps as LabelEncoder of version 4 does, except that a key of NaN equals no element."""
    return _encoded(c, x, nan_matches=False)


@rules("X: ...")
@kernel(_ML, "LabelEncoder", since=4)
@accuracy(EXACT)
def label_encoder(c: OpContext, x: Operand) -> Operand:
    """Returns the value of the first key that equals the element, the default where none does: the shape of ``x``."""
    return _encoded(c, x, nan_matches=True)


def _encoded(c: OpContext, x: Operand, nan_matches: bool) -> Operand:
    keys, values = _values(c, "keys"), _values(c, "values")
    if len(keys) != len(values) or not len(keys):
        raise c.unsupported(f"{len(keys)} keys and {len(values)} values; legal: as many of both, at least 1")
    default = values.dtype.type(_default(c, values.dtype.kind == "f"))
    is_nan = np.isnan(keys) if keys.dtype.kind == "f" else np.zeros(len(keys), bool)
    of_nan = values[is_nan][0] if nan_matches and is_nan.any() else None
    retained, first = np.unique(keys[~is_nan], return_index=True)
    of_retained = values[~is_nan][first]
    if not len(retained):
        retained, of_retained = np.zeros(1, keys.dtype), np.array([default])
    spread = int(retained[-1]) - int(retained[0]) + 1 if keys.dtype.kind == "i" else 0
    if 0 < spread <= _MOST_SPREAD * len(retained):
        return _by_distance(c, x, retained, of_retained, default, spread)
    return _by_search(c, x, retained, of_retained, default, of_nan)


def _by_distance(c: OpContext, x: Operand, keys: Array, values: Array, default: np.generic, spread: int) -> Operand:
    """Reads a table of ``spread`` values once; it begins at the smallest key and ends with the default."""
    table = np.full(spread + 1, default)
    table[keys - keys[0]] = values
    low, high = int(keys[0]), int(keys[-1])

    def value(s: ScalarBuilder, buffers: Sequence[BodyBuffer], at: Sequence[Value]) -> Value:
        given = s.cast(buffers[0].load(s, at), "int64")
        where = s.select((given >= low) & (given <= high), given - low, spread)
        return buffers[1].load(s, [index_within(s, where, spread + 1)])

    return c.compute("label_encoder", [x, table], c.shape(x), value, str(values.dtype))


def _by_search(
    c: OpContext, x: Operand, keys: Array, values: Array, default: np.generic, of_nan: np.generic | None
) -> Operand:
    """Searches sorted ``keys``, padded to a power of two with the largest, by bisection."""
    length = 1 << (len(keys) - 1).bit_length()
    missing = length - len(keys)
    filled, table = np.append(keys, keys[-1:].repeat(missing)), np.append(values, values[-1:].repeat(missing))

    def value(s: ScalarBuilder, buffers: Sequence[BodyBuffer], at: Sequence[Value]) -> Value:
        given, low, step = buffers[0].load(s, at), s.const(0, "int64"), length // 2
        while step:
            key = buffers[1].load(s, [index_within(s, low + step, length)])
            low, step = s.select(key <= given, low + step, low), step // 2
        location = [index_within(s, low, length)]
        found = s.select(buffers[1].load(s, location).eq(given), buffers[2].load(s, location), default.item())
        return found if of_nan is None else s.select(given.ne(given), of_nan.item(), found)

    return c.compute("label_encoder", [x, filled, table], c.shape(x), value, str(values.dtype))


def _values(c: OpContext, subject: str) -> Array:
    for ending, dtype in (("int64s", np.int64), ("floats", np.float32)):
        if found := c.attribute(f"{subject}_{ending}", []):
            return np.array(found, dtype)
    tensor = c.attribute(f"{subject}_tensor")
    if isinstance(tensor, np.ndarray) and tensor.dtype.kind in "if":
        return np.asarray(tensor.reshape(-1))
    raise c.unsupported(f"{subject} that are text; legal: numbers")


def _default(c: OpContext, is_float: bool) -> float | int:
    tensor = c.attribute("default_tensor")
    if isinstance(tensor, np.ndarray):
        first: float | int = tensor.reshape(-1)[0].item()
        return first
    return float(c.attribute("default_float", -0.0)) if is_float else int(c.attribute("default_int64", -1))
