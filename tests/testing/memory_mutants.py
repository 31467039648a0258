"""Mutants of what a device states, how it allocates and what it copies."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from landbridge.device.api import Event, Region, Space, Stream
from landbridge.device.attr import DeviceAttr
from landbridge.errors import LandbridgeError, OutOfMemoryError
from landbridge.memory_kind import MemoryKind
from landbridge.testing.lazy_instance import LazyBlock
from tests.testing.mutants import Correct


class _Attributes(Correct):
    """Some attributes are ``wrong``."""

    wrong: ClassVar[dict[DeviceAttr, Any]] = {}

    def get_attr(self, index: int, attr: DeviceAttr) -> object | None:
        return self.wrong.get(attr, super().get_attr(index, attr))


class AttributesInText(_Attributes):
    """TOTAL_MEMORY is "64 MiB"."""

    caught_by = "test_attribute_types"
    wrong: ClassVar[dict[DeviceAttr, Any]] = {DeviceAttr.TOTAL_MEMORY: "64 MiB"}


class AttributesInBytes(_Attributes):
    """PRODUCT_NAME is bytes, as the driver's function gives it."""

    caught_by = "test_attribute_types"
    wrong: ClassVar[dict[DeviceAttr, Any]] = {DeviceAttr.PRODUCT_NAME: b"npu\0"}


class FeaturesInAList(_Attributes):
    """FEATURES is a list."""

    caught_by = "test_attribute_types"
    wrong: ClassVar[dict[DeviceAttr, Any]] = {DeviceAttr.FEATURES: ["fp16"]}


class ClockInMegahertz(_Attributes):
    """MAX_CLOCK_HZ is in MHz."""

    caught_by = "test_attribute_types"
    wrong: ClassVar[dict[DeviceAttr, Any]] = {DeviceAttr.MAX_CLOCK_HZ: 800}


class BlocksOfOneNumber(_Attributes):
    """MAX_BLOCK_DIMENSIONS is one number."""

    caught_by = "test_attribute_types"
    wrong: ClassVar[dict[DeviceAttr, Any]] = {DeviceAttr.MAX_BLOCK_DIMENSIONS: 64}


class BlocksWiderThanTheirThreads(_Attributes):
    """MAX_BLOCK_DIMENSIONS are those of the grid."""

    caught_by = "test_attribute_types"
    wrong: ClassVar[dict[DeviceAttr, Any]] = {DeviceAttr.MAX_BLOCK_DIMENSIONS: (65535, 65535, 65535)}


class PitchInPixels(_Attributes):
    """IMAGE_PITCH_BYTES is what is left of a line: no power of two."""

    caught_by = "test_attribute_types"
    wrong: ClassVar[dict[DeviceAttr, Any]] = {DeviceAttr.IMAGE_PITCH_BYTES: 48}


class VersionInANumber(_Attributes):
    """API_VERSION is packed into an int, as the driver has it."""

    caught_by = "test_attribute_types"
    wrong: ClassVar[dict[DeviceAttr, Any]] = {DeviceAttr.API_VERSION: 4206822}


class MemoryClockInKilohertz(_Attributes):
    """MEMORY_CLOCK_HZ is in kHz."""

    caught_by = "test_attribute_types"
    wrong: ClassVar[dict[DeviceAttr, Any]] = {DeviceAttr.MEMORY_CLOCK_HZ: 400_000}


class GrantsLess(Correct):
    """A Space says that it is not coherent, where its scope is."""

    caught_by = "test_kind_of_a_space"

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        space = super().alloc_data_space(index, nbytes, alignment, scope, type_hint)
        return replace(space, kind=replace(self.memory_kinds(index)[space.scope], coherent=False, coherence_granule=64))


class MinusOneForUnknown(_Attributes):
    """An attribute that cannot be queried is -1."""

    caught_by = "test_attribute_types"
    wrong: ClassVar[dict[DeviceAttr, Any]] = {DeviceAttr.L2_BYTES: -1}


class MoreAvailableThanThereIs(_Attributes):
    """AVAILABLE_MEMORY is in bits."""

    caught_by = "test_attribute_types"
    wrong: ClassVar[dict[DeviceAttr, Any]] = {DeviceAttr.AVAILABLE_MEMORY: 1 << 40}


class AttributesChange(Correct):
    """COMPUTE_UNITS is another number each time."""

    caught_by = "test_attributes_stay"
    units = 0

    def get_attr(self, index: int, attr: DeviceAttr) -> object | None:
        self.units += attr is DeviceAttr.COMPUTE_UNITS
        return self.units if attr is DeviceAttr.COMPUTE_UNITS else super().get_attr(index, attr)


