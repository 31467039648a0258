"""Parts that all tests share: the device, spaces that are freed at the end, and functions to write and read bytes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, NoReturn, TypeVar
from unittest import SkipTest

from landbridge.device.api import Device, DeviceAPI, Event, Region, Space, Stream
from landbridge.device.attr import DeviceAttr
from landbridge.device.protocols import AcquiredScopes, HostBarriers, HostMemory, PeerCopy, Streams
from landbridge.device.registry import device as find_device
from landbridge.errors import OutOfMemoryError, ScopeBusyError
from landbridge.identity_map import IdentityMap
from landbridge.memory.borrowed import host_device
from landbridge.memory_kind import MemoryKind

_Ability = TypeVar("_Ability")
_LARGE_OFFSET = 3 << 16  # bytes
_COPIES = 12
#: Bytes of a copy that takes its time; the next where a device may be done before the host's call is.
LONGER = (1 << 22, 1 << 25, 1 << 28)
_ROUNDS = 4


def expect(condition: bool, otherwise: str) -> None:
    """Fails the test with ``otherwise`` unless ``condition``."""
    if not condition:
        raise AssertionError(otherwise)


def expect_raises(wanted: type[BaseException], call: Callable[[], object], subject: str) -> BaseException:
    """Calls ``call`` and returns the exception; fails the test unless it is a ``wanted``."""
    try:
        call()
    except wanted as error:
        return error
    except Exception as error:
        raise AssertionError(f"{subject} raised {type(error).__name__} ({error}), not {wanted.__name__}") from error
    raise AssertionError(f"{subject} raised nothing; {wanted.__name__} is wanted")


def pattern(nbytes: int, seed: int) -> bytes:
    """Returns bytes that differ between neighbours and between seeds."""
    return bytes((seed * 37 + i * 7 + i // 251) % 256 for i in range(nbytes))


class ConformanceCase:
    """Runs one test on ``device_name``: spaces taken with ``alloc`` are freed at its end.

    Scopes that have to be acquired are acquired for the test, as for a run.
    """

    device_name: ClassVar[str]
    #: Seconds within which short work is done; a wait of milliseconds that takes half of them ignores its timeout. Only
    #: a machine that stands still needs so many.
    patience: ClassVar[float] = 10.0

    #: Whether no other work of the process uses the device: it may be closed then.
    separate_process: ClassVar[bool] = False

    def setup_method(self, method: object = None) -> None:
        """Opens the device; every test begins without a space."""
        self.device: Device = find_device(self.device_name)
        self.api: DeviceAPI = self.device.api
        # Spaces of the device with their sizes: by identity, as a device may return equal ones, and threads allocate
        # and free at once. Those of the host are freed last.
        self._taken: IdentityMap[Space, int] = IdentityMap()
        self._of_host: list[Space] = []
        self._streams: list[Stream] = []
        self.fills_memory = False
        self._acquired: list[str] = []
        self.acquire_scopes()

    def teardown_method(self, method: object = None) -> None:
        """Frees the streams and spaces that the test did not free, and releases the scopes."""
        while self._streams:
            self.ability(Streams).free_stream(self._streams.pop())
        while self._taken:
            space, _ = self._taken.popitem()
            space.device.api.free_data_space(space)
        while self._of_host:
            space = self._of_host.pop()
            space.device.api.free_data_space(space)
        self.release_scopes()

    def on_demand(self) -> AcquiredScopes:
        """Returns the API of scopes that have to be acquired; skips the test where there are none."""
        return self.ability(AcquiredScopes)

    def acquire_scopes(self) -> None:
        """Acquires the scopes that have to be acquired; skips the test where another program holds one."""
        api, index = self.device.capability(AcquiredScopes), self.device.index
        for scope in api.acquired_scopes(index) if api is not None else ():
            try:
                self.on_demand().acquire_scope(index, scope)
            except ScopeBusyError as error:
                self.release_scopes()
                self.skip(f"has a scope that is taken: {error}")
            self._acquired.append(scope)

    def release_scopes(self) -> None:
        """Releases what ``acquire_scopes`` acquired."""
        while self._acquired:
            self.on_demand().release_scope(self.device.index, self._acquired.pop())

    def ability(self, protocol: Callable[..., _Ability]) -> _Ability:
        """Returns the API as ``protocol``; skips the test where the device does not have it."""
        found = self.device.capability(protocol)
        if found is None:
            self.skip(f"has no {getattr(protocol, '__name__', protocol)}")
        return found

    def skip(self, why: str) -> NoReturn:
        """Ends the test as not applicable: ``why`` says why the device need not pass it."""
        raise SkipTest(f"{self.device} {why}")

    def is_host(self) -> bool:
        """Returns whether the device is the host itself, with a sanitizer around it or not."""
        return self.device.name == host_device().name

    @contextmanager
    def streams(self, count: int) -> Iterator[Sequence[Stream | None]]:
        """Makes so many streams for the block, and frees them at its end; all are None where the device has one queue.

        Tests have no more than four at a time, as devices may have few.
        """
        api = self.device.capability(Streams)
        if api is None:
            yield [None] * count
            return
        created: list[Stream] = []
        try:
            for _ in range(count):
                created.append(api.create_stream(self.device.index))
            yield created
        finally:
            for stream in created:
                api.free_stream(stream)

    def new_stream(self) -> Stream:
        """Returns a stream, which is freed at the end of the test; skips the test where the device makes none."""
        stream = self.ability(Streams).create_stream(self.device.index)
        self._streams.append(stream)
        return stream

    def flat_scopes(self) -> list[str]:
        """Returns the scopes of one dimension."""
        return [scope for scope, kind in self.device.memory_kinds.items() if kind.ndim == 1]

    @property
    def granule(self) -> int:
        """Returns the bytes that copies of scope global are multiples of."""
        return self.device.memory_kind().copy_granule

    def whole_granules(self, nbytes: int) -> int:
        """Returns ``nbytes``, rounded up to what the device copies."""
        return -(-nbytes // self.granule) * self.granule

    def host_kinds(self) -> list[MemoryKind]:
        """Returns the flat kinds the host reads and writes; skips the test where there is none."""
        self.host_kind()
        kinds = self.device.memory_kinds.values()
        return [kind for kind in kinds if kind.host_access == "read_write" and kind.ndim == 1]

    def capacity(self, scope: str = "global") -> int:
        """Returns the free bytes of ``scope`` as the device reports them, at most 1 GiB."""
        kind = self.device.memory_kind(scope)
        declared = [kind.capacity, self.device.attr(DeviceAttr.AVAILABLE_MEMORY) if scope == "global" else None]
        return min(1 << 30, *(value for value in declared if isinstance(value, int)), 1 << 30)

    def large_offset(self, scope: str = "global") -> int | None:
        """Returns an offset that exceeds 16 bits, where the capacity of ``scope`` allows it; else None."""
        large_offset = -(-_LARGE_OFFSET // (unit := self.device.memory_kind(scope).offset_alignment)) * unit
        return large_offset if self.capacity(scope) > 16 * large_offset else None

    def available(self) -> int | None:
        """Returns the free bytes of scope global, where the device reports them."""
        found = self.device.attr(DeviceAttr.AVAILABLE_MEMORY)
        return found if isinstance(found, int) else None

    def expect_part(self, found: bytes, seed: int, start: int, part: bytes) -> None:
        """Fails unless ``found`` is pattern ``seed`` with ``part`` at ``start``; says what is wrong."""
        stop = start + len(part)
        expect(found[start:stop] == part, f"the {len(part)} bytes at {start} are not those that were copied")
        wanted = pattern(len(found), seed)
        unchanged = found[:start] == wanted[:start] and found[stop:] == wanted[stop:]
        expect(unchanged, f"bytes beside the {len(part)} at {start} changed")

    def host_kind(self) -> MemoryKind:
        """Returns a kind the host reads and writes; skips the test where there is none."""
        self.ability(HostMemory)
        kinds = self.device.memory_kinds.values()
        found = next((kind for kind in kinds if kind.host_access == "read_write" and kind.ndim == 1), None)
        if found is None:
            self.skip("has no scope that the host reads and writes")
        return found

    def alloc(self, nbytes: int, scope: str = "global", alignment: int = 1) -> Space:
        """Returns a space of the device."""
        kind = self.device.memory_kind(scope)
        size = -(-nbytes // kind.size_multiple) * kind.size_multiple
        held = sum(taken for other, taken in self._taken.items() if other.scope == kind.scope)
        try:
            space = self.api.alloc_data_space(self.device.index, size, alignment, scope, None)
        except OutOfMemoryError:
            # Small memories may be full legally; a test that fills them handles the error itself.
            if kind.capacity is not None and held + size > kind.capacity and not self.fills_memory:
                self.skip(f"has {kind.capacity} bytes of {kind.scope!r}, too few for this test")
            raise
        self._taken[space] = size
        return space

    def keep(self, space: Space) -> None:
        """Frees ``space`` at the end of the test."""
        self._taken[space] = 0

    def free(self, space: Space) -> None:
        """Frees ``space`` before the end of the test."""
        del self._taken[space]
        self.api.free_data_space(space)

    @contextmanager
    def freed_after(self) -> Iterator[None]:
        """Frees, at the end of the block, the spaces that the block allocates."""
        before = len(self._taken)
        yield
        while len(self._taken) > before:
            space, _ = self._taken.popitem()
            self.api.free_data_space(space)

    def host(self, content: bytes) -> Space:
        """Returns a space of host memory that holds ``content``."""
        cpu = host_device()
        space = cpu.api.alloc_data_space(cpu.index, max(1, len(content)), 1, "global", None)
        self._of_host.append(space)
        ctypes.memmove(self.host_address(space), content, len(content))
        return space

    def host_address(self, space: Space) -> int:
        """Returns the address of a space of host memory."""
        api = space.device.capability(HostMemory)
        if api is None:
            self.skip("has no host_pointer")
        return api.host_pointer(space)

    def host_bytes(self, space: Space, nbytes: int) -> bytes:
        """Returns what a space of host memory holds."""
        return ctypes.string_at(self.host_address(space), nbytes)

    @contextmanager
    def owner_writes(self, space: Space, nbytes: int) -> Iterator[None]:
        """Calls the device's barriers around the block, where it needs them for writes of others to imported memory."""
        barriers = self.device.capability(HostBarriers)
        if barriers is None or self.device.memory_kind(space.scope).coherent:
            yield
            return
        barriers.begin_host_access(Region(space), nbytes, "w")
        yield
        barriers.end_host_access(Region(space), nbytes, "w")

    def can_copy_host(self, space: Space) -> bool:
        """Returns whether the device copies between ``space`` and host memory."""
        if self.device == host_device():
            return True
        peer = self.device.capability(PeerCopy)
        probe = Space(host_device(), "global", 0)
        return peer is not None and peer.can_copy(probe, space) and peer.can_copy(space, probe)

    def copy(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None = None, keep_alive: object = None
    ) -> Event | None:
        """Queues a copy and returns its event."""
        return self.api.copy_data_from_to(src, dst, nbytes, stream, keep_alive)

    def pending(self, nbytes: int) -> Event | None:
        """Queues as ``busy`` does; returns None where the device is done by now. Skips the test where it always is."""
        event = self.busy(nbytes=nbytes)
        if event is None:
            self.skip("does what it is given before it returns")
        return None if event.query() else event

    def busy(self, stream: Stream | None = None, nbytes: int = LONGER[0]) -> Event | None:
        """Queues copies of ``nbytes`` that take a while; returns the event of the last."""
        nbytes = min(nbytes, self.capacity() // 8)
        return self.busy_on(nbytes, (self.alloc(nbytes), self.alloc(nbytes)), stream)

    def busy_on(self, nbytes: int, pair: tuple[Space, Space], stream: Stream | None = None) -> Event | None:
        """Queues as ``busy`` does copies between the two spaces of ``pair``."""
        event = None
        for number in range(_COPIES):
            event = self.copy(Region(pair[number % 2]), Region(pair[1 - number % 2]), nbytes, stream)
        return event

    def expect_at_once(self, share: Callable[[int], float | None], subject: str) -> None:
        """Fails the test unless a call takes less than half of the time that queued copies take.

        ``share`` makes the call while copies of so many bytes are queued, and returns its seconds over all; None where
        the copies were done before. A busy host may stop between any two lines: the call has several tries, and then
        longer copies. Skips the test where the device is always done before.
        """
        found: list[float] = []
        for nbytes in LONGER:
            for _ in range(_ROUNDS):
                with self.freed_after():
                    measured = share(min(nbytes, self.capacity() // 8))
                if measured is None:
                    break
                if measured < 0.5:
                    return
                found.append(measured)
        if not found:
            self.skip("does what it is given before it returns")
        expect(False, f"{subject} took {min(found):.0%} of the time that queued work took")

    def wait(self, event: Event | None) -> None:
        """Waits for ``event``; None is complete."""
        if event is not None:
            expect(event.synchronize() is True, "synchronize() without a timeout returned something else than True")
            expect(event.query() is True, "query() is not True after synchronize()")

    def write(self, space: Space, content: bytes, offset: int = 0) -> None:
        """Writes ``content`` into ``space``: by a copy of the device, else through the host's view of that scope or of
        another one that the device copies from.
        """
        if self.can_copy_host(space):
            source = self.host(content)
            self.wait(self.copy(Region(source), Region(space, offset), len(content)))
            return
        if self.device.memory_kind(space.scope).host_access == "none":
            seen = self.alloc(len(content), self.host_kind().scope)
            self.write(seen, content)
            self.wait(self.copy(Region(seen), Region(space, offset), len(content)))
            return
        with_barriers = self.device.capability(HostBarriers)
        region = Region(space, offset)
        if with_barriers is not None:
            with_barriers.begin_host_access(region, len(content), "w")
        ctypes.memmove(self.host_address(space) + offset, content, len(content))
        if with_barriers is not None:
            with_barriers.end_host_access(region, len(content), "w")

    def read(self, space: Space, nbytes: int, offset: int = 0) -> bytes:
        """Returns the bytes of ``space``, after all that was queued on stream None."""
        if self.can_copy_host(space):
            target = self.host(b"\xee" * nbytes)
            self.wait(self.copy(Region(space, offset), Region(target), nbytes))
            return ctypes.string_at(self.host_address(target), nbytes)
        if self.device.memory_kind(space.scope).host_access == "none":
            seen = self.alloc(nbytes, self.host_kind().scope)
            self.wait(self.copy(Region(space, offset), Region(seen), nbytes))
            return self.read(seen, nbytes)
        with_barriers = self.device.capability(HostBarriers)
        region = Region(space, offset)
        if with_barriers is not None:
            with_barriers.begin_host_access(region, nbytes, "r")
        content = ctypes.string_at(self.host_address(space) + offset, nbytes)
        if with_barriers is not None:
            with_barriers.end_host_access(region, nbytes, "r")
        return content
