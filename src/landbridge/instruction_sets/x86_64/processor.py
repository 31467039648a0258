"""Where an x86-64 processor reports its features (CPUID), by Linux's names of them (``/proc/cpuinfo``)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence

from landbridge.instruction_sets.processor import Processor, from_cpuinfo

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


#: The number that glibc gives a leaf of CPUID and a part of it (sys/platform/x86.h, from 2.33 on).
_LEAVES = {(1, 0): 0, (7, 0): 1, (0x80000001, 0): 2, (7, 1): 6}


def from_c_library() -> frozenset[str]:
    """Returns the x86-64 features that glibc found in this processor and whose registers the system saves, by Linux's
    names; empty without glibc 2.33 or newer.
    """
    try:
        leaf_of = ctypes.CDLL(None).__x86_get_cpuid_feature_leaf
    except AttributeError:
        return frozenset()
    # Four registers as the processor gives them, then what of them can be used.
    leaf_of.restype, leaf_of.argtypes = ctypes.POINTER(ctypes.c_uint32 * 8), [ctypes.c_uint]
    found = set()
    for (leaf, part, register), names in CPUID.items():
        usable = leaf_of(_LEAVES[leaf, part]).contents[4 + register]
        found |= {name for name, bit in names.items() if usable >> bit & 1}
    return frozenset(found)


def _features() -> frozenset[str]:
    """Returns the features of ``/proc/cpuinfo``, or without that those that the C library has found, of those that
    compiled code depends on.
    """
    return from_cpuinfo() or from_c_library()


def _check_values(flags: Sequence[str]) -> dict[str, str]:
    rows = [f"{{{leaf}u, {part}, {register}, {bits}u}}" for (leaf, part, register), bits in cpuid_bits(flags).items()]
    return {"LB_WANTED": ", ".join(rows) or "{1, 0, 3, 1 << 26}", "LB_SAVED": f"{saved_registers(flags)}"}


PROCESSOR = Processor(_features, __package__, _check_values)
