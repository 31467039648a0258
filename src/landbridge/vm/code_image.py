"""Code images in memory: they are relocated in ordinary memory, and then mapped as executable pages."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping
from functools import cache

from landbridge.errors import BindError, ExecutableError
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.parts import CodeImage, check_code_image
from landbridge.instruction_sets.registry import instruction_set
from landbridge.process.executable_pages import CodePages
from landbridge.vm import host_cpu

_LIBRARIES = ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2")


class LoadedImage:
    """One executable mapping and the addresses of its functions; unmapped when collected.

    Whoever stores an address keeps the LoadedImage alive.
    """

    def __init__(self, image: CodeImage, pages: CodePages, symbols: Mapping[str, int]) -> None:
        self.image = image
        self._pages = pages
        self._symbols = symbols

    def address(self, symbol: str) -> int:
        """Returns the address of ``symbol``; raises BindError that names it when the image does not have it."""
        try:
            return self._symbols[symbol]
        except KeyError:
            raise BindError(f"the code image has no function {symbol!r}; compile the model again") from None

    def __contains__(self, symbol: object) -> bool:
        return symbol in self._symbols


# Sessions of one Executable share its code. A CodeImage is hashed by identity; it is here while its LoadedImage lives.
_loaded: weakref.WeakValueDictionary[CodeImage, LoadedImage] = weakref.WeakValueDictionary()


def load_image(image: CodeImage | DeviceImage) -> LoadedImage:
    """Map ``image`` so that its functions can be called; returns the existing mapping if there is one.

    Raises ExecutableError when it is for another instruction set, needs features this CPU lacks, imports a function the
    C library does not have, or refers to addresses outside itself; when it is not code for a CPU, or the system runs no
    such code. Raises OutOfMemoryError where there is no memory for it.
    """
    if not isinstance(image, CodeImage):
        raise ExecutableError(f"an image of {image.format} kernels is run by a device, not by the CPU; bind a device")
    known = _loaded.get(image)
    if known is not None:
        return known
    _check_host(image)
    check_code_image(image)
    content = bytearray(image.code)
    pages = CodePages(len(content))
    elf = instruction_set(image.isa).elf
    for symbol, slots in image.imports.items():
        address = _library_function(symbol, elf.libraries)
        for slot in slots:
            elf.address.pack_into(content, slot, address)
    for slot in image.relocations:
        (offset,) = elf.address.unpack_from(content, slot)
        elf.address.pack_into(content, slot, (pages.base + offset) % (1 << elf.bits))
    pages.fill(content)
    loaded = LoadedImage(image, pages, {name: pages.base + offset for name, offset in image.symbols.items()})
    return _loaded.setdefault(image, loaded)


def _check_host(image: CodeImage) -> None:
    if image.isa != host_cpu.isa():
        raise ExecutableError(
            f"compiled for {image.isa}, this machine is {host_cpu.isa()}; compile the model for it: "
            "landbridge compile MODEL -t llvm, on this machine"
        )
    if image.features and not host_cpu.features():
        raise ExecutableError(
            f"the code needs CPU features ({', '.join(sorted(image.features))}), and which this machine has is not "
            "known: neither /proc/cpuinfo nor the C library says it; mount /proc, or compile with -mcpu=generic"
        )
    missing = sorted(set(image.features) - host_cpu.features())
    if missing:
        raise ExecutableError(
            f"the code needs CPU features this machine lacks: {', '.join(missing)}; "
            "compile the model here, or with -mcpu=generic for every machine"
        )


@cache
def _library_function(symbol: str, more: tuple[str, ...]) -> int:
    for library in (*_LIBRARIES, *more):
        try:
            function = getattr(ctypes.CDLL(library), symbol)
        except (OSError, AttributeError):
            continue
        return ctypes.cast(function, ctypes.c_void_p).value or 0
    raise ExecutableError(
        f"the code imports {symbol!r}, which the C library of this machine lacks; compile the model again here"
    )
