"""Mutants: a correct device with one sentence of the contract broken, and the test that must notice.

Those of ``RUNTIME`` break the runtime above the device instead, where a sentence is the runtime's duty.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Event, Region, Space, Stream
from landbridge.device.attr import DeviceAttr
from landbridge.device.import_source import HostPointer, ImportSource
from landbridge.device.protocols import AccessMode
from landbridge.errors import InputError, OutOfMemoryError
from landbridge.memory import ledger
from landbridge.memory.allocators import default, naive
from landbridge.memory.storage import Storage
from landbridge.memory_kind import MemoryKind
from landbridge.tensor import Tensor
from landbridge.testing.lazy_instance import LazyBlock
from landbridge.testing.lazy_queue import Task
from landbridge.testing.sim_board import SimBoardDeviceAPI
from tests.testing.c_kernels import FORMAT, loaded


class Correct(SimBoardDeviceAPI):
    """Nothing broken."""

    name = "mutant"
    caught_by: ClassVar[str] = ""

    def module_formats(self, index: int) -> Sequence[str]:
        """Those of ``c_kernels``."""
        return (FORMAT,)

    def load_module(self, index: int, binary: bytes, format: str, options: str = "") -> object:
        """A library of ``c_kernels``."""
        if format != FORMAT:
            raise InputError(f"mutant loads no modules of format {format!r}; legal: {FORMAT}")
        return loaded(binary)

    def changed_kinds(self, **changes: Any) -> Mapping[str, MemoryKind]:
        """The kinds with fields of ``shared`` changed."""
        kinds = dict(SimBoardDeviceAPI.memory_kinds(self, 0))
        return kinds | {"shared": replace(kinds["shared"], **changes)}


class OldVersion(Correct):
    """api_version is of an older contract."""

    caught_by = "test_api_version"
    api_version = 0


class CountsInFloats(Correct):
    """count() is 2.0."""

    caught_by = "test_count"

    def count(self) -> int:
        return 2.0  # type: ignore[return-value]


class EveryIndexExists(Correct):
    """count() grows with every call, and any index can be opened."""

    caught_by = "test_index_that_does_not_exist"
    calls = 1

    def open(self, index: int, **options: object) -> None:
        pass

    def count(self) -> int:
        self.calls += 1
        return self.calls


class AttributesRaise(Correct):
    """get_attr raises for what it does not know."""

    caught_by = "test_get_attr"

    def get_attr(self, index: int, attr: DeviceAttr) -> object | None:
        if attr is DeviceAttr.L3_BYTES:
            raise LookupError(attr)
        return super().get_attr(index, attr)


class NoGlobalScope(Correct):
    """The scopes are called otherwise."""

    caught_by = "test_global_scope"

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        return {"shared": super().memory_kinds(index)["shared"]}


class EmptyScopeIsShared(Correct):
    """Scope "" is another scope than global."""

    caught_by = "test_empty_scope"

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        return super().alloc_data_space(index, nbytes, alignment, scope or "shared", type_hint)


class UnknownScopesAreGlobal(Correct):
    """An unknown scope is taken for global."""

    caught_by = "test_unknown_scope"

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        known = scope if scope in ("", *self.memory_kinds(index)) else "global"
        return super().alloc_data_space(index, nbytes, alignment, known, type_hint)


class KindsUnderOtherNames(Correct):
    """A kind is listed under a scope that is not its own."""

    caught_by = "test_kinds"

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        kinds = super().memory_kinds(index)
        return {**kinds, "fast": kinds["shared"]}


class ClaimsACode(Correct):
    """A device of its own takes a DLPack code below kDLExtDev."""

    caught_by = "test_device_type"
    device_type = 5


class WrongDLPackDevice(Correct):
    """A kind says that it is CUDA memory."""

    caught_by = "test_dlpack_device"

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        return self.changed_kinds(dlpack_device=(2, 0))


class SpacesForgetTheirScope(Correct):
    """Every Space says global."""

    caught_by = "test_space"

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        return replace(super().alloc_data_space(index, nbytes, alignment, scope, type_hint), scope="global")


class IgnoresAlignment(Correct):
    """The alignment asked for is ignored."""

    caught_by = "test_alignment"

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        return super().alloc_data_space(index, nbytes, 1, scope, type_hint)


class AlignsTheFirstScopeAlone(Correct):
    """The host's addresses of one scope are aligned, those of the others lie sixteen bytes aside."""

    caught_by = "test_alignment"

    def host_pointer(self, space: Space) -> int:
        return super().host_pointer(space) + (16 if space.scope == "cached" else 0)


