"""A window over the samples of a stream, whose last ones each run writes."""

from __future__ import annotations

from typing import cast

from xdsl.ir import SSAValue

from landbridge.ir.prim_builder import PrimBuilder
from landbridge.operators import kernel
from landbridge.ops.accuracy import EXACT, accuracy
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.legal import at_least, axis_of
from landbridge.ops.rules import rules
from landbridge.ops.slicing import part


@rules(
    "window: _ ...",
    "new: _ ...",
    attributes={"axis": axis_of("len(window)", default=0), "first": at_least(0)},
    where=("len(new) == len(window)",),
)
@kernel("landbridge", "WriteWindow")
@accuracy(EXACT)
def write_window(c: OpContext, window: Operand, new: Operand) -> Operand:
    """Returns ``window`` with ``new`` as its elements from ``first`` on along ``axis``; what is behind them stays."""
    shape, added, axis = c.shape(window), c.shape(new), c.attribute("axis", 0)
    first = c.attribute("first", 0)
    c.g.slides(window, axis, first, first + added[axis])

    def build(p: PrimBuilder) -> None:
        (target,) = p.outputs
        p.generic("p" * len(shape), shape, [(p.inputs[0], lambda *d: d)], [(target, lambda *d: d)], lambda s, v: v)

        def iteration(samples: SSAValue, target: SSAValue) -> None:
            behind = lambda *d: [e + first if a == axis else e for a, e in enumerate(d)]  # noqa: E731
            p.generic("p" * len(added), added, [(samples, lambda *d: d)], [(target, behind)], lambda s, v: v)

        p.steps(added[0], [p.inputs[1], target], iteration)

    return c.g.call("write_window", [c.value(window), c.value(new)], [(shape, c.dtype(window))], build)[0]


@rules(
    "window: _ ...",
    "new: _ ...",
    attributes={"axis": axis_of("len(window)", default=0), "first": at_least(0)},
    where=("len(new) == len(window)",),
)
@kernel("landbridge", "ReadWindow")
@accuracy(EXACT)
def read_window(c: OpContext, window: Operand, new: Operand) -> Operand:
    """Returns the elements of ``window`` up to the last of ``new``, which begin at ``first`` along ``axis``."""
    shape, axis = list(c.shape(window)), c.attribute("axis", 0)
    read = [*shape[:axis], cast(int, c.attribute("first", 0) + c.shape(new)[axis]), *shape[axis + 1 :]]
    # Lines of images of one line, as the convolution of a signal takes them: it then reads the window itself.
    lines, read_lines = ([*each[:axis], 1, *each[axis:]] for each in (shape, read))
    found = part(c, c.reshape(window, lines), [0] * len(lines), [1] * len(lines), read_lines)
    return c.reshape(found, read)
