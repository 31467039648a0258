"""Open steps: the steps of a program bound for one choice of sizes, computed for other sizes."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.executable.open_number import OpenNumber
from landbridge.vm.program import (
    BoundTensor,
    BranchStep,
    CopyEnd,
    CopyStep,
    HostStep,
    HostTensor,
    LoopStep,
    MoveStep,
    NativeStep,
    OwnedPart,
    Step,
)


def may_be_others(steps: Sequence[Step]) -> bool:
    """Returns whether ``steps`` can be computed for other sizes: no device runs them, and none waits for a device."""
    return all(map(_may_be_another, steps))


def _may_be_another(step: Step) -> bool:
    match step:
        case NativeStep() | MoveStep() | HostStep():
            return True
        case CopyStep(number=number):
            return number is None
        case BranchStep(then=then, orelse=orelse):
            return may_be_others(then) and may_be_others(orelse)
        case LoopStep(body=body):
            return may_be_others(body)
        case _:
            return False


def steps_at(steps: Sequence[Step], extent_values: Sequence[int]) -> tuple[Step, ...]:
    """Returns ``steps`` (for which ``may_be_others`` holds) where the slots of OpenNumbers have ``extent_values``."""
    return tuple(_step_at(step, extent_values) for step in steps)


def number_at(number: int, extent_values: Sequence[int]) -> int:
    """Returns the value of ``number`` where the slots of OpenNumbers have ``extent_values``."""
    return number.at(extent_values) if isinstance(number, OpenNumber) else number


def _step_at(step: Step, extent_values: Sequence[int]) -> Step:
    match step:
        case MoveStep():
            return step._replace(nbytes=number_at(step.nbytes, extent_values))
        case HostStep():
            return step._replace(args=tuple(_tensor_at(each, extent_values) for each in step.args))
        case CopyStep():
            return step._replace(src=_end_at(step.src, extent_values), dst=_end_at(step.dst, extent_values))
        case BranchStep():
            return step._replace(then=steps_at(step.then, extent_values), orelse=steps_at(step.orelse, extent_values))
        case LoopStep():
            moving = tuple((word, number_at(stride, extent_values)) for word, stride in step.moving)
            body = steps_at(step.body, extent_values)
            return step._replace(trips=number_at(step.trips, extent_values), body=body, moving=moving)
        case _:
            return step


def _end_at(end: CopyEnd, extent_values: Sequence[int]) -> CopyEnd:
    match end:
        case HostTensor():
            return _tensor_at(end, extent_values)
        case BoundTensor() | OwnedPart():
            shape = tuple(number_at(extent, extent_values) for extent in end.shape)
            created = end._replace(offset=number_at(end.offset, extent_values), shape=shape)
            return created.tensor() if isinstance(created, OwnedPart) else created
        case _:
            return end


def _tensor_at(tensor: HostTensor, extent_values: Sequence[int]) -> HostTensor:
    if not any(isinstance(extent, OpenNumber) for extent in tensor.shape):
        return tensor
    return tensor._replace(shape=tuple(number_at(extent, extent_values) for extent in tensor.shape))
