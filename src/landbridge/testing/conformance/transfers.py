"""Tests of raw copies at awkward sizes: odd, zero, larger than one transfer of an engine, and between scopes."""

from __future__ import annotations

from itertools import product

from landbridge.device.api import Region, Space
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
        """nbytes and byte_offset count single bytes, in copies within the device."""
        for number, (start, stop, nbytes) in enumerate(_ODD):
            source, target = self._filled(number), self._filled(number + 100)
            self.wait(self.copy(Region(source, start), Region(target, stop), nbytes))
            found = self.read(target, _BYTES)
            self.expect_part(found, number + 100, stop, pattern(_BYTES, number)[start : start + nbytes])

    def test_odd_copies_to_the_device(self) -> None:
        """nbytes and byte_offset count single bytes, in copies of host memory to the device."""
        for number, (start, stop, nbytes) in enumerate(_ODD):
            source, target = self.host(pattern(_BYTES, number)), self._filled(number + 100)
            self._need_host_copies(target)
            self.wait(self.copy(Region(source, start), Region(target, stop), nbytes))
            found = self.read(target, _BYTES)
            self.expect_part(found, number + 100, stop, pattern(_BYTES, number)[start : start + nbytes])

    def test_odd_copies_from_the_device(self) -> None:
        """nbytes and byte_offset count single bytes, in copies of the device to host memory."""
        for number, (start, stop, nbytes) in enumerate(_ODD):
            source, target = self._filled(number), self.host(pattern(_BYTES, number + 100))
            self._need_host_copies(source)
            self.wait(self.copy(Region(source, start), Region(target, stop), nbytes))
            found = self.host_bytes(target, _BYTES)
            self.expect_part(found, number + 100, stop, pattern(_BYTES, number)[start : start + nbytes])

    def test_large_copies(self) -> None:
        """A copy is of all its bytes, however many."""
        for number, nbytes in enumerate(_LARGE):
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

    def _filled(self, seed: int) -> Space:
        space = self.alloc(_BYTES)
        self.write(space, pattern(_BYTES, seed))
        return space

    def _need_host_copies(self, space: Space) -> None:
        if not self.can_copy_host(space):
            self.skip("copies neither from nor to host memory")


def long_pattern(nbytes: int, seed: int) -> bytes:
    """Returns bytes as ``pattern`` does, but quickly; no two KiB of them are equal."""
    blocks = (nbytes >> 10) + 1
    inside = bytes((seed * 37 + i * 11) % 256 for i in range(1016))
    return b"".join(inside + (i * 2654435761 + seed).to_bytes(8, "little") for i in range(blocks))[:nbytes]