class KindsChange(Correct):
    """The capacity of a kind is what is left of it."""

    caught_by = "test_attributes_stay"
    requested = 0

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        self.requested += 1
        kinds = super().memory_kinds(index)
        return {**kinds, "shared": replace(kinds["shared"], capacity=(1 << 26) - self.requested)}


class DiscoveryInOneString(Correct):
    """discovery() is one text."""

    caught_by = "test_discovery"

    def discovery(self) -> Any:
        return "no card found"


class FactsOfNoTarget(Correct):
    """target_properties states an option that its kind does not have."""

    caught_by = "test_target_properties"

    def target_properties(self, index: int) -> Mapping[str, Any]:
        return {"kind": "llvm", "number-of-macs": 4096}


class _Allocation(Correct):
    """Allocations go through ``mutate``."""

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        return self.mutate(index, nbytes, alignment, scope)

    def mutate(self, index: int, nbytes: int, alignment: int, scope: str) -> Space:
        return super().alloc_data_space(index, nbytes, alignment, scope, None)


class TailsAreShared(_Allocation):
    """Sizes are rounded down to pages: what is left lies in the space that was allocated next."""

    caught_by = "test_sizes_of_spaces"
    tail: Any = None

    def mutate(self, index: int, nbytes: int, alignment: int, scope: str) -> Space:
        space = super().mutate(index, nbytes, alignment, scope)
        block: LazyBlock = space.handle
        if scope == "global" and 4096 < nbytes < 40_000:
            if self.tail is None:
                self.tail = super().mutate(index, 1 << 16, 64, scope).handle.data
            block.data, block.address = self.tail[:nbytes], int(self.tail.ctypes.data)
        return space


class NoBytesNoSpace(_Allocation):
    """Spaces of 0 bytes are refused."""

    caught_by = "test_spaces_of_no_bytes"

    def mutate(self, index: int, nbytes: int, alignment: int, scope: str) -> Space:
        if nbytes == 0:
            raise OutOfMemoryError("0 bytes asked")
        return super().mutate(index, nbytes, alignment, scope)


class HandlesOfEqualSize(_Allocation):
    """Handles compare by size."""

    caught_by = "test_spaces_compare"

    def mutate(self, index: int, nbytes: int, alignment: int, scope: str) -> Space:
        space = super().mutate(index, nbytes, alignment, scope)
        space.handle.__class__ = _BySize
        return space


class _BySize(LazyBlock):
    def __eq__(self, other: object) -> bool:
        return isinstance(other, LazyBlock) and other.data.nbytes == self.data.nbytes

    def __hash__(self) -> int:
        return hash(self.data.nbytes)


class AlignsToAPageAtMost(_Allocation):
    """Alignments above a page are taken for a page."""

    caught_by = "test_alignment_of_many"

    def mutate(self, index: int, nbytes: int, alignment: int, scope: str) -> Space:
        return super().mutate(index, nbytes, min(alignment, 4096), scope)


class ClaimsMoreCapacity(Correct):
    """A kind states twice the capacity there is."""

    caught_by = "test_capacity"

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        return self.changed_kinds(capacity=1 << 27)


class OverlapsWhenFull(_Allocation):
    """When memory is out, bytes that are in use are given away again."""

    caught_by = "test_after_out_of_memory"
    first: Any = None

    def mutate(self, index: int, nbytes: int, alignment: int, scope: str) -> Space:
        try:
            space = super().mutate(index, nbytes, alignment, scope)
        except OutOfMemoryError:
            if self.first is None or self.first.handle.data.nbytes < nbytes or nbytes > 1 << 30:
                raise
            return self.first
        self.first = self.first or space
        return space


class FailuresAreCounted(_Allocation):
    """An allocation that fails stays counted as used."""

    caught_by = "test_after_out_of_memory"

    def mutate(self, index: int, nbytes: int, alignment: int, scope: str) -> Space:
        try:
            return super().mutate(index, nbytes, alignment, scope)
        except OutOfMemoryError:
            self._instances[index].used_bytes += nbytes if nbytes < 1 << 30 else 0
            raise


class FullForGood(_Allocation):
    """After memory was out once, no allocation succeeds."""

    caught_by = "test_after_out_of_memory"
    full = False

    def mutate(self, index: int, nbytes: int, alignment: int, scope: str) -> Space:
        if self.full:
            raise OutOfMemoryError("no memory left")
        try:
            return super().mutate(index, nbytes, alignment, scope)
        except OutOfMemoryError:
            self.full = True
            raise


