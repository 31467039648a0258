"""Open steps: those of a program that was bound for one choice of sizes, as they are for others."""

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
    OwnPart,
    Step,
)


def may_be_others(steps: Sequence[Step]) -> bool:
    """Whether all is known of ``steps`` for other sizes: not of those that devices take, or that wait for devices."""
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


def steps_at(steps: Sequence[Step], numbers: Sequence[int]) -> tuple[Step, ...]:
    """``steps``, which ``may_be_others``, where the slots of their OpenNumbers have ``numbers``."""
    return tuple(_step_at(step, numbers) for step in steps)


def number_at(number: int, numbers: Sequence[int]) -> int:
    """What ``number`` is where the slots of OpenNumbers have ``numbers``."""
    return number.at(numbers) if isinstance(number, OpenNumber) else number


def _step_at(step: Step, numbers: Sequence[int]) -> Step:
    match step:
        case MoveStep():
            return step._replace(nbytes=number_at(step.nbytes, numbers))
        case HostStep():
            return step._replace(args=tuple(_tensor_at(each, numbers) for each in step.args))
        case CopyStep():
            return step._replace(src=_end_at(step.src, numbers), dst=_end_at(step.dst, numbers))
        case BranchStep():
            return step._replace(then=steps_at(step.then, numbers), orelse=steps_at(step.orelse, numbers))
        case LoopStep():
            moving = tuple((word, number_at(stride, numbers)) for word, stride in step.moving)
            body = steps_at(step.body, numbers)
            return step._replace(trips=number_at(step.trips, numbers), body=body, moving=moving)
        case _:
            return step


def _end_at(end: CopyEnd, numbers: Sequence[int]) -> CopyEnd:
    match end:
        case HostTensor():
            return _tensor_at(end, numbers)
        case BoundTensor() | OwnPart():
            shape = tuple(number_at(extent, numbers) for extent in end.shape)
            made = end._replace(offset=number_at(end.offset, numbers), shape=shape)
            return made.tensor() if isinstance(made, OwnPart) else made
        case _:
            return end


def _tensor_at(tensor: HostTensor, numbers: Sequence[int]) -> HostTensor:
    if not any(isinstance(extent, OpenNumber) for extent in tensor.shape):
        return tensor
    return tensor._replace(shape=tuple(number_at(extent, numbers) for extent in tensor.shape))
