"""Tests of barriers around the host's access: in both directions, for the requested bytes only."""

from __future__ import annotations

import ctypes
from itertools import pairwise

from landbridge.device.api import Region, Space
from landbridge.device.protocols import AccessMode, HostBarriers
from landbridge.memory_kind import MemoryKind
from landbridge.testing.conformance.base import ConformanceCase, expect, pattern

_LEAST = 4096
_READING: tuple[AccessMode, ...] = ("r", "rw")
#: Modes of an access, and of one that begins while it is open.
_NESTED: tuple[tuple[AccessMode, AccessMode], ...] = (("w", "w"), ("rw", "r"), ("rw", "rw"), ("r", "w"), ("w", "rw"))
_WRITING: tuple[AccessMode, ...] = ("w", "rw")
#: Ranges that are no multiple of anything, first byte and size, and one in another page than the first.
_ODD = ((0, 1), (1, 3), (63, 2), (77, 130), (4095, 2), (5000, 301))


class BarrierCase(ConformanceCase):
    """A test of both sides' accesses to one space."""

    def _step(self, kind: MemoryKind) -> int:
        """Returns the number of bytes that can be flushed separately: whole granules."""
        if kind.coherence_granule > 1 << 20:
            self.skip("flushes whole allocations")
        return max(64, kind.coherence_granule)

    def _size(self, kind: MemoryKind) -> int:
        return max(2 * _LEAST, 8 * self._step(kind))

    def _seen(self, kind: MemoryKind, nbytes: int, seed: int) -> Space:
        """Returns a space that the device filled with a pattern, which the host's caches hold since it was read."""
        space = self.alloc(nbytes, kind.scope)
        self._device_writes(space, nbytes, seed)
        self._look(space, 0, nbytes, "r")
        return space

    def _device_writes(self, space: Space, nbytes: int, seed: int) -> None:
        staged = self.alloc(nbytes)
        self.write(staged, pattern(nbytes, seed))
        self.wait(self.copy(Region(staged), Region(space), nbytes))
        self.free(staged)

    def _device_writes_around(self, space: Space, start: int, nbytes: int, size: int, seed: int) -> None:
        """Writes as ``_device_writes`` does, except for ``nbytes`` bytes from ``start`` on, which the host is using."""
        staged = self.alloc(size)
        self.write(staged, pattern(size, seed))
        for first, last in ((0, start), (start + nbytes, size)):
            self.wait(self.copy(Region(staged, first), Region(space, first), last - first))
        self.free(staged)

    def _device_reads(self, space: Space, nbytes: int) -> bytes:
        staged = self.alloc(nbytes)
        self.wait(self.copy(Region(space), Region(staged), nbytes))
        found = self.read(staged, nbytes)
        self.free(staged)
        return found

    def _look(self, space: Space, start: int, nbytes: int, mode: AccessMode) -> bytes:
        barriers = self.device.capability(HostBarriers)
        if barriers is not None:
            barriers.begin_host_access(Region(space, start), nbytes, mode)
        found = ctypes.string_at(self.host_address(space) + start, nbytes)
        if barriers is not None:
            barriers.end_host_access(Region(space, start), nbytes, mode)
        return found

    def _host_writes(self, space: Space, start: int, content: bytes, mode: AccessMode) -> None:
        barriers = self.device.capability(HostBarriers)
        if barriers is not None:
            barriers.begin_host_access(Region(space, start), len(content), mode)
        ctypes.memmove(self.host_address(space) + start, content, len(content))
        if barriers is not None:
            barriers.end_host_access(Region(space, start), len(content), mode)