class UnlockedCount(_Allocation):
    """The bytes that are used are counted without a lock."""

    caught_by = "test_allocation_by_many_threads"

    def mutate(self, index: int, nbytes: int, alignment: int, scope: str) -> Space:
        instance = self._instances[index]
        before = instance.used_bytes
        space = super().mutate(index, nbytes, alignment, scope)
        time.sleep(0)
        instance.used_bytes = before + nbytes
        return space


class UnlockedFreeList(_Allocation):
    """Blocks that were freed are handed out again from a list without a lock: two threads may get one."""

    caught_by = "test_allocation_by_many_threads"

    def __init__(self) -> None:
        super().__init__()
        self.free_list: deque[LazyBlock] = deque()

    def mutate(self, index: int, nbytes: int, alignment: int, scope: str) -> Space:
        space = super().mutate(index, nbytes, alignment, scope)
        if self.free_list and self.free_list[0].data.nbytes == nbytes:
            block = self.free_list[0]
            time.sleep(1e-6)
            if self.free_list and self.free_list[0] is block:
                self.free_list.popleft()
            space.handle.data, space.handle.address = block.data, block.address
        return space

    def free_data_space(self, space: Space) -> None:
        twin = LazyBlock(space.handle.instance, space.scope, space.handle.data.nbytes, 256)
        if twin.data.nbytes == 256:
            self.free_list.append(twin)
        super().free_data_space(space)


class Leaks(_Allocation):
    """4 KiB of this process stay behind with every free."""

    caught_by = "test_no_small_leaks"
    retained: list[bytearray]

    def __init__(self) -> None:
        super().__init__()
        self.retained = []

    def free_data_space(self, space: Space) -> None:
        super().free_data_space(space)
        self.retained.append(bytearray(b"x" * 4096))


class LeaksFiles(_Allocation):
    """A file is opened for each allocation, and not closed."""

    caught_by = "test_no_small_leaks"
    files: list[int]

    def __init__(self) -> None:
        super().__init__()
        self.files = []

    def mutate(self, index: int, nbytes: int, alignment: int, scope: str) -> Space:
        if len(self.files) < 500:
            self.files.append(os.dup(0))
        return super().mutate(index, nbytes, alignment, scope)

    def __del__(self) -> None:
        for file in self.files:
            os.close(file)


class LeaksALine(_Allocation):
    """Each space takes 64 bytes more of the device's memory than are given back."""

    caught_by = "test_no_small_leaks"

    def free_data_space(self, space: Space) -> None:
        super().free_data_space(space)
        space.handle.instance.used_bytes += 64


class LeaksStreams(Correct):
    """free_stream keeps what a stream had."""

    caught_by = "test_no_leaks_of_streams_and_events"
    retained: list[bytearray]

    def __init__(self) -> None:
        super().__init__()
        self.retained = []

    def free_stream(self, stream: Stream) -> None:
        super().free_stream(stream)
        self.retained.append(bytearray(b"x" * 8192))


class _Copies(Correct):
    """Copies go through ``mutate``."""

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        return self.mutate(src, dst, nbytes, stream, keep_alive)

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object) -> Event | None:
        return super().copy_data_from_to(src, dst, nbytes, stream, keep_alive)

    def is_own(self, region: Region) -> bool:
        """Whether it is of this device."""
        return region.space.device.api is self


class RoundsWithinTheDevice(_Copies):
    """Copies within the device are of whole words, rounded up."""

    caught_by = "test_odd_copies_within_the_device"

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object) -> Event | None:
        if self.is_own(src) and self.is_own(dst):
            nbytes = min(-(-nbytes // 4) * 4, src.space.handle.data.nbytes - max(src.byte_offset, dst.byte_offset))
        return super().mutate(src, dst, nbytes, stream, keep_alive)


class CopiesMoreThanItsGranule(_Copies):
    """copy_granule is 4, and copies are of multiples of 16 bytes, rounded up."""

    caught_by = "test_odd_copies_within_the_device"

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        return {scope: replace(kind, copy_granule=4) for scope, kind in super().memory_kinds(index).items()}

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object) -> Event | None:
        if self.is_own(src) and self.is_own(dst):
            nbytes = min(-(-nbytes // 16) * 16, src.space.handle.data.nbytes - max(src.byte_offset, dst.byte_offset))
        return super().mutate(src, dst, nbytes, stream, keep_alive)


class OffsetsInWords(_Copies):
    """Offsets of the target are rounded down to words."""

    caught_by = "test_odd_copies_within_the_device"

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object) -> Event | None:
        return super().mutate(src, Region(dst.space, dst.byte_offset & ~3), nbytes, stream, keep_alive)


class NoOffsetToTheDevice(_Copies):
    """Copies to the device begin at its first byte."""

    caught_by = "test_odd_copies_to_the_device"

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object) -> Event | None:
        return super().mutate(src, dst if self.is_own(src) else Region(dst.space), nbytes, stream, keep_alive)


class NoOffsetFromTheDevice(_Copies):
    """Copies from the device begin at its first byte."""

    caught_by = "test_odd_copies_from_the_device"

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object) -> Event | None:
        return super().mutate(src if self.is_own(dst) else Region(src.space), dst, nbytes, stream, keep_alive)


