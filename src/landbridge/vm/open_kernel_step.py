"""OpenKernelStep: a KernelStep of a program bound for one choice of sizes, and how it depends on them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from landbridge.device.api import Device, Region
from landbridge.executable.device_image import LaunchSequence
from landbridge.executable.open_number import OpenNumber
from landbridge.vm.device_kernels import LoadedKernels
from landbridge.vm.kernel_step import BoundBuffer, Buffer, KernelStep, OwnedBuffer


class OpenOperand(NamedTuple):
    """A ``buffer`` that a Call takes, of a tensor of ``shape`` whose elements have ``itemsize`` bytes. Its offset and
    its shape may be OpenNumbers.
    """

    buffer: Buffer
    shape: tuple[int, ...]
    itemsize: int

    def at(self, extent_values: Sequence[int]) -> Buffer:
        """Returns the buffer where the slots of OpenNumbers have ``extent_values``."""
        match self.buffer:
            case BoundBuffer():
                offset = _at(self.buffer.offset, extent_values)
                nbytes = prod([_at(extent, extent_values) for extent in self.shape]) * self.itemsize
                return self.buffer._replace(offset=offset, nbytes=nbytes)
            case OwnedBuffer(region=Region(space=space, byte_offset=OpenNumber() as offset)):
                return self.buffer._replace(region=Region(space, offset.at(extent_values)))
            case _:
                return self.buffer

    @property
    def offset(self) -> int:
        """Returns the byte at which the buffer begins in its memory; 0 for rows."""
        match self.buffer:
            case BoundBuffer(offset=offset) | OwnedBuffer(region=Region(byte_offset=offset)):
                return offset
            case _:
                return 0


class OpenCall(NamedTuple):
    """A Call of ``sequence``, of ``kernels``, that a device runs on ``operands`` and ``scratch``.

    ``sizes``: its words, which may be OpenNumbers; where there are any, the last operand is the memory that holds them.
    ``unless_same``: as ``KernelStep.add`` takes it.
    """

    kernels: LoadedKernels
    vdevice: int
    sequence: LaunchSequence
    sizes: tuple[int, ...]
    operands: tuple[OpenOperand, ...]
    scratch: tuple[OwnedBuffer, ...]
    unless_same: bool


class OpenKernelStep(KernelStep):
    """A KernelStep of an open program, bound for one choice of its sizes; ``calls`` says how it depends on them."""

    def __init__(self, device: Device, number: int = 0) -> None:
        super().__init__(device, number)
        self.calls: list[OpenCall] = []

    @property
    def may_be_another(self) -> bool:
        """Returns whether it can be computed for other sizes: code of the host uses none of its memory."""
        return not self._borrowed

    @property
    def is_open(self) -> bool:
        """Returns whether anything of it depends on sizes."""
        return any(
            isinstance(number, OpenNumber)
            for call in self.calls
            for number in (*call.sizes, *(number for each in call.operands for number in (each.offset, *each.shape)))
        )


def _at(number: int, extent_values: Sequence[int]) -> int:
    return number.at(extent_values) if isinstance(number, OpenNumber) else number
