"""How many planned bytes hold a value at each call of a program: what the timeline of memory shows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from landbridge.dtypes import dtype
from landbridge.executable import instructions as ins
from landbridge.executable.parts import Function


@dataclass
class _Tensor:
    """A tensor in a storage, and the first and last step that touch it."""

    vdevice: int
    storage: int
    offset: int
    nbytes: int
    first: int = -1
    last: int = -1


def live_bytes(function: Function) -> list[Mapping[int, int]]:
    """For each Call, in the order of the instructions, the bytes by vdevice that were written and will be read.

    Both branches of an If count one after the other, as they were planned.
    """
    vdevices: dict[int, int] = {}
    tensors: dict[int, _Tensor] = {}
    calls: list[int] = []
    prepared: list[_Tensor] = []
    step = -1
    for instruction in ins.flattened(function.instructions):
        match instruction:
            case ins.AllocStorage(dst=dst, vdevice=vdevice):
                vdevices[dst] = vdevice
            case ins.AllocTensor(dst=dst, storage=storage, offset=offset) if storage in vdevices:
                nbytes = math.prod(instruction.shape) * dtype(instruction.dtype).itemsize
                tensors[dst] = _Tensor(vdevices[storage], storage, offset, nbytes)
            case ins.View(dst=dst, src=source) if source in tensors:
                tensors[dst] = tensors[source]
            case ins.Prepared(registers=kept):
                prepared += [tensors[register] for register in kept if register in tensors]
            case _ if (registers := _touched(instruction)) is not None:
                step += 1
                if isinstance(instruction, ins.Call):
                    calls.append(step)
                for register in registers:
                    if (tensor := tensors.get(register)) is not None:
                        tensor.first = step if tensor.first < 0 else tensor.first
                        tensor.last = step
            case _:
                pass
    for tensor in prepared:
        tensor.last = step
    distinct = list({id(tensor): tensor for tensor in tensors.values()}.values())
    return [_covered(t for t in distinct if 0 <= t.first <= call <= t.last) for call in calls]


def _covered(tensors: Iterable[_Tensor]) -> dict[int, int]:
    """The bytes that ``tensors`` lie on, by vdevice; what several share counts once."""
    covered: dict[int, int] = {}
    end, storage = 0, -1
    for tensor in sorted(tensors, key=lambda t: (t.storage, t.offset)):
        if tensor.storage != storage:
            storage, end = tensor.storage, 0
        begin = max(end, tensor.offset)
        end = max(end, tensor.offset + tensor.nbytes)
        covered[tensor.vdevice] = covered.get(tensor.vdevice, 0) + end - begin
    return covered


def _touched(instruction: ins.Instruction) -> Sequence[int] | None:
    """The registers that a step reads or writes; None for what is no step."""
    match instruction:
        case ins.Call(args=args) | ins.HostCall(args=args):
            return args
        case ins.ToVDevice(src=src, dst=dst):
            return (src, dst)
        case ins.If(condition=condition):
            return (condition,)
        case _:
            return None