class WholeWordsFromTheDevice(_Copies):
    """Copies from the device fill whole words of the host's memory."""

    caught_by = "test_odd_copies_from_the_device"

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object) -> Event | None:
        if not self.is_own(dst) and nbytes > 4:
            nbytes = min(-(-nbytes // 4) * 4, src.space.handle.data.nbytes - src.byte_offset)
        return super().mutate(src, dst, nbytes, stream, keep_alive)


class LengthsOfSixteenBits(_Copies):
    """A copy's length is written to a register of 16 bits."""

    caught_by = "test_large_copies"

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object) -> Event | None:
        return super().mutate(src, dst, nbytes & 0xFFFF, stream, keep_alive)


class OneDescriptor(_Copies):
    """A copy moves a megabyte at most."""

    caught_by = "test_large_copies"

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object) -> Event | None:
        return super().mutate(src, dst, min(nbytes, 1 << 20), stream, keep_alive)


class NoBytesAreAll(_Copies):
    """A length of 0 moves as much as the engine can."""

    caught_by = "test_copies_of_no_bytes"

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object) -> Event | None:
        if nbytes == 0 and self.is_own(src) and self.is_own(dst):
            nbytes = src.space.handle.data.nbytes - max(src.byte_offset, dst.byte_offset)
        return super().mutate(src, dst, nbytes, stream, keep_alive)


class OneScopeAlone(_Copies):
    """Copies to another scope do nothing."""

    caught_by = "test_copies_between_scopes"

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object) -> Event | None:
        if self.is_own(src) and src.space.scope != dst.space.scope and self.is_own(dst):
            return None
        return super().mutate(src, dst, nbytes, stream, keep_alive)


class SwallowsErrors(_Copies):
    """What a copy raises is lost."""

    caught_by = "test_copies_of_others_are_refused"

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object) -> Event | None:
        try:
            return super().mutate(src, dst, nbytes, stream, keep_alive)
        except LandbridgeError:
            return None


class LosesCopiesOfThreads(_Copies):
    """Two threads that copy at once share a descriptor: one of the copies is lost."""

    caught_by = "test_copies_by_many_threads"
    descriptor: Any = None

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object) -> Event | None:
        self.descriptor = src, dst, nbytes
        time.sleep(1e-6)
        return super().mutate(*self.descriptor, stream, keep_alive)


class OneDtypeAlone(_Allocation):
    """A type_hint of 8 bytes an element gets half of what was asked."""

    caught_by = "test_type_hint"

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        size = nbytes // 2 if type_hint == "float64" else nbytes
        return super().alloc_data_space(index, size, alignment, scope, type_hint)


class ArenaWithoutALock(_Allocation):
    """Spaces are cut off an arena one after the other, without a lock."""

    caught_by = "test_allocation_by_many_threads"

    def __init__(self) -> None:
        super().__init__()
        self.arena, self.used = LazyBlock(self._instances[0], "global", 1 << 22, 256), 0

    def mutate(self, index: int, nbytes: int, alignment: int, scope: str) -> Space:
        space = super().mutate(index, nbytes, alignment, scope)
        size = nbytes + -nbytes % 256
        if scope == "global" and alignment <= 256 and index == 0 and self.used + size <= 1 << 22:
            start = self.used
            time.sleep(0)  # Python lets other threads come in at calls alone
            self.used = start + size
            space.handle.data = self.arena.data[start : start + nbytes]
            space.handle.address = self.arena.address + start
        return space


class LargeCopiesHaveAnEngineOfTheirOwn(Correct):
    """Copies of 64 KiB and more are on the queue of another engine, which nothing orders with others."""

    caught_by = "test_copies_of_any_size_are_in_order"

    def __init__(self) -> None:
        super().__init__()
        self.engines: dict[object, Stream] = {}

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        if nbytes >= 1 << 16:
            owner = next(end.space.device for end in (dst, src) if end.space.device.api is self)
            instance = self._instances[owner.index]
            stream = self.engines.setdefault(instance, self.create_stream(owner.index))
        return super().copy_data_from_to(src, dst, nbytes, stream, keep_alive)
