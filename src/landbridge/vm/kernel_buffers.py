"""KernelBuffers: memory that kernels of a device get: the program's own, its constants, and scratch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from landbridge.device.api import NdSpace, Region
from landbridge.device.import_source import HostPointer
from landbridge.device.protocols import RowTable
from landbridge.errors import BindError, ZeroCopyError
from landbridge.memory.borrowed import import_memory
from landbridge.memory.storage import Storage
from landbridge.tensor.imported import import_tensor
from landbridge.vm.device_kernels import LoadedKernels
from landbridge.vm.kernel_step import BoundBuffer, Buffer, OwnedBuffer
from landbridge.vm.owned_memory import FlatMemory, RowMemory
from landbridge.vm.registers import Memory, RegisterLocation


class KernelBuffers:
    """The buffers of one program, kept for as long as it lives. Calls run one after another and share their scratch.

    ``outputs``: the registers that are outputs of the program. ``scratch_bytes``: the bytes of each scratch buffer, by
    vdevice and number: as many as any call needs.
    """

    def __init__(self, memory: Memory, outputs: range, scratch_bytes: Mapping[tuple[int, int], int]) -> None:
        self._memory, self._outputs, self._scratch_bytes = memory, outputs, scratch_bytes
        self._scratch: dict[tuple[int, int], OwnedBuffer] = {}
        self._imports: dict[tuple[LoadedKernels, int], Storage] = {}
        #: The imports that regions in use depend on.
        self.owned: list[FlatMemory] = []

    def operand(
        self, kernels: LoadedKernels, location: RegisterLocation, user: str, *, is_image: bool = False
    ) -> Buffer:
        """Returns the buffer of ``location`` for a call by ``user``, or the whole image that it is.

        Raises BindError where ``kernels`` cannot use it.
        """
        subject = f"{user}: tensor {location.name!r}"
        if isinstance(location.owned, RowMemory):
            if is_image:
                return _whole(kernels, location.owned, subject)
            return _in_rows(kernels, location.owned, location, subject)
        if location.owned is not None:
            return self._owned(kernels, location.owned, location.offset, location.nbytes, subject)
        register = cast(int, location.io)
        if location.axis_separators and not is_image:
            raise BindError(
                f"{subject} lies in rows of {self._memory.binding(location.vdevice)}, which kernels of "
                f"{kernels.device} do not take for inputs and outputs; compile the model again"
            )
        _check_offset(kernels, location.offset, subject)
        return BoundBuffer(register, location.offset, location.nbytes, register in self._outputs)

    def _owned(self, kernels: LoadedKernels, memory: FlatMemory, offset: int, nbytes: int, subject: str) -> OwnedBuffer:
        """Returns ``nbytes`` bytes from ``offset`` on of ``memory``; host memory is imported, once.

        Raises BindError where the device cannot use them.
        """
        if memory.tensor is not None and memory.tensor.device == kernels.device:
            base = memory.tensor.storage.live_region
            start = base.byte_offset + memory.tensor.byte_offset + offset
            _check_offset(kernels, start, subject)
            return OwnedBuffer(Region(base.space, start), nbytes)
        if memory.address is None:
            raise BindError(f"{subject} is neither on {kernels.device} nor on the host; compile the model again")
        key = (kernels, memory.address)
        storage = self._imports.get(key)
        if storage is None:
            try:
                if memory.tensor is not None:  # its allocation may be larger, for drivers that import pages
                    storage = import_tensor(memory.tensor, kernels.device).storage
                else:
                    source = HostPointer(memory.address, memory.nbytes)
                    storage = import_memory(kernels.device, source, "rw", owner=memory)
            except ZeroCopyError as error:
                raise BindError(
                    f"{subject}: the program was compiled for memory that host and device share, and {error}"
                ) from error
            self._imports[key] = storage
        _check_offset(kernels, offset, subject)
        return OwnedBuffer(
            Region(storage.live_region.space, storage.live_region.byte_offset + offset),
            nbytes,
            borrowed=storage,
        )

    def scratch(self, kernels: LoadedKernels, vdevice: int, number: int) -> OwnedBuffer:
        """Returns scratch buffer ``number`` of calls on ``vdevice``, as large as any of them needs."""
        found = self._scratch.get((vdevice, number))
        if found is None:
            memory = self._memory.scratch(vdevice, number, max(self._scratch_bytes[vdevice, number], 1))
            self.owned.append(memory)
            found = self._scratch[vdevice, number] = self._owned(kernels, memory, 0, memory.nbytes, "scratch memory")
        return found


def _whole(kernels: LoadedKernels, memory: RowMemory, subject: str) -> OwnedBuffer:
    """Returns the space of ``memory`` as one object; raises BindError where it is not the device's own."""
    region = memory.tensor.storage.live_region
    if memory.tensor.device != kernels.device or not isinstance(region.space, NdSpace):
        raise BindError(
            f"{subject} lies in memory of {memory.tensor.device}, which is no image of {kernels.device}; bind the "
            "vdevice that it is on to the device that computes it"
        )
    return OwnedBuffer(region, memory.nbytes)


def _in_rows(kernels: LoadedKernels, memory: RowMemory, location: RegisterLocation, subject: str) -> RowTable:
    """Returns the rows of ``location``, a tensor in ``memory``; raises BindError unless they are the device's own."""
    if memory.tensor.device != kernels.device:
        raise BindError(
            f"{subject} lies in rows of {memory.tensor.device}, which {kernels.device} cannot import; bind the "
            "vdevice that it is on to the device that computes it"
        )
    return RowTable(memory.regions(location.offset, location.shape, location.dtype, location.axis_separators))


def _check_offset(kernels: LoadedKernels, offset: int, subject: str) -> None:
    """Raises BindError for bytes at an offset where no kernel argument may begin."""
    alignment = kernels.offset_alignment
    if offset % alignment:
        raise BindError(
            f"{subject} begins at byte {offset} of its memory; {kernels.device} takes multiples of {alignment}: "
            "compile for Target.from_device of the device"
        )
