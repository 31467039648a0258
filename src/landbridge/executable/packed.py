"""Functions of the tvm-ffi calling convention for the kernels of a code image.

A *packed function* is ``int f(void *self, const TVMFFIAny *args, int32_t count, TVMFFIAny *result)``. Every CPU
image holds one checker, ``landbridge_packed_v3(descriptor, args, count)``: it compares the arguments with a
descriptor, raises through ``TVMFFIErrorSetRaisedFromCStr`` what does not fit, and runs all tasks of the kernel on
the calling thread. ``with_packed_functions`` appends to an image, for each kernel, its descriptor and a few bytes
of code ``__tvm_ffi_<kernel>`` that call the checker with it.

A descriptor is an array of 64-bit words; offsets count bytes from its start::

    word 0   kernel's offset     1  tasks     2  number of operands     3  offset of the kernel's name
    word 4   1 where the kernel flushes denormal floats to zero
    word 5   bytes of workspace, a multiple of 64, that a call allocates for its length; 0 for none
    word 6   for each reason to refuse (REASONS): offset of the error's kind, offset of its printf format
    then     for each operand: DLPack type (code | bits << 8 | lanes << 16), alignment in bytes, rank,
             offset of its extents followed by its strides in elements, offset of its text ("float32[2, 3]")

The formats take the kernel's name, a number, an operand's text and two more numbers, in this order.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace

from landbridge.dtypes import dtype
from landbridge.errors import ExecutableError
from landbridge.executable.abi import STORAGE_ALIGNMENT
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.parts import CodeImage, TensorSpec
from landbridge.instruction_sets.registry import instruction_set, is_known, names
from landbridge.records import record

PACKED_SYMBOL = "landbridge_packed_v3"
PREFIX = "__tvm_ffi_"

#: Kind (a Python exception that tvm-ffi knows) and format of each reason, in the order of the checker's numbers.
REASONS = (
    ("TypeError", "kernel '%s' takes %lld tensors%s, %lld were given"),
    ("TypeError", "kernel '%s': operand %lld is no tensor; it takes %s"),
    (
        "ValueError",
        "kernel '%s': operand %lld is %s on the CPU; this tensor is on a device of DLPack type %lld; copy it to the "
        "host",
    ),
    (
        "TypeError",
        "kernel '%s': operand %lld is %s; this tensor has DLPack type code %lld, %lld bits; nothing is cast silently",
    ),
    ("ValueError", "kernel '%s': operand %lld is %s; this tensor has rank %lld"),
    ("ValueError", "kernel '%s': operand %lld is %s; dimension %lld of this tensor is %lld"),
    (
        "ValueError",
        "kernel '%s': operand %lld is %s, dense and row-major; the stride of dimension %lld is %lld; pass a "
        "contiguous copy",
    ),
    (
        "ValueError",
        "kernel '%s': operand %lld is %s; its memory is not aligned to the %lld bytes of an element; pass a copy",
    ),
    ("MemoryError", "kernel '%s' works in %lld bytes of memory of its own%s, which the system did not give"),
)


@record(frozen=True)
class PackedKernel:
    """The facts that a packed function checks and runs with: tasks, tensors (destinations last) and workspace of the
    kernel, and the ``function`` of the code that it is, by default the one of its own name.
    """

    tasks: int
    operands: tuple[TensorSpec, ...]
    workspace_bytes: int = 0
    function: str = ""


def with_packed_functions(image: CodeImage | DeviceImage, kernels: Mapping[str, PackedKernel]) -> CodeImage:
    """Returns ``image`` with a symbol ``__tvm_ffi_<name>`` for each of ``kernels``.

    Raises ExecutableError for kernels of a device, for an image without the checker, or for an instruction set that
    has no such code here.
    """
    if not isinstance(image, CodeImage):
        raise ExecutableError(f"packed functions call code of the host's CPU; this image is {image.format}")
    if PACKED_SYMBOL not in image.symbols and (not is_known(image.isa) or instruction_set(image.isa).code is not None):
        raise ExecutableError(f"the code image has no {PACKED_SYMBOL}; compile the model again with this version")
    if not is_known(image.isa):
        raise ExecutableError(f"packed functions are made for images of {', '.join(names())}; this is for {image.isa}")
    described = instruction_set(image.isa)
    form = described.for_libraries("packed functions")
    # The functions follow the slots, on new pages.
    code = bytearray(image.code)
    code += bytes(-len(code) % described.elf.page)
    symbols = dict(image.symbols)
    for name, kernel in kernels.items():
        at = len(code)
        code += _descriptor(name, kernel, image.symbols[kernel.function or name] - at, image.flushes_denormals)
        code += bytes(-len(code) % 16)
        symbols[PREFIX + name] = len(code)
        code += form.jump_with(len(code), at, image.symbols[PACKED_SYMBOL])
        code += bytes(-len(code) % 16)
    return replace(image, code=bytes(code), symbols=symbols)


def _descriptor(name: str, kernel: PackedKernel, offset: int, flushes_denormals: bool) -> bytes:
    words: list[int] = [offset, kernel.tasks, len(kernel.operands)]
    size = 8 * (6 + 2 * len(REASONS) + 5 * len(kernel.operands))
    tail = bytearray()

    def add(data: bytes) -> int:
        """Appends ``data`` on an 8-byte boundary and returns its offset."""
        where = size + len(tail)
        tail.extend(data + bytes(-len(data) % 8))
        return where

    words += [add(_text(name)), int(flushes_denormals), _up(kernel.workspace_bytes)]
    for kind, form in REASONS:
        words += [add(_text(kind)), add(_text(form))]
    for spec in kernel.operands:
        element = dtype(spec.dtype)
        strides = [math.prod(spec.shape[i + 1 :]) for i in range(len(spec.shape))]
        words += [
            element.dlpack_code | element.dlpack_bits << 8 | 1 << 16,
            element.itemsize,
            len(spec.shape),
            add(_words([*spec.shape, *strides])),
            add(_text(f"{spec.dtype}{list(spec.shape)}")),
        ]
    return _words(words) + bytes(tail)


def _up(nbytes: int) -> int:
    """Returns the smallest multiple of STORAGE_ALIGNMENT that is not less than ``nbytes``."""
    return -(-nbytes // STORAGE_ALIGNMENT) * STORAGE_ALIGNMENT


def _words(values: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def _text(text: str) -> bytes:
    return text.encode() + b"\0"
