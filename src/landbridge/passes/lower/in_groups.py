"""Lowers kernels in groups, so that finished kernels can be compiled while others are still lowered.

Kernels that may share code (``shared_code``) are in one group. When a group is lowered, its shared code is final.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import takewhile

from xdsl.dialects import arith, func, linalg
from xdsl.dialects.builtin import ModuleOp

from landbridge.errors import BudgetError
from landbridge.ir.kernel_attributes import (
    copies_unless_same,
    is_checked,
    is_in_place,
    loop_extents,
    set_target_number,
    target_number,
)
from landbridge.ir.limits import check_time
from landbridge.ir.module import IRModule
from landbridge.passes.lower.measured_tiles import TileChoice
from landbridge.passes.lower.prims import lowering_for
from landbridge.passes.lower.row_memory import lowered_type
from landbridge.passes.lower.shared_code import Variant, kind_of_operand, share_code
from landbridge.process.garbage import collect_new

#: Kernels can share code only if they have the same operations of these dialects.
_COMPUTE = ("arith.", "math.")


def lower_kernels(
    module: IRModule,
    finished: Callable[[func.FuncOp], None] = lambda _: None,
    tiles: TileChoice | None = None,
    *,
    verifies: bool = False,
) -> tuple[ModuleOp, dict[str, Variant]]:
    """Returns the lowered kernels of ``module``, in its order, and the calls of shared code by the name of the
    PrimFunc.

    Of kernels that differ only in values, one is kept. ``finished`` is called with each kernel once it is final.
    ``tiles`` knows tiles that were measured. ``verifies``: a schedule that no legal loop transformations make raises
    ScheduleError. If kernels cannot be lowered, raises the error of the first of them in the order of ``module``.
    """
    prims, targets = module.prims(), module.targets
    lowerings = [lowering_for(target, tiles, verifies=verifies) for target in targets]
    on_host = [target.on_host for target in targets]
    lowered: dict[str, func.FuncOp] = {}
    variants: dict[str, Variant] = {}

    def lower(name: str) -> None:
        check_time(f"kernel {name}")
        number = target_number(prims[name])
        lowered[name] = lowerings[number](prims[name])
        if len(targets) > 1:
            set_target_number(lowered[name], number)

    for names in _groups(prims, on_host):
        collect_new()  # the garbage of passes and of earlier groups
        _all(names, lower, prims, lowered)
        shared = share_code([lowered[name] for name in names], on_host)
        variants |= shared
        for name in names:
            if name not in shared or shared[name].function == name:
                finished(lowered[name])
            else:
                del lowered[name]
    return ModuleOp([lowered[name] for name in prims if name in lowered]), variants


def _all(
    names: Sequence[str], lower: Callable[[str], None], prims: Iterable[str], lowered: Mapping[str, object]
) -> None:
    """Lower ``names``. If one fails, raise the error of the first of ``prims`` that fails."""
    failure: Exception | None = None
    for name in names:
        try:
            lower(name)
        except BudgetError:
            raise
        except Exception as error:
            failed, failure = name, error
            break
    if failure is not None:
        for name in takewhile(lambda each: each != failed, prims):
            if name not in lowered:
                lower(name)
        raise failure


def _groups(prims: Mapping[str, func.FuncOp], on_host: Sequence[bool]) -> list[list[str]]:
    """Returns the names of ``prims`` in groups of kernels that may share code, small groups first."""
    found: dict[Hashable, list[str]] = {}
    for name, prim in prims.items():
        key = _key(prim) if on_host[target_number(prim)] else name
        found.setdefault(key, []).append(name)
    return sorted(found.values(), key=len)


def _key(prim: func.FuncOp) -> Hashable:
    """Returns a key that is equal for PrimFuncs that may share code."""
    operands = tuple(kind_of_operand(lowered_type(argument.type)) for argument in prim.body.block.args)
    computes, loops = set(), []
    for op in prim.walk():
        if isinstance(op, linalg.ops.GenericOp):
            loops.append(tuple(extent == 1 for extent in loop_extents(op)))  # a loop with one iteration is dropped
        elif op.name.startswith(_COMPUTE) and not isinstance(op, arith.ConstantOp):
            computes.add(op.name)
    marks = is_checked(prim), is_in_place(prim), copies_unless_same(prim)
    return target_number(prim), marks, operands, frozenset(computes), tuple(loops)
