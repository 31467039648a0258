"""Pages of code: filled in a file in memory, and mapped for reading and executing alone.

No page is ever writable and executable, and none that was writable becomes executable. Systems may refuse both:
systemd's ``MemoryDenyWriteExecute=``, SELinux without ``execmem``, ``PR_SET_MDWE`` of Linux 6.3. What they allow is a
file that is mapped with ``PROT_EXEC`` from the start, as the loader of shared libraries does it.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import tempfile
from functools import cache
from pathlib import Path

from landbridge.errors import ExecutableError, OutOfMemoryError

_READ_EXECUTE = mmap.PROT_READ | mmap.PROT_EXEC
# Of Linux and on all instruction sets alike; Python names them in later versions or not at all.
_MAP_FIXED, _MFD_NOEXEC_SEAL = 0x10, 0x8
_F_ADD_SEALS, _ALL_SEALS = 1033, 0xF  # no further seals, no shrinking, no growing, no writes
_NO_MEMORY = frozenset({errno.ENOMEM})


class CodePages:
    """``nbytes`` of address space for code, at ``base``; unmapped when dropped.

    Raises OutOfMemoryError where the process may have no more address space.
    """

    def __init__(self, nbytes: int) -> None:
        self.nbytes = max(nbytes, 1)
        try:
            # Holds the addresses, and unmaps them: nothing writes here.
            self._reserved = mmap.mmap(-1, self.nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError as error:
            raise _out_of_memory(self.nbytes, error) from error
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self._reserved))

    def fill(self, content: bytes | bytearray) -> None:
        """Put ``content`` on the pages, which are readable and executable from then on.

        Raises ExecutableError where the system runs no code that is not of a program's own files, and
        OutOfMemoryError where there is no memory for it.
        """
        refused: list[str] = []
        for what, create in (("a memfd", _memfd), ("a file for temporary ones", _temporary_file)):
            try:
                file = create()
                try:
                    self._map(file, content)
                finally:
                    os.close(file)
                return
            except OSError as error:
                if error.errno in _NO_MEMORY:
                    raise _out_of_memory(self.nbytes, error) from error
                refused.append(f"{what}: {error.strerror or error}")
        raise ExecutableError(
            f"the system lets this process map no code for executing ({'; '.join(refused)}); allow memfd_create, or "
            "let TMPDIR name a folder that can be written and is not mounted noexec"
        )

    def _map(self, file: int, content: bytes | bytearray) -> None:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(file, rest) :]
        _seal(file)
        if _libc_mmap()(self.base, self.nbytes, _READ_EXECUTE, mmap.MAP_PRIVATE | _MAP_FIXED, file, 0) != self.base:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def _memfd() -> int:
    """A file in memory that is never run as a program, which a system may insist on (``vm.memfd_noexec``)."""
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        return os.memfd_create("landbridge-code", flags | _MFD_NOEXEC_SEAL)
    except OSError as error:
        if error.errno != errno.EINVAL:  # Linux before 6.3
            raise
    return os.memfd_create("landbridge-code", flags)


def _temporary_file() -> int:
    """A file that has no name, open for this process alone."""
    file, path = tempfile.mkstemp(prefix="landbridge-")
    Path(path).unlink()
    return file


def _seal(file: int) -> None:
    """Let nobody change ``file`` any more, where it is one in memory."""
    try:
        fcntl.fcntl(file, _F_ADD_SEALS, _ALL_SEALS)
    except OSError:
        return  # a file of a folder, which has no name: no other process reaches it


def _out_of_memory(nbytes: int, error: OSError) -> OutOfMemoryError:
    reason = error.strerror or str(error)
    return OutOfMemoryError(
        f"the system gave no memory for {nbytes:,} bytes of code ({reason}); end other programs, or raise the limit "
        "of this one"
    )


@cache
def _libc_mmap() -> ctypes._NamedFuncPointer:
    function = ctypes.CDLL(None, use_errno=True).mmap
    function.restype = ctypes.c_void_p
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    return function
