"""A minimal loader of code images: map, fill the slots, make executable, call."""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, math, memref, scf, vector
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from landbridge.executable.executable import CodeImage

_LIBC = ctypes.CDLL(None)
_LIBM = ctypes.CDLL("libm.so.6")
_LIBC.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class LoadedImage:
    """Executable memory that holds ``image``."""

    def __init__(self, image: CodeImage) -> None:
        size = -(-len(image.code) // mmap.PAGESIZE) * mmap.PAGESIZE
        self._memory = mmap.mmap(-1, size)
        self._memory.write(image.code)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        for at in image.relocations:
            (value,) = struct.unpack_from("<Q", self._memory, at)
            struct.pack_into("<Q", self._memory, at, value + self.base)
        for name, slots in image.imports.items():
            for at in slots:
                struct.pack_into("<Q", self._memory, at, _import_address(name))
        assert _LIBC.mprotect(self.base, size, mmap.PROT_READ | mmap.PROT_EXEC) == 0
        self.symbols = {name: self.base + offset for name, offset in image.symbols.items()}

    def call(self, name: str, arrays: Sequence[np.ndarray[Any, Any]], begin: int = 0, end: int = 1) -> None:
        """Run tasks ``begin .. end`` of a kernel on the memory of ``arrays``."""
        kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(self.symbols[name])
        addresses = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        kernel(addresses, begin, end)


def _import_address(name: str) -> int:
    for library in (_LIBC, _LIBM):
        try:
            return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
        except AttributeError:
            continue
    raise LookupError(name)


def parse(text: str) -> ModuleOp:
    """The module of MLIR text over the dialects of the lowered form."""
    context = Context()
    for dialect in (builtin.Builtin, func.Func, arith.Arith, math.Math, memref.MemRef, scf.Scf, vector.Vector):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()
