"""Inputs whose values a model's shapes or its nodes depend on: sizes become dimensions, and others are tried out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from landbridge.ir.graph_ops import CallOp, ViewOp, viewed
from landbridge.ir.types import dtype_of, shape_of
from landbridge.records import record
from landbridge.sizes.dim import identifier
from landbridge.sizes.size import LARGEST_EXTENT, Extent, Size, dimension

#: The most elements of an input of sizes.
MOST_ELEMENTS = 16


@record(frozen=True)
class WantedInput:
    """An input whose ``count`` elements have to be known, integers from ``low`` to ``high``.

    ``chosen``: they decide what the program does, as an axis does; otherwise they are sizes. ``of_any_sign``: no rule
    gives a lower bound.
    """

    name: str
    count: int
    low: int
    high: int
    chosen: bool
    of_any_sign: bool = False

    @property
    def choices(self) -> int:
        """Returns the number of values that it may have."""
        return int((self.high - self.low + 1) ** self.count)

    def dimensions(self, least: int) -> dict[str, Extent]:
        """Returns a dimension for each element, by name.

        A size is at least ``least``. If that is 0, elements without a lower bound may be negative.
        """
        names = names_of_elements(self.name, self.count)
        low = -LARGEST_EXTENT if self.of_any_sign and not least else max(self.low, least) if self.low >= 0 else self.low
        return {name: dimension(name, low, self.high) for name in names}


def names_of_elements(name: str, count: int) -> list[str]:
    """Returns the names of the dimensions for the ``count`` elements of input ``name``."""
    return [identifier(f"{name}_{i}" if count > 1 else name) for i in range(count)]


def wanted_inputs(
    block: Block, names: Iterable[str], needed: Iterable[tuple[SSAValue, tuple[int, int] | None]]
) -> dict[str, WantedInput]:
    """Returns the small arguments of ``block``, called ``names``, that ``needed`` values are computed from, if they are
    integers or bools.

    ``needed`` has the least and the largest legal element of each value, if a rule gives them.
    """
    called: dict[SSAValue, str] = dict(zip(block.args, names, strict=False))
    found: dict[str, WantedInput] = {}
    for value, ends in needed:
        root = viewed(value)
        direct = root in called
        for argument in [root] if direct else _sources(value):
            name = called.get(argument)
            wanted = None if name is None else _wanted(name, argument, ends if direct else None)
            if wanted is not None:
                found.setdefault(wanted.name, wanted)
    return found


def _wanted(name: str, argument: SSAValue, ends: tuple[int, int] | None) -> WantedInput | None:
    shape, dtype = shape_of(argument.type), dtype_of(argument.type)
    if len(shape) > 1 or any(isinstance(extent, Size) for extent in shape) or prod(shape) > MOST_ELEMENTS:
        return None
    if dtype == "bool":
        return WantedInput(name, prod(shape), 0, 1, chosen=True)
    if dtype not in ("int32", "int64"):
        return None
    low, high = ends or (0, LARGEST_EXTENT)
    if high < (low or 1):
        return None  # no value is legal: a scalar, for example, has no axis
    few = high - low < 64
    if dtype == "int32" and not few and not _is_widened(argument):
        return None  # sizes are computed in int64
    return WantedInput(name, prod(shape), low, high, chosen=few and low < 0, of_any_sign=ends is None)


def _is_widened(value: SSAValue) -> bool:
    """Returns whether everything that is computed from ``value`` is computed from it as int64."""
    users = [use.operation for use in value.uses]
    return bool(users) and all(
        _is_widened(user.results[0]) if isinstance(user, ViewOp) else _widens(user) for user in users
    )


def _widens(op: Operation) -> bool:
    return isinstance(op, CallOp) and len(op.inputs) == len(op.res) == 1 and dtype_of(op.res[0].type) == "int64"


def _sources(value: SSAValue) -> Iterator[SSAValue]:
    """Yields the arguments that ``value`` is computed from."""
    seen: set[SSAValue] = set()
    pending = [value]
    while pending:
        each = pending.pop()
        if each in seen:
            continue
        seen.add(each)
        if isinstance(each, BlockArgument):
            yield each
        elif isinstance(each.owner, Operation):
            pending += each.owner.operands
