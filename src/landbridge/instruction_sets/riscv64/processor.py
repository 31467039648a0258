"""Where a RISC-V processor reports its features, by Linux's names of them (``isa`` of ``/proc/cpuinfo``).

Extensions of one letter are bits of HWCAP; the vectors are usable where it has theirs. Others are bits of riscv_hwprobe
(Linux 6.4 and newer), or in ``/proc/cpuinfo``. How long vector registers are only the processor itself tells.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache

from landbridge.errors import LandbridgeError
from landbridge.instruction_sets.processor import Processor, cpuinfo
from landbridge.instruction_sets.riscv64.features import LENGTHS, vector_bits_of
from landbridge.process.executable_pages import CodePages

_HWCAP = 16  # type of the auxiliary vector (Linux, uapi/linux/auxvec.h)
_SYSCALL = 258  # riscv_hwprobe
#: The key of extensions, and the names of its bits, lowest first (Linux, arch/riscv/include/uapi/asm/hwprobe.h).
_EXTENSIONS = 4
HWPROBE = [
    "fd",
    "c",
    "v",
    "zba",
    "zbb",
    "zbs",
    "zicboz",
    "zbc",
    "zbkb",
    "zbkc",
    "zbkx",
    "zknd",
    "zkne",
    "zknh",
    "zksed",
    "zksh",
    "zkt",
    "zvbb",
    "zvbc",
    "zvkb",
    "zvkg",
    "zvkned",
    "zvknha",
    "zvknhb",
    "zvksed",
    "zvksh",
    "zvkt",
    "zfh",
    "zfhmin",
    "zihintntl",
    "zvfh",
    "zvfhmin",
    "zfa",
    "ztso",
    "zacas",
    "zicond",
    "zihintpause",
    "zve32x",
    "zve32f",
    "zve64x",
    "zve64f",
    "zve64d",
    "zimop",
    "zca",
    "zcb",
    "zcd",
    "zcf",
    "zcmop",
    "zawrs",
    "supm",
    "zicntr",
    "zihpm",
    "zfbfmin",
    "zvfbfmin",
    "zvfbfwma",
]
#: ``csrr a0, vlenb; ret``: bytes of a vector register.
_READ_LENGTH = bytes.fromhex("7325 20c2 8280")


class _Pair(ctypes.Structure):
    _fields_ = (("key", ctypes.c_int64), ("value", ctypes.c_uint64))


def _letters(bits: int) -> set[str]:
    return {chr(ord("a") + n) for n in range(26) if bits >> n & 1}


def _probed(library: ctypes.CDLL) -> set[str]:
    """Returns what riscv_hwprobe says that all cores have; nothing on kernels without it."""
    pair = _Pair(_EXTENSIONS, 0)
    call = library.syscall
    call.restype = ctypes.c_long
    arguments = ctypes.byref(pair), ctypes.c_size_t(1), ctypes.c_size_t(0), None, ctypes.c_uint(0)
    if call(ctypes.c_long(_SYSCALL), *arguments) != 0 or pair.key != _EXTENSIONS:
        return set()
    return {name for bit, name in enumerate(HWPROBE) if pair.value >> bit & 1}


def _listed() -> set[str]:
    """Returns the extensions of several letters in ``/proc/cpuinfo``: ``rv64imafdc_zba_zbb``."""
    return set(cpuinfo("isa").split("_")[1:])


@cache
def vector_bytes() -> int:
    """Returns the bytes of a vector register of this processor, which must have them; 0 where no code may run."""
    try:
        pages = CodePages(len(_READ_LENGTH))
        pages.fill(_READ_LENGTH)
    except LandbridgeError:
        return 0
    return int(ctypes.CFUNCTYPE(ctypes.c_long)(pages.base)())


def _features() -> frozenset[str]:
    # The auxiliary vector is the process's own, so it is right under an emulator and without /proc.
    library = ctypes.CDLL(None)
    try:
        getauxval = library.getauxval
    except AttributeError:
        return frozenset()
    getauxval.argtypes, getauxval.restype = [ctypes.c_ulong], ctypes.c_ulong
    letters = _letters(getauxval(_HWCAP))
    found = letters | (_probed(library) | _listed()) - {"fd", "v"}
    if "v" in letters:
        bits = 8 * vector_bytes()
        found |= {name for name, least in LENGTHS.items() if least <= bits}
        found |= {"zve32x", "zve32f", "zve64x", "zve64f", "zve64d"}
    return frozenset(found)


def _check_values(flags: Sequence[str]) -> dict[str, str]:
    letters = sum(1 << ord(flag) - ord("a") for flag in set(flags) if len(flag) == 1)
    extensions = sum(1 << HWPROBE.index(flag) for flag in set(flags) if len(flag) > 1 and flag in HWPROBE)
    length = vector_bits_of(flags) // 8
    return {"LB_HWCAP": f"{letters}ul", "LB_HWPROBE": str(extensions), "LB_VECTOR_BYTES": str(length)}


PROCESSOR = Processor(_features, __package__, _check_values)