class SharesBytes(Correct):
    """Every second space lies in the first one's memory."""

    caught_by = "test_spaces_are_disjoint"
    previous: LazyBlock | None = None

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        space = super().alloc_data_space(index, nbytes, alignment, scope, type_hint)
        block: LazyBlock = space.handle
        if self.previous is not None and self.previous.data.nbytes == block.data.nbytes:
            block.data, block.address = self.previous.data, self.previous.address
        self.previous = block
        return space


class FreesALiveSpace(Correct):
    """Freeing a space gives the first live one away, too."""

    caught_by = "test_free_leaves_the_others"

    def __init__(self) -> None:
        super().__init__()
        self.live: list[LazyBlock] = []

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        space = super().alloc_data_space(index, nbytes, alignment, scope, type_hint)
        self.live.append(space.handle)
        return space

    def free_data_space(self, space: Space) -> None:
        self.live.remove(space.handle)
        if self.live:
            self.live[0].data[:] = 0
        super().free_data_space(space)


class LeaksFreedBytes(Correct):
    """Freed bytes stay counted as used."""

    caught_by = "test_freed_bytes_can_be_had_again"

    def free_data_space(self, space: Space) -> None:
        super().free_data_space(space)
        space.handle.instance.used_bytes += space.handle.data.nbytes


class PlainMemoryError(Correct):
    """Memory that is not there is a MemoryError of Python's."""

    caught_by = "test_out_of_memory"

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        try:
            return super().alloc_data_space(index, nbytes, alignment, scope, type_hint)
        except OutOfMemoryError as error:
            raise MemoryError(str(error)) from None


class OneThread(Correct):
    """Only the thread that made the device may use it."""

    caught_by = "test_any_thread"

    def __init__(self) -> None:
        super().__init__()
        self.thread = threading.get_ident()

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        if threading.get_ident() != self.thread:
            raise RuntimeError("wrong thread")
        return super().alloc_data_space(index, nbytes, alignment, scope, type_hint)


class _Copies(Correct):
    """Copies go through ``mutate``."""

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        return self.mutate(src, dst, nbytes, stream, keep_alive)

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object) -> Event | None:
        return super().copy_data_from_to(src, dst, nbytes, stream, keep_alive)


class IgnoresOffsets(_Copies):
    """Copies read from the start of the source."""

    caught_by = "test_copy_moves_the_bytes_requested"

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object) -> Event | None:
        return super().mutate(Region(src.space), dst, nbytes, stream, keep_alive)


class CopiesWholeWords(_Copies):
    """Copies leave the bytes out that fill no word."""

    caught_by = "test_there_and_back"

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object) -> Event | None:
        return super().mutate(src, dst, nbytes // 4 * 4, stream, keep_alive)


@dataclass
class _Liar:
    """An event that does not wait, or says too early that it is done."""

    task: Event
    waits: bool

    def query(self) -> bool:
        return self.waits or self.task.query()

    def synchronize(self, timeout: float | None = None) -> bool:
        return self.task.synchronize(timeout) if self.waits else True


class EventsDoNotWait(_Copies):
    """synchronize returns before the copy is done."""

    caught_by = "test_done_when_the_event_says_so"

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object) -> Event | None:
        task = super().mutate(src, dst, nbytes, stream, keep_alive)
        return task and _Liar(task, waits=False)


class EventsSayDoneTooEarly(_Copies):
    """query is True before the copy is done."""

    caught_by = "test_query_is_true_only_when_done"

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object) -> Event | None:
        task = super().mutate(src, dst, nbytes, stream, keep_alive)
        return task and _Liar(task, waits=True)


class NoneForWorkThatIsQueued(_Copies):
    """A copy returns None and happens later."""

    caught_by = "test_a_by_value_source_may_be_overwritten"

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object) -> Event | None:
        super().mutate(src, dst, nbytes, stream, keep_alive)
        return None