class BarrierConformance(BarrierCase):
    """Tests ``begin_host_access`` and ``end_host_access``; a coherent kind may make them no-ops, or lack them."""

    def test_the_host_sees_what_the_device_wrote(self) -> None:
        """begin_host_access: the host sees what the device wrote to these bytes, wherever they lie in the space."""
        for kind in self.host_kinds():
            for mode in _READING:
                for number, (start, nbytes) in enumerate(_ODD):
                    space = self._seen(kind, 2 * _LEAST, number)
                    self._device_writes(space, 2 * _LEAST, number + 50)
                    found = self._look(space, start, nbytes, mode)
                    wanted = pattern(2 * _LEAST, number + 50)[start : start + nbytes]
                    subject = f"after begin_host_access(..., {mode!r}) of {nbytes} bytes at {start} in {kind.scope!r}"
                    expect(found == wanted, f"{subject} the host reads what was there before the device wrote")
                    self.free(space)
            if (large_offset := self.large_offset(kind.scope)) is not None:
                space = self._seen(kind, large_offset + _LEAST, 7)
                self._device_writes(space, large_offset + _LEAST, 8)
                wanted = pattern(large_offset + _LEAST, 8)[large_offset:]
                found = self._look(space, large_offset, _LEAST, "r")
                expect(
                    found == wanted,
                    f"after begin_host_access at {large_offset} in {kind.scope!r} the host reads old bytes",
                )

    def test_the_device_sees_what_the_host_wrote(self) -> None:
        """end_host_access: the device sees what the host wrote to these bytes, wherever they lie in the space."""
        for kind in self.host_kinds():
            step, size = self._step(kind), self._size(kind)
            for mode in _WRITING:
                for start, nbytes in ((0, step), (step, step), (size - step, step), (step, 2 * step)):
                    space = self._seen(kind, size, 3)
                    self._host_writes(space, start, b"\x5a" * nbytes, mode)
                    found = self._device_reads(space, size)
                    subject = f"what the host wrote in mode {mode!r} to {nbytes} bytes at {start} in {kind.scope!r}"
                    expect(found[start : start + nbytes] == b"\x5a" * nbytes, f"the device does not see {subject}")
                    self.free(space)
            if (large_offset := self.large_offset(kind.scope)) is not None:
                large_offset = -(-large_offset // step) * step
                space = self._seen(kind, large_offset + size, 4)
                self._host_writes(space, large_offset, b"\x5a" * step, "w")
                found = self._device_reads(space, large_offset + size)[large_offset : large_offset + step]
                expect(found == b"\x5a" * step, f"the device does not see what the host wrote at {large_offset}")

    def test_rw_keeps_what_the_host_does_not_write(self) -> None:
        """Mode rw brings what the device wrote: bytes of the range that the host leaves alone keep it."""
        for kind in self.host_kinds():
            space = self._seen(kind, _LEAST, 1)
            self._device_writes(space, _LEAST, 2)
            barriers = self.device.capability(HostBarriers)
            if barriers is not None:
                barriers.begin_host_access(Region(space), _LEAST, "rw")
            ctypes.memset(self.host_address(space) + 100, 0x5A, 10)
            if barriers is not None:
                barriers.end_host_access(Region(space), _LEAST, "rw")
            wanted = bytearray(pattern(_LEAST, 2))
            wanted[100:110] = b"\x5a" * 10
            found = self._device_reads(space, _LEAST)
            expect(found == bytes(wanted), f"an access rw of {kind.scope!r} brought old bytes back, or lost its own")

    def test_the_rest_of_a_granule_stays(self) -> None:
        """Mode rw is for part of a granule, too: what the device wrote to the rest of it stays."""
        for kind in self.host_kinds():
            step, size = self._step(kind), self._size(kind)
            for start, nbytes in ((step + 1, 3), (2 * step - 2, 4), (4 * step - 1, 1), (5 * step, step + 7)):
                space = self._seen(kind, size, 1)  # the host's caches hold pattern 1
                self._device_writes(space, size, 2)
                self._host_writes(space, start, b"\x5a" * nbytes, "rw")
                found, wanted = self._device_reads(space, size), bytearray(pattern(size, 2))
                wanted[start : start + nbytes] = b"\x5a" * nbytes
                subject = f"an access rw of {nbytes} bytes at {start} of {kind.scope!r}"
                expect(found[start : start + nbytes] == b"\x5a" * nbytes, f"{subject} lost what the host wrote")
                expect(found == bytes(wanted), f"{subject} lost what the device had written to the rest of a granule")
                self.free(space)

    def test_nested_accesses(self) -> None:
        """Accesses of one space may be open at a time, in any order of their ends: each is of its own bytes."""
        for kind in self.host_kinds():
            barriers = self.ability(HostBarriers)
            step, size = self._step(kind), self._size(kind)
            first, second = 0, 4 * step
            for outer, inner in _NESTED:
                for crossed in (False, True):
                    space = self._seen(kind, size, 1)
                    self._device_writes(space, size, 2)
                    begins = ((first, outer), (second, inner))
                    barriers.begin_host_access(Region(space, first), step, outer)
                    self._host_writes_when(space, first, step, outer)
                    barriers.begin_host_access(Region(space, second), step, inner)
                    for start, mode in begins if crossed else reversed(begins):
                        address = self.host_address(space) + start
                        seen = ctypes.string_at(address, step)
                        wanted = pattern(size, 2)[start : start + step]
                        subject = f"while accesses {outer} and {inner} of {kind.scope!r} are open, the host"
                        expect(mode != "r" or seen == wanted, f"{subject} reads old bytes at {start}")
                        if start == second:
                            self._host_writes_when(space, start, step, mode)
                        barriers.end_host_access(Region(space, start), step, mode)
                    content = bytearray(pattern(size, 2))
                    for start, mode in begins:
                        if mode != "r":
                            content[start : start + step] = b"\x5a" * step
                    found = self._device_reads(space, size)
                    for start, mode in begins:
                        same = found[start : start + step] == content[start : start + step]
                        order = "in the order in which they began" if crossed else "the inner one first"
                        expect(
                            same,
                            f"the device does not see what the host wrote at {start} in mode {mode!r}: accesses "
                            f"{outer} and {inner} of one space of {kind.scope!r} ended {order}",
                        )
                    expect(found == bytes(content), f"nested accesses of {kind.scope!r} changed other bytes")
                    self.free(space)

    def _host_writes_when(self, space: Space, start: int, nbytes: int, mode: str) -> None:
        """Writes where ``mode`` writes, in an access that is open."""
        if mode != "r":
            ctypes.memset(self.host_address(space) + start, 0x5A, nbytes)

    def test_a_flush_leaves_the_neighbours(self) -> None:
        """end_host_access flushes these bytes and no others: what the device wrote beside them stays."""
        for kind in self.host_kinds():
            step, size = self._step(kind), self._size(kind)
            space = self._seen(kind, size, 1)  # the host's caches hold pattern 1
            barriers = self.device.capability(HostBarriers)
            middle = size // 2 // step * step
            if barriers is not None:
                barriers.begin_host_access(Region(space, middle), step, "w")
            self._device_writes_around(space, middle, step, size, 2)
            ctypes.memset(self.host_address(space) + middle, 0x5A, step)
            if barriers is not None:
                barriers.end_host_access(Region(space, middle), step, "w")
            wanted = bytearray(pattern(size, 2))
            wanted[middle : middle + step] = b"\x5a" * step
            found = self._device_reads(space, size)
            expect(found[middle : middle + step] == b"\x5a" * step, "the device does not see what the host wrote")
            expect(
                found == bytes(wanted), f"a flush of {step} bytes at {middle} in {kind.scope!r} changed bytes beside"
            )

    def test_an_invalidation_leaves_the_neighbours(self) -> None:
        """begin_host_access brings these bytes and no others: what the host wrote beside them, unflushed, stays."""
        for kind in self.host_kinds():
            barriers = self.device.capability(HostBarriers)
            step, size = self._step(kind), self._size(kind)
            space = self._seen(kind, size, 1)
            middle = size // 2 // step * step
            if barriers is not None:
                barriers.begin_host_access(Region(space, middle), step, "w")
            ctypes.memset(self.host_address(space) + middle, 0x5A, step)
            for start in (0, middle - step, middle + step):
                self._look(space, start, step, "r")
            if barriers is not None:
                barriers.end_host_access(Region(space, middle), step, "w")
            found = self._device_reads(space, size)[middle : middle + step]
            expect(
                found == b"\x5a" * step, f"a barrier of other bytes of {kind.scope!r} lost what the host had written"
            )

    def test_reading_flushes_nothing(self) -> None:
        """end_host_access of mode r changes nothing that the device sees."""
        for kind in self.host_kinds():
            barriers = self.device.capability(HostBarriers)
            if barriers is None:
                self.skip("has no barriers")
            space = self._seen(kind, _LEAST, 1)
            barriers.begin_host_access(Region(space), _LEAST, "r")
            self._device_writes(space, _LEAST, 2)
            barriers.end_host_access(Region(space), _LEAST, "r")
            found = self._device_reads(space, _LEAST)
            expect(found == pattern(_LEAST, 2), f"the end of a read of {kind.scope!r} undid what the device wrote")

    def test_writing_waits_for_readers(self) -> None:
        """begin_host_access w and rw wait for pending readers: what was queued before reads the old bytes."""
        for kind in self.host_kinds():
            self.ability(HostBarriers)
            for mode in _WRITING:
                space, target = self._seen(kind, _LEAST, 1), self.alloc(_LEAST)
                event = self.copy(Region(space), Region(target), _LEAST)
                self._host_writes(space, 0, b"\x5a" * _LEAST, mode)
                self.wait(event)
                found = self.read(target, _LEAST)
                expect(found == pattern(_LEAST, 1), f"a copy queued before an access {mode!r} read what came after it")

    def test_coherent_means_coherent(self) -> None:
        """coherent: both sides see each other's writes without a barrier."""
        found_one = False
        for kind in self.host_kinds():
            if not kind.coherent:
                continue
            found_one = True
            space = self._seen(kind, _LEAST, 1)
            self._device_writes(space, _LEAST, 2)
            seen = ctypes.string_at(self.host_address(space), _LEAST)
            expect(seen == pattern(_LEAST, 2), f"{kind.scope!r} is said to be coherent; the host reads old bytes")
            ctypes.memset(self.host_address(space) + 99, 0x5A, 1000)
            wanted = bytearray(pattern(_LEAST, 2))
            wanted[99:1099] = b"\x5a" * 1000
            seen = self._device_reads(space, _LEAST)
            expect(seen == bytes(wanted), f"{kind.scope!r} is said to be coherent; the device reads old bytes")
        if not found_one:
            self.skip("has no coherent memory that the host sees")

    def test_host_pointer_stays(self) -> None:
        """host_pointer(space) is the same for as long as the space lives, and no other space's."""
        for kind in self.host_kinds():
            spaces = [self.alloc(_LEAST, kind.scope) for _ in range(3)]
            before = [self.host_address(space) for space in spaces]
            for number, space in enumerate(spaces):
                self._device_writes(space, _LEAST, number)
                self._look(space, 0, _LEAST, "rw")
            self.free(self.alloc(_LEAST, kind.scope))
            again = [self.host_address(space) for space in spaces]
            expect(before == again, f"the addresses of {kind.scope!r} were {before}, and are {again}")
            ends = sorted((address, address + _LEAST) for address in before)
            disjoint = all(first[1] <= second[0] for first, second in pairwise(ends))
            expect(disjoint, f"addresses of two spaces of {kind.scope!r} overlap: {before}")
