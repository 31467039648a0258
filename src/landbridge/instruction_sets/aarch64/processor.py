"""Where an AArch64 processor reports its features (HWCAP), by Linux's names of them (``/proc/cpuinfo``)."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Mapping, Sequence

from landbridge.instruction_sets.processor import Processor

#: Of AArch64: types of the auxiliary vector (Linux, uapi/linux/auxvec.h), and for each the names of its bits, lowest
#: first (arch/arm64/include/uapi/asm/hwcap.h).
HWCAPS: Mapping[int, str] = {
    16: "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm jscvt fcma lrcpc dcpop sha3 "
    "sm3 sm4 asimddp sha512 sve asimdfhm dit uscat ilrcpc flagm ssbs sb paca pacg",
    26: "dcpodp sve2 sveaes svepmull svebitperm svesha3 svesm4 flagm2 frint svei8mm svef32mm svef64mm svebf16 i8mm "
    "bf16 dgh rng bti mte ecv afp rpres mte3 sme smei16i64 smef64f64 smei8i32 smef16f32 smeb16f32 smef32f32 smefa64 "
    "wfxt ebf16 sveebf16 cssc rprfm sve2p1 sme2 sme2p1 smei16i32 smebi32i32 smeb16b16 smef16f16 mops hbc sveb16b16 "
    "lrcpc3 lse128 fpmr lut faminmax",
}
#: The operation of ``prctl`` that tells how long SVE's registers are, and the bits of its answer that are bytes
#: (Linux, uapi/linux/prctl.h). A feature of its own says it: ``sve256``.
SVE_GET_LENGTH, SVE_LENGTH_MASK = 51, 0xFFFF


def hwcap_bits(kind: int, features: Iterable[str]) -> int:
    """Returns the bits that AArch64 code with ``features`` needs in entry ``kind`` of the auxiliary vector (16:
    AT_HWCAP, 26: AT_HWCAP2). Features that the entry has no bit for are ignored.
    """
    names = HWCAPS[kind].split()
    return sum(1 << names.index(name) for name in set(features) if name in names)


def sve_bytes(features: Iterable[str]) -> int:
    """Returns the bytes of an SVE register that AArch64 code with ``features`` assumes; 0 where it assumes none."""
    lengths = (re.fullmatch(r"sve(\d{3,})", name) for name in features)
    return max((int(length[1]) // 8 for length in lengths if length), default=0)


def _from_auxiliary_vector() -> frozenset[str]:
    # The auxiliary vector is the process's own, so it is right under an emulator and without /proc.
    try:
        getauxval = ctypes.CDLL(None).getauxval
    except AttributeError:
        return frozenset()
    getauxval.argtypes, getauxval.restype = [ctypes.c_ulong], ctypes.c_ulong
    found = {
        name for kind, names in HWCAPS.items() for bit, name in enumerate(names.split()) if getauxval(kind) >> bit & 1
    }
    if "sve" in found:
        length = ctypes.CDLL(None).prctl(SVE_GET_LENGTH, 0, 0, 0, 0)
        if length > 0:
            found.add(f"sve{8 * (length & SVE_LENGTH_MASK)}")
    return frozenset(found)


def _check_values(flags: Sequence[str]) -> dict[str, str]:
    wanted = {f"LB_HWCAP_{which}": f"{hwcap_bits(kind, flags)}ul" for which, kind in (("FIRST", 16), ("SECOND", 26))}
    return {**wanted, "LB_SVE_BYTES": str(sve_bytes(flags))}


PROCESSOR = Processor(_from_auxiliary_vector, __package__, _check_values)