class KeepsKeepAlive(_Copies):
    """keep_alive is never let go."""

    caught_by = "test_keep_alive_is_released"

    def __init__(self) -> None:
        super().__init__()
        self.retained: list[object] = []

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object) -> Event | None:
        self.retained.append(keep_alive)
        return super().mutate(src, dst, nbytes, stream, keep_alive)


class NoOrderOnStreamNone(_Copies):
    """Every copy on stream None has a queue of its own."""

    caught_by = "test_one_in_order_queue"

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object) -> Event | None:
        queue = stream or self.create_stream(0)
        return super().mutate(src, dst, nbytes, queue, keep_alive)


class AQueueForEachThread(_Copies):
    """Stream None is another queue in each thread."""

    caught_by = "test_one_queue_for_all_threads"

    def __init__(self) -> None:
        super().__init__()
        self.owned = threading.local()

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object) -> Event | None:
        if stream is None and threading.current_thread() is not threading.main_thread():
            self.owned.stream = stream = self.create_stream(0)
        return super().mutate(src, dst, nbytes, stream, keep_alive)


class AcceptsOverlap(_Copies):
    """Overlapping bytes of one space are copied."""

    caught_by = "test_overlap"

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object) -> Event | None:
        if src.space == dst.space:
            block: LazyBlock = src.space.handle
            data = block.data[src.byte_offset : src.byte_offset + nbytes].copy()
            block.data[dst.byte_offset : dst.byte_offset + nbytes] = data
            return None
        return super().mutate(src, dst, nbytes, stream, keep_alive)


class NoOrderOnStreams(_Copies):
    """Copies on one stream run in any order."""

    caught_by = "test_stream_order"

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object) -> Event | None:
        queue = None if stream is None else self.create_stream(stream.device.index)
        return super().mutate(src, dst, nbytes, queue, keep_alive)


class StreamsOfAnyDevice(_Copies):
    """A stream of another device is taken for stream None."""

    caught_by = "test_a_stream_belongs_to_one_device"

    def mutate(self, src: Region, dst: Region, nbytes: int, stream: Any, keep_alive: object) -> Event | None:
        owned = stream if stream is not None and stream.device.api is self else None
        return super().mutate(src, dst, nbytes, owned, keep_alive)


class StreamsDoNotWait(Correct):
    """sync_stream_from_to does nothing."""

    caught_by = "test_sync_stream_from_to"

    def sync_stream_from_to(self, index: int, source: Stream | None, target: Stream | None) -> None:
        pass


class WaitEventDoesNot(Correct):
    """wait_event does nothing."""

    caught_by = "test_wait_event"

    def wait_event(self, index: int, stream: Stream | None, event: Event) -> None:
        pass


class EventsOfNoStream(Correct):
    """record_event records an event that nothing comes before."""

    caught_by = "test_record_event"

    def record_event(self, index: int, stream: Stream | None) -> Task:
        return super().record_event(index, self.create_stream(index))


class TimeRunsBackwards(Correct):
    """elapsed_ms is negative."""

    caught_by = "test_elapsed_ms"

    def elapsed_ms(self, start: Event, end: Event) -> float | None:
        elapsed = super().elapsed_ms(start, end)
        return elapsed and -elapsed


class PointsToAShadow(Correct):
    """host_pointer gives the address of a copy."""

    caught_by = "test_host_pointer"

    def __init__(self) -> None:
        super().__init__()
        self.shadows: dict[LazyBlock, np.ndarray[Any, Any]] = {}

    def host_pointer(self, space: Space) -> int:
        shadow = self.shadows.setdefault(space.handle, space.handle.data.copy())
        return int(shadow.ctypes.data)


class BarriersDoNotWait(Correct):
    """begin_host_access returns at once."""

    caught_by = "test_begin_host_access_waits"

    def begin_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        region.space.handle.host_accesses += 1


class BarriersDiscard(Correct):
    """end_host_access loses what the host wrote."""

    caught_by = "test_host_view"

    def end_host_access(self, region: Region, nbytes: int, mode: AccessMode) -> None:
        if mode != "r":
            region.space.handle.data[:] = 0
        super().end_host_access(region, nbytes, mode)


