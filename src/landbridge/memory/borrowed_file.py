"""Mapped files that others can truncate: an access past the end would end the process."""

from __future__ import annotations

import fcntl
import os
import stat
import weakref

from landbridge.device.import_source import DmaBuf
from landbridge.errors import HostViewError, ZeroCopyError


class BorrowedFile:
    """The file of descriptor ``source.fd``, whose size is checked before each use of the memory that it backs.

    The descriptor is duplicated, so the caller may close its own; the duplicate is closed with this object.
    """

    def __init__(self, source: DmaBuf) -> None:
        """Raises ZeroCopyError where the file ends before the range does."""
        self._end = source.offset + source.nbytes
        self._file = os.dup(source.fd)
        #: A dma-buf, which nobody can cut, is no regular file, and older kernels give it no size.
        self._is_regular = stat.S_ISREG(os.fstat(self._file).st_mode)
        weakref.finalize(self, os.close, self._file).atexit = False
        try:
            self.check()
        except HostViewError as error:
            raise ZeroCopyError(str(error)) from error

    @property
    def fd(self) -> int:
        """Returns a descriptor of the same file, which is open as long as this object lives."""
        return self._file

    @property
    def can_shrink(self) -> bool:
        """Returns whether someone could make the file shorter. False for a dma-buf and for a memfd that is sealed
        against it.
        """
        if not self._is_regular:
            return False
        try:
            return not fcntl.fcntl(self._file, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK
        except OSError:  # a file of a disk has no seals
            return True

    def check(self) -> None:
        """Raises HostViewError where the file has become shorter than the end of the range ``source``."""
        size = os.fstat(self._file).st_size if self._is_regular else self._end
        if size < self._end:
            raise HostViewError(
                f"the file behind this memory has {size} bytes now, and {self._end} were lent: an access would end the "
                "process; let nobody cut it (F_SEAL_SHRINK), or import what is left of it"
            )
