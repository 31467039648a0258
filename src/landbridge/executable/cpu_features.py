"""Where a processor reports its features (HWCAP, CPUID), by Linux's names of them (``/proc/cpuinfo``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

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

_EAX, _EBX, _ECX, _EDX = range(4)
#: Of x86-64: leaf of CPUID, part of it, register and bits (Intel, "Software Developer's Manual", volume 2, CPUID;
#: AMD, "AMD64 Architecture Programmer's Manual", volume 3, appendix E).
CPUID: Mapping[tuple[int, int, int], Mapping[str, int]] = {
    (1, 0, _ECX): {"pni": 0, "pclmulqdq": 1, "ssse3": 9, "fma": 12, "cx16": 13, "sse4_1": 19, "sse4_2": 20, "movbe": 22,
                   "popcnt": 23, "aes": 25, "avx": 28, "f16c": 29},
    (7, 0, _EBX): {"bmi1": 3, "avx2": 5, "bmi2": 8, "avx512f": 16, "avx512dq": 17, "adx": 19, "avx512ifma": 21,
                   "avx512cd": 28, "sha_ni": 29, "avx512bw": 30, "avx512vl": 31},
    (7, 0, _ECX): {"avx512vbmi": 1, "avx512_vbmi2": 6, "gfni": 8, "vaes": 9, "vpclmulqdq": 10, "avx512_vnni": 11,
                   "avx512_bitalg": 12, "avx512_vpopcntdq": 14},
    (7, 0, _EDX): {"avx512_fp16": 23},
    (7, 1, _EAX): {"avx_vnni": 4, "avx512_bf16": 5},
    (0x80000001, 0, _ECX): {"abm": 5, "sse4a": 6},
}  # fmt: skip
#: The system saves and restores registers by XSAVE, and register XCR0 says which.
_OSXSAVE = (1, 0, _ECX), 27
_VECTORS, _WIDE_VECTORS = 0x6, 0xE6


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


def cpuid_bits(features: Iterable[str]) -> dict[tuple[int, int, int], int]:
    """Returns the bits that x86-64 code with ``features`` needs, by (leaf, subleaf, register) of CPUID; registers
    without such a bit are left out.
    """
    wanted = set(features)
    found = {where: sum(1 << bit for name, bit in bits.items() if name in wanted) for where, bits in CPUID.items()}
    if saved_registers(wanted):
        where, bit = _OSXSAVE
        found[where] |= 1 << bit
    return {where: bits for where, bits in found.items() if bits}


def saved_registers(features: Iterable[str]) -> int:
    """Returns the bits of XCR0 that x86-64 code with ``features`` needs."""
    wide, narrow = (any(name.startswith(prefix) for name in features) for prefix in ("avx512", "avx"))
    return _WIDE_VECTORS if wide else _VECTORS if narrow or not {"fma", "f16c", "vaes"}.isdisjoint(features) else 0
