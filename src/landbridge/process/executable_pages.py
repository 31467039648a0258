"""Pages of code: filled as a file in memory, and mapped for reading and executing alone.

Systems may refuse pages that are writable and executable, and pages that were writable before: systemd's
``MemoryDenyWriteExecute=``, SELinux without ``execmem``, ``PR_SET_MDWE`` of Linux 6.3. They allow a file that is mapped
with ``PROT_EXEC`` from the start, as the loader of shared libraries does. Only where a process can have no file at all
(``ulimit -f``, ``ulimit -n``) does memory become executable, once it is no longer writable.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
from pathlib import Path

from landbridge.errors import ExecutableError, OutOfMemoryError
from landbridge.process.fixed_pages import map_file, protect, reserve

_READ_EXECUTE = mmap.PROT_READ | mmap.PROT_EXEC
# The same on Linux on all instruction sets; Python names them in later versions or not at all.
_MFD_NOEXEC_SEAL = 0x8
_F_ADD_SEALS, _ALL_SEALS = 1033, 0xF  # no further seals, no shrinking, no growing, no writes
_NO_MEMORY = frozenset({errno.ENOMEM})


class CodePages:
    """``nbytes`` of address space for code, at ``base``; unmapped when collected.

    Raises OutOfMemoryError where the process may have no more address space.
    """

    def __init__(self, nbytes: int) -> None:
        self.nbytes = max(nbytes, 1)
        try:
            # It holds the address range, and unmaps it.
            self._reserved, self.base = reserve(self.nbytes)
        except OSError as error:
            raise _out_of_memory(self.nbytes, error) from error

    def fill(self, content: bytes | bytearray) -> None:
        """Put ``content`` on the pages, which are readable and executable from then on; called once.

        Raises ExecutableError where the system only runs code of a program's own files, and OutOfMemoryError where
        there is no memory for it.
        """
        refused: list[str] = []
        for subject, create in (("a memfd", _memfd), ("a file for temporary ones", _temporary_file)):
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
                refused.append(f"{subject}: {error.strerror or error}")
        try:
            self._reserved[: len(content)] = content
            protect(self.base, self.nbytes, _READ_EXECUTE)
            return
        except OSError as error:
            refused.append(f"memory that was writable: {error.strerror}")
        raise ExecutableError(
            f"the system lets this process map no code for executing ({'; '.join(refused)}); allow memfd_create, or "
            "let TMPDIR name a folder that can be written and is not mounted noexec"
        )

    def _map(self, file: int, content: bytes | bytearray) -> None:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(file, rest) :]
        _seal(file)
        map_file(self.base, self.nbytes, _READ_EXECUTE, mmap.MAP_PRIVATE, file)


def _memfd() -> int:
    """Returns a descriptor of a file in memory that cannot be run as a program, which a system may require."""
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        return os.memfd_create("landbridge-code", flags | _MFD_NOEXEC_SEAL)
    except OSError as error:
        if error.errno != errno.EINVAL:  # Linux before 6.3
            raise
    return os.memfd_create("landbridge-code", flags)


def _temporary_file() -> int:
    """Returns a descriptor of a file without a name, which only this process has."""
    import tempfile  # the import takes 7 ms, and this is hardly ever needed

    file, path = tempfile.mkstemp(prefix="landbridge-")
    Path(path).unlink()
    return file


def _seal(file: int) -> None:
    """Seal ``file`` against changes, where it is a file in memory."""
    try:
        fcntl.fcntl(file, _F_ADD_SEALS, _ALL_SEALS)
    except OSError:
        return  # an unnamed file in a folder: no other process reaches it


def _out_of_memory(nbytes: int, error: OSError) -> OutOfMemoryError:
    reason = error.strerror or str(error)
    return OutOfMemoryError(
        f"the system gave no memory for {nbytes:,} bytes of code ({reason}); end other programs, or raise the limit "
        "of this one"
    )
