"""Code images in memory: mapped writable, filled, then made executable; never both at once."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import weakref
from collections.abc import Mapping
from functools import cache

from landbridge.errors import BindError, ExecutableError
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.parts import CodeImage, check_code_image
from landbridge.vm import host_cpu

_SLOT = struct.Struct("<Q")
_READ_EXECUTE = mmap.PROT_READ | mmap.PROT_EXEC
_LIBRARIES = ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2")


class LoadedImage:
    """One executable mapping and the addresses of its functions; unmapped when dropped.

    Whoever stores an address keeps the LoadedImage.
    """

    def __init__(self, image: CodeImage, mapping: mmap.mmap, symbols: Mapping[str, int]) -> None:
        self.image = image
        self._mapping = mapping
        self._symbols = symbols

    def address(self, symbol: str) -> int:
        """The address of ``symbol``; raises BindError naming it when the image has none."""
        try:
            return self._symbols[symbol]
        except KeyError:
            raise BindError(f"the code image has no function {symbol!r}; compile the model again") from None

    def __contains__(self, symbol: object) -> bool:
        return symbol in self._symbols


# By the identity of the CodeImage, which the LoadedImage keeps: Sessions of one Executable share its code.
_loaded: weakref.WeakValueDictionary[int, LoadedImage] = weakref.WeakValueDictionary()


def load_image(image: CodeImage | DeviceImage) -> LoadedImage:
    """Map ``image`` so that its functions can be called; the mapping there is, if it is mapped already.

    Raises ExecutableError when it is for another instruction set, needs features this CPU lacks, imports a
    function the C library does not have, or places something outside itself; or is no code for a CPU.
    """
    if not isinstance(image, CodeImage):
        raise ExecutableError(f"an image of {image.format} kernels is run by a device, not by the CPU; bind a device")
    known = _loaded.get(id(image))
    if known is not None:
        return known
    _check_host(image)
    check_code_image(image)
    size = len(image.code)
    # private: shared anonymous memory would be a file of its own
    mapping = mmap.mmap(-1, max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    mapping[:size] = image.code
    base = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
    for symbol, slots in image.imports.items():
        address = _library_function(symbol)
        for slot in slots:
            _SLOT.pack_into(mapping, slot, address)
    for slot in image.relocations:
        (offset,) = _SLOT.unpack_from(mapping, slot)
        _SLOT.pack_into(mapping, slot, (base + offset) % (1 << 64))
    _clear_cache(base, len(mapping))
    if _mprotect()(base, len(mapping), _READ_EXECUTE) != 0:
        error = os.strerror(ctypes.get_errno())
        raise ExecutableError(f"the system does not let memory become executable ({error}); allow it to run code")
    loaded = LoadedImage(image, mapping, {name: base + offset for name, offset in image.symbols.items()})
    return _loaded.setdefault(id(image), loaded)


def _check_host(image: CodeImage) -> None:
    if image.isa != host_cpu.isa():
        raise ExecutableError(
            f"compiled for {image.isa}, this machine is {host_cpu.isa()}; compile the model for it: "
            "landbridge compile MODEL -t llvm, on this machine"
        )
    missing = sorted(set(image.features) - host_cpu.features())
    if missing:
        raise ExecutableError(
            f"the code needs CPU features this machine lacks: {', '.join(missing)}; "
            "compile the model here, or with -mcpu=generic for every machine"
        )


@cache
def _mprotect() -> ctypes._NamedFuncPointer:
    function = ctypes.CDLL(None, use_errno=True).mprotect
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return function


def _clear_cache(address: int, nbytes: int) -> None:
    """Let the processor read instructions from what was written; x86-64 does by itself."""
    if host_cpu.isa() == "x86_64":
        return
    try:
        # The compiler's function: on AArch64 it cleans the data cache to where both meet, line by line.
        clear = ctypes.CDLL("libgcc_s.so.1").__clear_cache
    except (OSError, AttributeError):
        return  # Linux does it too, when pages become executable that were not
    clear.argtypes, clear.restype = [ctypes.c_void_p, ctypes.c_void_p], None
    clear(address, address + nbytes)


@cache
def _library_function(symbol: str) -> int:
    for library in _LIBRARIES:
        try:
            function = getattr(ctypes.CDLL(library), symbol)
        except (OSError, AttributeError):
            continue
        return ctypes.cast(function, ctypes.c_void_p).value or 0
    raise ExecutableError(
        f"the code imports {symbol!r}, which the C library of this machine lacks; compile the model again here"
    )
