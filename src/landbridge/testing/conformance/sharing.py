"""Tests of memory that is passed to another process by its file descriptor."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from types import TracebackType
from typing import TYPE_CHECKING

from landbridge.device.api import Space
from landbridge.device.protocols import ImportSources, MemoryExport, SharedMemory
from landbridge.testing.conformance.base import ConformanceCase, expect, pattern

if TYPE_CHECKING:
    from typing import Self

_BYTES = 4096
#: Maps descriptor 1 of its arguments; then ``r`` prints all bytes, and ``w HEX`` writes some from the start.
_OTHER = """
import mmap, sys
memory = mmap.mmap(int(sys.argv[1]), int(sys.argv[2]))
for line in sys.stdin:
    if line.startswith("w"):
        part = bytes.fromhex(line[1:])
        memory[:len(part)] = part
    print(memory[:].hex(), flush=True)
"""


class _OtherProcess:
    """A process that maps ``nbytes`` bytes of ``file``."""

    def __init__(self, file: int, nbytes: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _OTHER, str(file), str(nbytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(file,),
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def sees(self, writes: bytes = b"") -> bytes:
        """Returns the bytes that it sees, after it has written ``writes`` at the start."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(f"{'w' if writes else 'r'}{writes.hex()}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self._process.stdout.readline()
        if not line:
            _, output = self._process.communicate()
            raise AssertionError(f"another process cannot use the exported memory: {output.strip()[-200:]}")
        return bytes.fromhex(line)


class SharingConformance(ConformanceCase):
    """Tests ``alloc_shared_space`` and ``export_fd``."""

    def test_export_fd(self) -> None:
        """export_fd(space): a file descriptor whose first byte is that of the space; others map it, and see its
        bytes."""
        space = self._shared(_BYTES)
        self.write(space, pattern(_BYTES, 1))
        file = self.ability(MemoryExport).export_fd(space)
        with _OtherProcess(file, _BYTES) as other:
            os.close(file)
            expect(other.sees() == pattern(_BYTES, 1), "another process does not see what the space holds")
            self.write(space, pattern(_BYTES, 2))
            expect(other.sees() == pattern(_BYTES, 2), "another process sees what the space held when it was exported")
            other.sees(writes=b"\x5a" * 100)
            wanted = b"\x5a" * 100 + pattern(_BYTES, 2)[100:]
            expect(self.read(space, _BYTES) == wanted, "the device does not see what another process wrote")

    def test_descriptors_are_the_callers(self) -> None:
        """export_fd: a new file descriptor each time, which the caller closes."""
        export, space = self.ability(MemoryExport), self._shared(_BYTES)
        self.write(space, pattern(_BYTES, 3))
        first, second = export.export_fd(space), export.export_fd(space)
        expect(first != second, f"export_fd gave descriptor {first} twice")
        os.close(first)
        with _OtherProcess(second, _BYTES) as other:
            expect(other.sees() == pattern(_BYTES, 3), "closing one descriptor took the other's memory")
        os.close(second)
        third = export.export_fd(space)
        os.close(third)
        expect(self.read(space, _BYTES) == pattern(_BYTES, 3), "closing descriptors changed the space")

    def test_exported_memory_outlives_its_space(self) -> None:
        """export_fd: the memory lives until space and descriptor are both given back."""
        export, space = self.ability(MemoryExport), self._shared(_BYTES)
        self.write(space, pattern(_BYTES, 4))
        file = export.export_fd(space)
        with _OtherProcess(file, _BYTES) as other:
            os.close(file)
            expect(other.sees() == pattern(_BYTES, 4), "another process does not see what the space holds")
            self.free(space)
            after = self._shared(_BYTES)
            self.write(after, pattern(_BYTES, 5))
            expect(other.sees() == pattern(_BYTES, 4), "memory that another process maps was given to somebody else")

    def test_import_source(self) -> None:
        """import_source(space): where the space lies in a file, for as long as it lives; each space elsewhere."""
        first, second = self._shared(_BYTES), self._shared(_BYTES)
        sources = [self.ability(ImportSources).import_source(space) for space in (first, second)]
        for seed, (space, source) in enumerate(zip((first, second), sources, strict=True)):
            if source is None:
                self.skip("what it exports lies in no file")
            self.write(space, pattern(_BYTES, seed))
        for seed, source in enumerate(sources):
            if source is not None:
                expect(source.nbytes >= _BYTES, f"{source} has not the {_BYTES} bytes of the space")
                with mmap.mmap(source.fd, source.offset + _BYTES) as mapped:
                    seen = mapped[source.offset :]
                expect(seen == pattern(_BYTES, seed), f"{source} has not the bytes of its space")

    def test_shared_spaces_are_spaces(self) -> None:
        """alloc_shared_space: as alloc_data_space, apart from all other memory."""
        first, second, plain = self._shared(_BYTES), self._shared(_BYTES), self.alloc(_BYTES)
        for seed, space in enumerate((first, second, plain)):
            self.write(space, pattern(_BYTES, seed))
        for seed, space in enumerate((first, second, plain)):
            expect(self.read(space, _BYTES) == pattern(_BYTES, seed), "a shared space has bytes of another")
        expect(first.device == self.device, f"a shared space says that it is of {first.device}")

    def _shared(self, nbytes: int) -> Space:
        """Returns a space that can be exported, of coherent memory; skips the test where there is none."""
        self.ability(MemoryExport)
        kinds = self.device.memory_kinds.values()
        kind = next((k for k in kinds if k.exportable and k.coherent and k.ndim == 1), None)
        if kind is None:
            self.skip("exports no coherent memory")
        shared = self.device.capability(SharedMemory)
        if shared is None:
            return self.alloc(nbytes, kind.scope)
        space = shared.alloc_shared_space(self.device.index, nbytes, 1, kind.scope)
        self.keep(space)
        return space
