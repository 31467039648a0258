"""MaxUnpool: writes the results of MaxPool back to the positions of the maxima."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from landbridge.errors import ShapeError
from landbridge.ir.loop_builder import LoopBuilder
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.scalars import Value
from landbridge.ir.types import element_count
from landbridge.operators import kernel
from landbridge.ops.accuracy import EXACT, accuracy
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.ops.legal import at_least
from landbridge.ops.rules import rules
from landbridge.sizes.size import Extent


@rules(
    "X: N C *D",
    "I: N C *D",
    "output_shape?: r",
    attributes={
        "kernel_shape": at_least(1, count="len(D)"),
        "strides": at_least(1, count="len(D)"),
        "pads": at_least(0, count="2 * len(D)"),
        "output_shape": at_least(0),
    },
    where=("len(D) > 0", "r == len(X)"),
)
@kernel("", "MaxUnpool")
@accuracy(EXACT)
def max_unpool(c: OpContext, x: Operand, indices: Operand, output: Operand | None = None) -> Operand:
    """Writes ``x`` at ``indices``, which count elements of the whole result as MaxPool's strides make it; 0 elsewhere.

    Of equal indices the last one counts. One that is outside of the result is left out. ``output`` is the shape of a
    larger result, with zeros behind the other along each axis.
    """
    owned = _output_shape(c, c.shape(x))
    created = c.reshape(_scattered(c, x, indices, element_count(owned)), owned)
    if output is None:
        return created
    wanted = c.ints("output_shape", output) or []
    if any(w < e for w, e in zip(wanted, owned, strict=True)):
        raise ShapeError(f"{c.g.node}: output_shape {wanted} is less than {owned}, the shape that the strides make")

    def widen(p: PrimBuilder) -> None:
        rank = len(owned)
        whole = p.pad(p.inputs[0], [0] * rank, [w - e for w, e in zip(wanted, owned, strict=True)], 0)
        p.generic("p" * rank, wanted, [(whole, lambda *d: d)], [(p.outputs[0], lambda *d: d)], lambda s, v: v)

    return c.g.call("max_unpool", [c.value(created)], [(wanted, c.dtype(x))], widen)[0]


def _output_shape(c: OpContext, shape: Sequence[Extent]) -> list[Extent]:
    """Returns the shape that MaxPool reduced to ``shape``, where no element was left over."""
    batch, channels, *spatial = shape
    rank, kernel = len(spatial), c.ints("kernel_shape") or []
    stride, pads = c.ints("strides") or [1] * rank, c.ints("pads") or [0] * (2 * rank)
    return [
        batch,
        channels,
        *((e - 1) * stride[i] + kernel[i] - pads[i] - pads[rank + i] for i, e in enumerate(spatial)),
    ]


def _scattered(c: OpContext, x: Operand, indices: Operand, extent: Extent) -> SSAValue:
    """Returns ``extent`` zeros with the elements of ``x`` written at ``indices``, in their order."""
    count, dtype = element_count(c.shape(x)), c.dtype(x)

    def build(p: PrimBuilder) -> None:
        def put(s: LoopBuilder, _: Value, *memrefs: SSAValue) -> None:
            values, places, result = (BodyBuffer(each, p.dtype(each)) for each in memrefs)

            def scatter(i: Value) -> Sequence[Value]:
                location = places.load(s, [i])

                def store() -> Sequence[Value]:
                    result.store(s, [s.inside(location, extent)], values.load(s, [i]))
                    return ()

                s.branch((location >= 0) & (location < s.const(extent, "int64")), store)
                return ()

            result.fill(s, 0)
            s.loop(0, s.const(count, "index"), [], scatter)

        p.forall(1, [*p.inputs, *p.outputs], put)

    operands: list[Any] = [c.reshape(x, (count,)), c.reshape(indices, (count,))]
    return c.g.call("max_unpool", [c.value(v) for v in operands], [((extent,), dtype)], build)[0]
