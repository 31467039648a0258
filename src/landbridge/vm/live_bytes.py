"""The planned bytes that hold a value at each call of a program, for the timeline of memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from landbridge.dtypes import dtype
from landbridge.executable import instructions as ins
from landbridge.executable.parts import Function
from landbridge.records import record


@record(eq=False)
class _Tensor:
    """A tensor in a storage, and the first and last step that touch it."""

    vdevice: int
    storage: int
    offset: int
    nbytes: int
    first: int = -1
    last: int = -1


def live_bytes(function: Function) -> list[Mapping[int, int]]:
    """Returns for each Call, in the order of the instructions, the bytes by vdevice that were written and will be read.

    Both branches of an If count one after the other, as they were planned; what a Loop uses and did not make is in use
    until it ends.
    """
    steps = _Steps()
    steps.take(function.instructions)
    for tensor in steps.prepared:
        tensor.last = steps.number
    distinct = steps.distinct()
    return [_covered(t for t in distinct if 0 <= t.first <= call <= t.last) for call in steps.calls]


class _Steps:
    """The steps of a program, numbered as in the plan, and the tensors that they touch."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.prepared: list[_Tensor] = []
        self.number = -1
        self._vdevices: dict[int, int] = {}
        self._tensors: dict[int, _Tensor] = {}

    def distinct(self) -> list[_Tensor]:
        """Returns every tensor once, however many registers view it."""
        return list(dict.fromkeys(self._tensors.values()))

    def take(self, instructions: Sequence[ins.Instruction]) -> None:
        """Number the steps of ``instructions``."""
        tensors = self._tensors
        for instruction in instructions:
            match instruction:
                case ins.AllocStorage(dst=dst, vdevice=vdevice):
                    self._vdevices[dst] = vdevice
                case ins.AllocTensor(dst=dst, storage=storage, offset=offset) if storage in self._vdevices:
                    nbytes = math.prod(instruction.shape) * dtype(instruction.dtype).itemsize
                    tensors[dst] = _Tensor(self._vdevices[storage], storage, offset, nbytes)
                case ins.View(dst=dst, src=source) if source in tensors:
                    tensors[dst] = tensors[source]
                case ins.Prepared(registers=retained):
                    self.prepared += [tensors[register] for register in retained if register in tensors]
                case ins.If(condition=condition, then=then, orelse=orelse):
                    self._touch((condition,))
                    self.take(then)
                    self.take(orelse)
                case ins.Loop():
                    self._loop(instruction)
                case ins.Call(args=args) | ins.HostCall(args=args):
                    self._touch(args)
                    if isinstance(instruction, ins.Call):
                        self.calls.append(self.number)
                case ins.ToVDevice(src=src, dst=dst):
                    self._touch((src, dst))
                case _:
                    pass

    def _loop(self, loop: ins.Loop) -> None:
        touched = (*loop.count, *loop.condition, *(each.src for each in loop.slices))
        self._touch(touched)
        began = self.number
        for each in loop.slices:
            if each.src in self._tensors:
                self._tensors[each.dst] = self._tensors[each.src]
        self.take(loop.body)
        self._touch(touched)
        for tensor in self.distinct():
            if 0 <= tensor.first < began < tensor.last:
                tensor.last = self.number

    def _touch(self, registers: Sequence[int]) -> None:
        self.number += 1
        for register in registers:
            if (tensor := self._tensors.get(register)) is not None:
                tensor.first = self.number if tensor.first < 0 else tensor.first
                tensor.last = self.number


def _covered(tensors: Iterable[_Tensor]) -> dict[int, int]:
    """Returns the bytes that ``tensors`` occupy, by vdevice; shared bytes count once."""
    covered: dict[int, int] = {}
    end, storage = 0, -1
    for tensor in sorted(tensors, key=lambda t: (t.storage, t.offset)):
        if tensor.storage != storage:
            storage, end = tensor.storage, 0
        begin = max(end, tensor.offset)
        end = max(end, tensor.offset + tensor.nbytes)
        covered[tensor.vdevice] = covered.get(tensor.vdevice, 0) + end - begin
    return covered
