"""Pages at addresses that this process reserved: what is mapped there, and how it may be used."""

from __future__ import annotations

import ctypes
import mmap
import os

#: The same on Linux on all instruction sets; Python names it in later versions.
_MAP_FIXED = 0x10


def map_file(address: int, nbytes: int, rights: int, flags: int, file: int) -> None:
    """Map the first ``nbytes`` of ``file`` to pages from ``address`` on, in place of what is there; raises OSError."""
    _call("mmap", ctypes.c_ssize_t, address, nbytes, rights, flags | _MAP_FIXED, file, ctypes.c_long(0))


def protect(address: int, nbytes: int, rights: int) -> None:
    """Change the rights of pages from ``address`` on; raises OSError."""
    _call("mprotect", ctypes.c_int, address, nbytes, rights)


def reserve(nbytes: int) -> tuple[mmap.mmap, int]:
    """Returns ``nbytes`` of address space, zeroed, and their address; unmapped when collected. Raises OSError."""
    reserved = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return reserved, ctypes.addressof(ctypes.c_char.from_buffer(reserved))


def _call(name: str, result: type[ctypes.c_int] | type[ctypes.c_ssize_t], address: int, *arguments: object) -> None:
    function = ctypes.CDLL(None, use_errno=True)[name]
    function.restype = result
    nbytes, *rest = arguments
    assert isinstance(nbytes, int)
    if function(ctypes.c_void_p(address), ctypes.c_size_t(nbytes), *rest) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