class NoBarriers(Correct):
    """Memory that is not coherent, and no barriers."""

    caught_by = "test_incoherent_kind_has_barriers"
    begin_host_access = None  # type: ignore[assignment]
    end_host_access = None  # type: ignore[assignment]

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        return self.changed_kinds(coherent=False)


class NoHostPointer(Correct):
    """A kind with host access, and no host_pointer."""

    caught_by = "test_host_access_has_a_pointer"
    host_pointer = None  # type: ignore[assignment]


class ImportsACopy(Correct):
    """import_memory copies."""

    caught_by = "test_import_memory"

    def import_memory(self, index: int, source: ImportSource, access: AccessMode) -> Space:
        assert isinstance(source, HostPointer)
        space = self.alloc_data_space(index, source.nbytes, 1, "shared", None)
        host = Region(Space(lb.device("cpu"), "global", source.address))
        event = self.copy_data_from_to(host, Region(space), source.nbytes, None, None)
        assert event is not None
        event.synchronize()
        return space

    def release_import(self, space: Space) -> None:
        self.free_data_space(space)


def device_mutants(base: type[Any]) -> list[type[Any]]:
    """Every mutant of the device ``base``, in the order of its file."""
    found: list[type[Any]] = []
    for mutant in base.__subclasses__():
        found += ([mutant] if mutant.caught_by else []) + device_mutants(mutant)
    return found


@dataclass(frozen=True)
class RuntimeMutant:
    """The runtime with ``subject`` broken by ``apply``."""

    subject: str
    caught_by: str
    apply: Callable[[pytest.MonkeyPatch], None]


def _without_copy_false(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    from landbridge.tensor import asarray

    return asarray(obj, dtype=dtype, device=device, copy=copy or None)


def _exporting_a_copy(export: Callable[..., object]) -> Callable[..., object]:
    return lambda self, **request: export(self.to_device("cpu"), **request)


RUNTIME = (
    RuntimeMutant(
        "Conflicts with open views are not looked for.",
        "test_host_views_conflict",
        lambda patch: patch.setattr(Storage, "check_access", lambda *a, **k: None),
    ),
    RuntimeMutant(
        "A Storage is freed without waiting for its queued uses.",
        "test_free_waits_for_the_last_use",
        lambda patch: (
            patch.setattr(default, "preferred_allocator", lambda kind: "naive"),
            patch.setattr(default, "_in_use", {}),
            patch.setattr(naive, "wait_for", lambda uses: None),
        ),
    ),
    RuntimeMutant(
        "Freed storages stay usable.",
        "test_use_after_free",
        lambda patch: patch.setattr(Storage, "_free", lambda self: None),
    ),
    RuntimeMutant(
        "Exports are not counted.",
        "test_free_with_an_export",
        lambda patch: patch.setattr(Storage, "add_export", lambda self, holder: None),
    ),
    RuntimeMutant(
        "to_device always copies.",
        "test_to_the_same_device",
        lambda patch: patch.setattr(Tensor, "to_device", lambda self, device: self.copy()),
    ),
    RuntimeMutant(
        "Copies are not announced to the ledger.",
        "test_no_silent_copy",
        lambda patch: patch.setattr(ledger, "announce", lambda *a, **k: None),
    ),
    RuntimeMutant(
        "asarray(copy=False) copies.",
        "test_asarray_without_a_copy",
        lambda patch: patch.setattr(lb, "asarray", _without_copy_false),
    ),
    RuntimeMutant(
        "Every tensor says that it is host memory.",
        "test_dlpack_device_of_a_tensor",
        lambda patch: patch.setattr(Tensor, "__dlpack_device__", lambda self: (1, 0)),
    ),
    RuntimeMutant(
        "The host's address of hidden memory is made up.",
        "test_hidden_scope",
        lambda patch: patch.setattr("landbridge.tensor.host_view._check_mode", lambda *a: None),
    ),
    RuntimeMutant(
        "Bounds of views are not checked.",
        "test_views_stay_inside",
        lambda patch: patch.setattr("landbridge.tensor.tensor.check_flat", lambda *a: None),
    ),
    RuntimeMutant(
        "A DLPack export for the host is over a copy.",
        "test_coherent_memory_as_host_dlpack",
        lambda patch: patch.setattr(Tensor, "__dlpack__", _exporting_a_copy(Tensor.__dlpack__)),
    ),
)
