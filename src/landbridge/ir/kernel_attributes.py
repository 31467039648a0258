"""The attributes of PrimFuncs and of their loops: every key, with functions that read and write it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, linalg
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, UnitAttr, i64

from landbridge.ir.plain_attributes import int_array, int_attr, integer_at, ints, string_array, strings_at
from landbridge.sizes.size import Extent, same

#: Marks a PrimFunc.
PRIM = "lb.prim"
#: The number of the target that the function is compiled for; 0 when absent.
TARGET = "lb.target"
#: How many arguments precede those that are memory for its temporaries.
SCRATCH = "lb.scratch"
#: The bytes that a call moves; for a function that computes nothing.
MOVES = "lb.moves"
#: An output may alias an input.
IN_PLACE = "lb.in_place"
#: The function copies its one input to its one output, and does nothing if they are the same memory.
UNLESS_SAME = "lb.unless_same"
#: The last operand is where the function reports accesses outside of its other operands, which it does not execute.
CHECKED = "lb.checked"
#: The number of tasks of a call, on a lowered function.
TASKS = "lb.tasks"

#: The chosen schedule in words and the rejected candidates, on a lowered function.
SCHEDULE = "lb.schedule"
WEIGHED = "lb.weighed"
LOOP_NEST = "lb.loop_nest"

#: The Sizes that a lowered function takes in its operand before the tasks.
SIZES = "lb.sizes"

# linalg.generic

#: The bounds of its loops.
EXTENTS = "lb.extents"
#: ``[outer, inner, tile, extent]`` of each loop that was cut in two and whose last tile is not full.
BOUNDS = "lb.bounds"


def is_prim(function: func.FuncOp) -> bool:
    """Returns whether ``function`` is a PrimFunc."""
    return PRIM in function.attributes


def mark_prim(function: func.FuncOp) -> None:
    """Mark ``function`` as a PrimFunc."""
    function.attributes[PRIM] = UnitAttr()


def target_number(function: func.FuncOp) -> int:
    """Returns the number of the target that a PrimFunc is compiled for."""
    return integer_at(function, TARGET) or 0


def set_target_number(function: func.FuncOp, target: int) -> None:
    """Set the number of the target that a PrimFunc is compiled for."""
    function.attributes[TARGET] = IntegerAttr(target, i64)


def moved_bytes(function: func.FuncOp) -> int:
    """Returns the bytes that a call of a PrimFunc moves; 0 for one that computes."""
    found = integer_at(function, MOVES)
    return 0 if found is None else found


def set_moved_bytes(function: func.FuncOp, nbytes: int) -> None:
    """Set the bytes that a call of a PrimFunc moves; 0 for one that computes."""
    if not same(nbytes, 0):
        function.attributes[MOVES] = int_attr(nbytes)
    else:
        function.attributes.pop(MOVES, None)


def first_scratch(function: func.FuncOp) -> int | None:
    """Returns the index of the first argument of a PrimFunc that is memory for its temporaries; None if there is
    none."""
    return integer_at(function, SCRATCH)


def set_first_scratch(function: func.FuncOp, number: int) -> None:
    """Set the index of the first argument of a PrimFunc that is memory for its temporaries."""
    function.attributes[SCRATCH] = int_attr(number)


def is_in_place(function: func.FuncOp) -> bool:
    """Returns whether an output of a kernel may alias an input."""
    return IN_PLACE in function.attributes


def mark_in_place(function: func.FuncOp) -> None:
    """Allow an output of a kernel to alias an input."""
    function.attributes[IN_PLACE] = UnitAttr()


def unmark_in_place(function: func.FuncOp) -> None:
    """Forbid that an output of a kernel aliases an input."""
    function.attributes.pop(IN_PLACE, None)


def copies_unless_same(function: func.FuncOp) -> bool:
    """Returns whether a kernel copies its one input to its one output, and does nothing if they are the same memory."""
    return UNLESS_SAME in function.attributes


def mark_unless_same(function: func.FuncOp) -> None:
    """Allow a kernel that copies its one input to its one output to do nothing if they are the same memory."""
    function.attributes[UNLESS_SAME] = UnitAttr()


def keep_marks(function: func.FuncOp, lowered: func.FuncOp) -> None:
    """Copy the aliasing attributes of ``function`` to ``lowered``, which was made from it."""
    for key in (IN_PLACE, UNLESS_SAME):
        if key in function.attributes:
            lowered.attributes[key] = function.attributes[key]


def is_checked(function: func.FuncOp) -> bool:
    """Returns whether a kernel tests its accesses and has a report as its last operand."""
    return CHECKED in function.attributes


def mark_checked(function: func.FuncOp) -> None:
    """Mark the last operand of a kernel as its report."""
    function.attributes[CHECKED] = UnitAttr()


def task_count(function: func.FuncOp) -> int | None:
    """Returns how many tasks a call of a lowered function has; None for a function that is not lowered."""
    return integer_at(function, TASKS)


def set_task_count(function: func.FuncOp, tasks: Extent) -> None:
    """Set how many tasks a call of a lowered function has."""
    function.attributes[TASKS] = int_attr(tasks)


def schedule_of(function: func.FuncOp) -> tuple[str, tuple[str, ...], str]:
    """Returns the schedule of a lowered function in words, the rejected candidates, and its loops, a line each; empty
    if none was recorded.
    """
    chosen, loops = (function.attributes.get(name) for name in (SCHEDULE, LOOP_NEST))
    return (
        chosen.data if isinstance(chosen, StringAttr) else "",
        strings_at(function, WEIGHED) or (),
        loops.data if isinstance(loops, StringAttr) else "",
    )


def set_schedule(function: func.FuncOp, chosen: str, weighed: Sequence[str], loops: str) -> None:
    """Set the schedule of a lowered function in words, the rejected candidates, and its loops, a line each."""
    function.attributes[SCHEDULE] = StringAttr(chosen)
    if weighed:
        function.attributes[WEIGHED] = string_array(weighed)
    if loops:
        function.attributes[LOOP_NEST] = StringAttr(loops)


def loop_extents(generic: linalg.ops.GenericOp) -> tuple[int, ...]:
    """Returns the bounds of the loops of a ``linalg.generic``, which must carry them."""
    extents = generic.attributes[EXTENTS]
    assert isinstance(extents, ArrayAttr)  # every pass that makes a generic sets them
    return ints(extents)


def set_loop_extents(generic: linalg.ops.GenericOp, extents: Sequence[Extent]) -> None:
    """Set the bounds of the loops of a ``linalg.generic``."""
    generic.attributes[EXTENTS] = int_array(extents)


def has_sizes(function: func.FuncOp) -> bool:
    """Returns whether a lowered function has the operand of Sizes before the tasks; the list of Sizes may be empty."""
    return SIZES in function.attributes


def sizes_of(function: func.FuncOp) -> tuple[int, ...]:
    """Returns the Sizes that a lowered function takes in its operand before the tasks."""
    sizes = function.attributes.get(SIZES)
    return ints(sizes) if isinstance(sizes, ArrayAttr) else ()


def set_sizes(function: func.FuncOp, sizes: Sequence[Extent]) -> None:
    """Set the Sizes that a lowered function takes."""
    function.attributes[SIZES] = int_array(sizes)


def tile_bounds(generic: linalg.ops.GenericOp) -> list[tuple[int, ...]]:
    """Returns ``(outer, inner, tile, extent)`` of each loop that was cut in two and whose last tile is not full."""
    bounds = generic.attributes.get(BOUNDS)
    if bounds is None or not isinstance(bounds, ArrayAttr):  # most have none, and isinstance is slow where it says no
        return []
    return [ints(bound) for bound in bounds]


def set_tile_bounds(generic: linalg.ops.GenericOp, bounds: Sequence[tuple[int, int, int, int]]) -> None:
    """Set the loops that were cut in two and have a last tile that is not full."""
    generic.attributes[BOUNDS] = ArrayAttr([int_array(bound) for bound in bounds])
