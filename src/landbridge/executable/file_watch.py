"""Checks the files that constants are mapped from before a program uses them.

A mapping shows the current content of the file. Where the file was truncated, an access raises SIGBUS, which ends the
process; where it was written to, the constants have changed. Both can be found before a run, never during it.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Thread

import numpy as np

from landbridge.array_type import Array
from landbridge.errors import ExecutableError, OutOfMemoryError
from landbridge.executable.digest import sha256
from landbridge.process.background_threads import start

#: Bytes of a row of words.
_ROW = 4096
#: Bytes that are read sooner than a thread pays: about 2 ms.
_READ_AT_ONCE = 16 << 20


class FileWatch:
    """A file that memory up to byte ``end`` is mapped from; the caller owns ``descriptor``.

    ``checksum``: the correct `quick_checksum` of the ``memory``; without one any write from now on counts as a change.
    ``trusted``: it is compared only when the file was written to from now on.
    """

    def __init__(
        self,
        descriptor: int,
        end: int,
        name: str,
        memory: Array | None = None,
        checksum: str | None = None,
        *,
        trusted: bool = True,
    ) -> None:
        self._file = os.dup(descriptor)
        weakref.finalize(self, os.close, self._file).atexit = False
        self._end, self._name = end, name
        self._memory, self._checksum = memory, checksum
        self._seen = os.fstat(self._file).st_mtime_ns if trusted else None

    def check(self) -> None:
        """Raises ExecutableError where the file is too short now, or its content changed.

        Reads the memory once, and again only when the file was written to.
        """
        self.begin_check()()

    def begin_check(self) -> Callable[[], None]:
        """Starts a ``check``; returns a function that waits for the read to finish, and that raises too.

        A background thread reads a large memory.
        """
        found = os.fstat(self._file)
        size, stamp = found.st_size, found.st_mtime_ns
        if size < self._end:
            raise ExecutableError(
                f"{self._name} was cut to {size} bytes while it is in use, its constants end at {self._end}; "
                "replace files by renaming a new one over them, and load or compile again"
            )
        if stamp == self._seen:
            return lambda: None
        checksum = (lambda: None) if self._memory is None else _begin_checksum(self._memory)

        def finish() -> None:
            if self._memory is None or checksum() != self._checksum:
                raise ExecutableError(
                    f"{self._name} holds other constants than it was made with: it is corrupt, or was written to while "
                    "in use; replace files by renaming a new one over them, and save, load or compile again"
                )
            self._seen = stamp

        return finish


def begin_checks(files: Iterable[FileWatch]) -> Callable[[], None]:
    """Starts ``begin_check`` of all of ``files``; returns a function that waits for all of them."""
    checks = [file.begin_check() for file in files]

    def finish() -> None:
        for check in checks:
            check()

    return finish


def _begin_checksum(memory: Array) -> Callable[[], str]:
    """Starts to take the checksum of ``memory``, of a large one in a thread; returns a function that waits for it."""
    found: list[str] = []
    reader = Thread(target=lambda: found.append(quick_checksum([(0, memory)])), name="checksum", daemon=True)
    if memory.nbytes > _READ_AT_ONCE:
        with suppress(OutOfMemoryError):  # the system starts no more threads
            start(reader)

    def finish() -> str:
        if reader.ident is not None:
            reader.join()
        return found[0] if found else quick_checksum([(0, memory)])

    return finish


def quick_checksum(pieces: Iterable[tuple[int, Array]]) -> str:
    """Returns a checksum of bytes at offsets, multiples of 8, with zeros between them; it detects accidents but not
    forgery.

    As fast as memory is read: 64-bit words are added up in columns, of rows of ``_ROW`` bytes, and the sums digested.
    No word can change unseen, nor two unless they are a multiple of ``_ROW`` apart and make up for each other.
    """
    sums = np.zeros(_ROW // 8, np.uint64)
    for offset, memory in pieces:
        whole = memory.nbytes // 8 * 8
        words = memory[:whole].view("<u8")
        column = offset % _ROW // 8
        head, rows = np.split(words, [-column % sums.size])
        sums[column : column + head.size] += head
        rows, rest = np.split(rows, [rows.size // sums.size * sums.size])
        sums += np.add.reduce(rows.reshape(-1, sums.size), axis=0, dtype=np.uint64)
        sums[: rest.size] += rest
        sums[(offset + whole) % _ROW // 8] += np.uint64(int.from_bytes(memory[whole:].tobytes(), "little"))
    return sha256([sums.astype("<u8").tobytes()]).hex()
