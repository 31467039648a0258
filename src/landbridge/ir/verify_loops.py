"""Verifies ``lb.loop``: what its body takes and yields against the carried, scanned and collected values."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from landbridge.ir.graph_ops import LoopOp, YieldOp
from landbridge.ir.plain_attributes import ints
from landbridge.ir.types import dtype_of, nbytes_of, shape_of
from landbridge.ir.verify_places import Fail, place_in


def check_loop(op: LoopOp, fail: Fail) -> None:
    """Call ``fail`` where the parts of ``op`` do not match."""
    terminator = op.body.block.last_op
    if not isinstance(terminator, YieldOp):
        fail(op, "a body without lb.yield", "lb.yield at its end")
    back = ints(op.back)
    if len(back) < len(op.scanned) or not set(back) <= {0, 1}:
        fail(op, f"directions {list(back)}", f"0 or 1 for each of {len(op.scanned)} scanned values, then for each row")
    if len(op.count) > 1 or any(dtype_of(v.type) != "int64" or nbytes_of(v.type) != 8 for v in op.count):
        fail(op, f"a count of types {_types(op.count)}", "one int64 at most")
    on_memrefs = bool(op.destinations)
    carried = op.destinations[: len(op.destinations) - op.rows] if on_memrefs else op.carried
    if op.tested is not None and not (
        0 <= op.tested < len(carried) and dtype_of(carried[op.tested].type) == "bool" and _is_one(carried[op.tested])
    ):
        fail(op, f"carried value {op.tested} as its condition", "the number of one that is a bool")
    if op.rows and (op.count or op.tested is not None):
        fail(op, "rows of as many iterations as a run decides", "rows where the iterations are known")
    arguments = op.body.block.args
    wholes = op.sliced if on_memrefs else [*op.scanned, *op.res[len(carried) :]]
    slices = list(arguments) if on_memrefs else list(arguments[len(carried) :])
    if not len(slices) == len(wholes) == len(back):
        fail(op, f"a body of {len(arguments)} arguments", "one for each carried and scanned value and each row")
    for each, whole in zip(slices, wholes, strict=True):
        expected = (op.most_trips, *shape_of(each.type)), dtype_of(each.type)
        found = shape_of(whole.type), dtype_of(whole.type)
        if found != expected or place_in(each.type) != place_in(whole.type):
            fail(
                op, f"an argument {each.type} for {whole.type}", f"a slice along its axis of {op.most_trips} iterations"
            )
    if on_memrefs:
        if op.res or op.carried or terminator.values:
            fail(op, "results on memrefs", "destinations alone")
        return
    kinds = [v.type for v in carried]
    expected_types = [*kinds, *(a.type for a in slices[len(op.scanned) :])]
    for subject, types in (
        ("takes", [a.type for a in arguments[: len(carried)]]),
        ("gives", [r.type for r in op.res[: len(carried)]]),
        ("yields", [v.type for v in terminator.values]),
    ):
        wanted = expected_types if subject == "yields" else kinds
        if types != wanted or not all(isinstance(ty, TensorType) for ty in types):
            fail(op, f"it {subject} ({_join(types)})", f"({_join(wanted)}), as it carries and collects")


def _is_one(value: SSAValue) -> bool:
    return all(extent == 1 for extent in shape_of(value.type))


def _types(values: Sequence[SSAValue]) -> str:
    return _join([v.type for v in values])


def _join(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types))
