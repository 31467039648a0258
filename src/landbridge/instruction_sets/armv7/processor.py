"""Where an ARMv7 processor reports its features (HWCAP), by Linux's names of them (``/proc/cpuinfo``)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence

from landbridge.instruction_sets.processor import Processor

#: Types of the auxiliary vector (Linux, uapi/linux/auxvec.h), and for each the names of its bits, lowest first
#: (arch/arm/include/uapi/asm/hwcap.h).
HWCAPS = {
    16: "swp half thumb 26bit fastmult fpa vfp edsp java iwmmxt crunch thumbee neon vfpv3 vfpv3d16 tls vfpv4 idiva "
    "idivt vfpd32 lpae evtstrm fphp asimdhp asimddp asimdfhm asimdbf16 i8mm",
    26: "aes pmull sha1 sha2 crc32 sb ssbs",
}


def hwcap_bits(kind: int, features: Iterable[str]) -> int:
    """Returns the bits that code with ``features`` needs in entry ``kind`` of the auxiliary vector (16: AT_HWCAP, 26:
    AT_HWCAP2). Features that the entry has no bit for are ignored.
    """
    names = HWCAPS[kind].split()
    return sum(1 << names.index(name) for name in set(features) if name in names)


def _check_values(flags: Sequence[str]) -> dict[str, str]:
    return {f"LB_HWCAP_{which}": f"{hwcap_bits(kind, flags)}ul" for which, kind in (("FIRST", 16), ("SECOND", 26))}


def _features() -> frozenset[str]:
    # The auxiliary vector is the process's own, so it is right under an emulator and without /proc.
    try:
        getauxval = ctypes.CDLL(None).getauxval
    except AttributeError:
        return frozenset()
    getauxval.argtypes, getauxval.restype = [ctypes.c_ulong], ctypes.c_ulong
    return frozenset(
        name for kind, names in HWCAPS.items() for bit, name in enumerate(names.split()) if getauxval(kind) >> bit & 1
    )


PROCESSOR = Processor(_features, __package__, _check_values)
