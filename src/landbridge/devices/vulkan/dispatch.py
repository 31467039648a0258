"""Dispatch: one checked launch of a kernel, as a step of a command buffer."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from landbridge.devices.vulkan import flags
from landbridge.devices.vulkan.allocation import Allocation
from landbridge.devices.vulkan.driver_objects import DriverObjects
from landbridge.devices.vulkan.images import Image
from landbridge.devices.vulkan.memory_uses import UsedMemory
from landbridge.devices.vulkan.modules import Pipeline
from landbridge.devices.vulkan.spirv_facts import EntryPoint, Shape
from landbridge.devices.vulkan.steps import MemoryLocation
from landbridge.devices.vulkan.structure import handles
from landbridge.errors import InputError, UseAfterFreeError
from landbridge.executable.spirv import ImageFormat
from landbridge.records import record
from landbridge.targets.images import TEXTURE_SCOPE


@record(frozen=True)
class Dispatch:
    """A Step that runs ``grid`` workgroups of ``kernel``, with one of ``places`` for each binding.

    ``push`` None: the push constants are the element at which each location begins, relative to where a descriptor may.
    """

    kernel: Pipeline
    places: tuple[MemoryLocation, ...]
    push: bytes | None
    grid: Shape

    @property
    def uses(self) -> Sequence[tuple[UsedMemory, bool]]:
        """Returns the memory it is bound to, and whether it may write it."""
        entry = self.kernel.entry
        pairs = zip(entry.bindings, self.places, strict=True)
        return [(location.memory, binding in entry.written) for binding, location in pairs]

    def moved(self, places: Sequence[MemoryLocation]) -> Dispatch:
        """Returns the same dispatch on other locations."""
        _check_places(self.kernel, places, starts=self.push is None)
        return Dispatch(self.kernel, tuple(places), self.push, self.grid)

    def encode(self, device: DriverObjects, commands: int) -> Callable[[], None] | None:
        """Append the bind and the dispatch; the descriptor set is released when the commands will not run again."""
        kernel, calls = self.kernel, device.calls
        calls.vkCmdBindPipeline(commands, flags.BIND_POINT_COMPUTE, kernel.pipeline)
        descriptors = kernel.take_set() if self.places else 0
        if descriptors:
            kernel.writes.write(descriptors, self.places)
            bound = handles(descriptors)
            calls.vkCmdBindDescriptorSets(commands, flags.BIND_POINT_COMPUTE, kernel.layout, 0, 1, bound, 0, None)
        push = self._starts() if self.push is None else self.push
        if push:
            calls.vkCmdPushConstants(commands, kernel.layout, flags.SHADER_STAGE_COMPUTE, 0, len(push), push)
        calls.vkCmdDispatch(commands, *self.grid)
        return lambda: kernel.give_set(descriptors)

    def _starts(self) -> bytes:
        entry = self.kernel.entry
        alignment = self.kernel.device.physical.limits.minStorageBufferOffsetAlignment
        triples = zip(entry.bindings, self.places, entry.strides, strict=True)
        flat = [(location, stride) for binding, location, stride in triples if binding not in entry.images]
        return _packed(entry.name, entry, [location.offset % alignment // stride for location, stride in flat])


def dispatch(
    kernel: Pipeline,
    grid: Sequence[int],
    block: Sequence[int],
    places: Sequence[MemoryLocation],
    scalars: Sequence[int | float],
) -> Dispatch:
    """Returns the step of a launch; raises InputError for arguments or shapes that the kernel does not have.

    Places go to the storage buffers in the order of their bindings, scalars to the push constants in theirs.
    """
    entry, limits = kernel.entry, kernel.device.physical.limits
    subject = f"kernel {entry.name!r} on {kernel.device.name}"
    starts = not scalars and entry.can_take_starts
    if len(places) != len(entry.bindings) or (len(scalars) != len(entry.push) and not starts):
        images = f", {len(entry.images)} images" if entry.images else ""
        raise InputError(
            f"{subject} takes {entry.buffers} buffers{images} and {len(entry.push)} numbers; {len(places)} and "
            f"{len(scalars)} were given"
        )
    if tuple(block) != entry.local_size:
        raise InputError(f"{subject} was compiled for blocks of {entry.local_size}; {tuple(block)} was asked")
    most = tuple(limits.maxComputeWorkGroupCount)
    if len(grid) != 3 or min(grid) < 1 or any(requested > legal for requested, legal in zip(grid, most, strict=False)):
        raise InputError(f"{subject}: a grid of {tuple(grid)}; legal: three numbers from 1 to {most}")
    _check_places(kernel, places, starts=starts)
    push = None if starts else _packed(subject, entry, scalars)
    return Dispatch(kernel, tuple(places), push, (grid[0], grid[1], grid[2]))


def _check_places(kernel: Pipeline, places: Sequence[MemoryLocation], *, starts: bool) -> None:
    subject = f"kernel {kernel.entry.name!r} on {kernel.device.name}"
    alignment = kernel.device.physical.limits.minStorageBufferOffsetAlignment
    entry = kernel.entry
    for binding, location, stride in zip(entry.bindings, places, entry.strides, strict=True):
        memory, step = location.memory, stride if starts else alignment
        if memory.device is not kernel.device:
            raise InputError(f"{subject} was given memory of {memory.device.name}; import it, or copy it there")
        if memory.freed:
            raise UseAfterFreeError(f"{subject} was given a space that was freed; allocate another one")
        if binding in entry.images:
            _check_image(f"{subject}, binding {binding},", location, entry.images[binding])
            continue
        if not isinstance(memory, Allocation):
            raise InputError(
                f"{subject} was given an image where it takes a buffer (binding {binding}); copy it to one"
            )
        if location.offset % step or not 0 <= location.offset < max(memory.nbytes, 1):
            raise InputError(
                f"{subject} was given a space of {memory.nbytes} bytes from byte {location.offset}; legal: a multiple "
                "of "
                f"{step} inside it ({'its elements' if starts else 'minStorageBufferOffsetAlignment'})"
            )


def _check_image(subject: str, location: MemoryLocation, format: ImageFormat) -> None:
    image = location.memory
    if not isinstance(image, Image) or location.offset:
        found = f"an image from byte {location.offset} on" if isinstance(image, Image) else "a buffer"
        raise InputError(
            f"{subject} was given {found} where it takes an image; legal: all of one, of scope {TEXTURE_SCOPE!r}"
        )
    usage = flags.IMAGE_STORAGE if format else flags.IMAGE_SAMPLED
    if not image.usage & usage:
        raise InputError(
            f"{subject} {'writes' if format else 'reads'} an image of {image.format.name}, which no kernel does on "
            "this "
            "driver; take other lanes or another dtype"
        )
    if format not in (ImageFormat.Unknown, image.format):
        raise InputError(f"{subject} writes images of {format.name} and was given one of {image.format.name}")


def _packed(subject: str, entry: EntryPoint, scalars: Sequence[int | float]) -> bytes:
    packed = bytearray(entry.push_bytes)
    for number, (offset, form) in zip(scalars, entry.push, strict=True):
        try:
            struct.pack_into(form, packed, offset, number)
        except (struct.error, OverflowError) as error:
            raise InputError(f"{subject} was given {number!r}; {error}") from error
    return bytes(packed)
