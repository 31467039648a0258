"""Tests of raw copies at awkward sizes: odd, zero, larger than one transfer of an engine, and between scopes."""

from __future__ import annotations

from itertools import product

from landbridge.device.api import Region, Space, Stream
from landbridge.testing.conformance.base import ConformanceCase, expect, pattern

_BYTES = 512
#: (source offset, target offset, bytes): what is not a multiple of a word, of a cache line, or of either's neighbour.
_ODD = (
    *((0, 0, nbytes) for nbytes in (1, 2, 3, 5, 7, 9, 63, 65, 127)),
    *((source, target, 13) for source, target in ((1, 0), (0, 1), (3, 2), (5, 127), (127, 5), (64, 63))),
)
#: Past the largest length that registers of 16, 20 and 22 bits hold.
_LARGE = (1 << 16, (1 << 16) + 1, (1 << 20) + 3, (1 << 22) + 5)


class TransferConformance(ConformanceCase):
    """Tests ``copy_data_from_to`` with any byte count and any offset."""

    def test_odd_copies_within_the_device(self) -> None:
        """nbytes and byte_offset count single bytes, or granules where the kind has a copy_granule, in copies within
        the device."""
        for number, (start, stop, nbytes) in enumerate(self._odd()):
            source, target = self._filled(number), self._filled(number + 100)
            self.wait(self.copy(Region(source, start), Region(target, stop), nbytes))
            found = self.read(target, self._nbytes)
            self.expect_part(found, number + 100, stop, pattern(self._nbytes, number)[start : start + nbytes])

    def test_odd_copies_to_the_device(self) -> None:
        """nbytes and byte_offset count single bytes, or granules where the kind has a copy_granule, in copies of host
        memory to the device."""
        for number, (start, stop, nbytes) in enumerate(self._odd()):
            source, target = self.host(pattern(self._nbytes, number)), self._filled(number + 100)
            self._need_host_copies(target)
            self.wait(self.copy(Region(source, start), Region(target, stop), nbytes))
            found = self.read(target, self._nbytes)
            self.expect_part(found, number + 100, stop, pattern(self._nbytes, number)[start : start + nbytes])

    def test_odd_copies_from_the_device(self) -> None:
        """nbytes and byte_offset count single bytes, or granules where the kind has a copy_granule, in copies of the
        device to host memory."""
        for number, (start, stop, nbytes) in enumerate(self._odd()):
            source, target = self._filled(number), self.host(pattern(self._nbytes, number + 100))
            self._need_host_copies(source)
            self.wait(self.copy(Region(source, start), Region(target, stop), nbytes))
            found = self.host_bytes(target, self._nbytes)
            self.expect_part(found, number + 100, stop, pattern(self._nbytes, number)[start : start + nbytes])

    def test_large_copies(self) -> None:
        """A copy is of all its bytes, however many."""
        for number, nbytes in enumerate(map(self.whole_granules, _LARGE)):
            if nbytes > self.capacity() // 4:
                break
            first, second = self.alloc(nbytes), self.alloc(nbytes)
            content = long_pattern(nbytes, number + 1)
            self.write(first, content)
            self.wait(self.copy(Region(first), Region(second), nbytes))
            found = self.read(second, nbytes)
            wrong = next((i for i in range(nbytes) if found[i] != content[i]), None) if found != content else None
            expect(wrong is None, f"of a copy of {nbytes} bytes the one at {wrong} is wrong")
            self.free(first)
            self.free(second)

    def test_copies_of_any_size_are_in_order(self) -> None:
        """Copies on one stream keep their order whatever their sizes: small ones with large ones, which an engine of
        their own may move."""
        for nbytes in map(self.whole_granules, (1 << 14, *_LARGE)):
            if nbytes > self.capacity() // 8:
                break
            with self.streams(1) as (stream,):
                for number, queue in enumerate((None, stream)):
                    self._expect_order_of_sizes(nbytes, number, queue)

    def _expect_order_of_sizes(self, nbytes: int, number: int, stream: Stream | None) -> None:
        """Queues small, large, small copies of the last bytes, and one that overwrites the source of the large one."""
        large, moved, last = self.alloc(nbytes), self.alloc(nbytes), self._filled(number)
        before, after, end = self._filled(number + 40), self._filled(number + 80), nbytes - _BYTES
        self.write(large, long_pattern(nbytes, number + 1))
        self.write(moved, long_pattern(nbytes, number + 2))
        queued = [
            self.copy(Region(before), Region(large, end), _BYTES, stream),
            self.copy(Region(large), Region(moved), nbytes, stream),
            self.copy(Region(moved, end), Region(last), _BYTES, stream),
            self.copy(Region(after), Region(large, end), _BYTES, stream),
        ]
        for event in queued:
            self.wait(event)
        wanted = pattern(_BYTES, number + 40)
        subject = f"of {_BYTES} bytes was not in order with one of {nbytes} bytes"
        expect(self.read(moved, _BYTES, end) == wanted, f"a copy {subject} that reads what it writes")
        expect(self.read(last, _BYTES) == wanted, f"a copy {subject} that writes what it reads")
        expect(self.read(large, _BYTES, end) == pattern(_BYTES, number + 80), f"a copy {subject}, its source")
        for space in (large, moved):
            self.free(space)

    def test_copies_of_no_bytes(self) -> None:
        """A copy of 0 bytes moves none, and is done like any other."""
        source, target = self._filled(1), self._filled(2)
        self.wait(self.copy(Region(source), Region(target), 0))
        self.wait(self.copy(Region(source, 64), Region(target, 128), 0))
        expect(self.read(target, _BYTES) == pattern(_BYTES, 2), "a copy of 0 bytes changed its target")
        self.wait(self.copy(Region(source), Region(target), 8))
        expect(self.read(target, 8) == pattern(_BYTES, 1)[:8], "the copy after one of 0 bytes did not happen")

    def test_copies_between_scopes(self) -> None:
        """A device copies between any two of its flat scopes."""
        scopes = self.flat_scopes()
        for number, (first, second) in enumerate(product(scopes, scopes)):
            source, target = self.alloc(_BYTES, first), self.alloc(_BYTES, second)
            self.write(source, pattern(_BYTES, number))
            self.write(target, pattern(_BYTES, number + 100))
            self.wait(self.copy(Region(source, 32), Region(target, 64), 128))
            found = self.read(target, _BYTES)
            self.expect_part(found, number + 100, 64, pattern(_BYTES, number)[32:160])

    def test_copies_of_others_are_refused(self) -> None:
        """A copy with neither end on the device, raises or happens; it is not left out."""
        if self.is_host():
            self.skip("is the host: memory of the host is its own")
        first, second = self.host(pattern(_BYTES, 1)), self.host(pattern(_BYTES, 2))
        try:
            self.wait(self.copy(Region(first), Region(second), _BYTES))
        except Exception:
            return
        expect(self.host_bytes(second, _BYTES) == pattern(_BYTES, 1), "a copy raised nothing, and did not happen")

    def _odd(self) -> list[tuple[int, int, int]]:
        """Returns ``_ODD`` in granules of the kind."""
        granule = self.granule
        return [(start * granule, stop * granule, nbytes * granule) for start, stop, nbytes in _ODD]

    @property
    def _nbytes(self) -> int:
        return _BYTES * self.granule

    def _filled(self, seed: int) -> Space:
        space = self.alloc(self._nbytes)
        self.write(space, pattern(self._nbytes, seed))
        return space

    def _need_host_copies(self, space: Space) -> None:
        if not self.can_copy_host(space):
            self.skip("copies neither from nor to host memory")


def long_pattern(nbytes: int, seed: int) -> bytes:
    """Returns bytes as ``pattern`` does, but quickly; no two KiB of them are equal."""
    blocks = (nbytes >> 10) + 1
    inside = bytes((seed * 37 + i * 11) % 256 for i in range(1016))
    return b"".join(inside + (i * 2654435761 + seed).to_bytes(8, "little") for i in range(blocks))[:nbytes]
