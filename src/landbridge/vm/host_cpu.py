"""The instruction set and features of the processor under this process."""

from __future__ import annotations

import ctypes
import os
from functools import cache

from landbridge.executable.cpu_features import CPUID, HWCAPS, SVE_GET_LENGTH, SVE_LENGTH_MASK

_SAME = {"amd64": "x86_64", "arm64": "aarch64"}

#: Enough for the first processor's entry: the kernel takes long to write the file for many cores.
_FIRST_ENTRY_BYTES = 16384


@cache
def isa() -> str:
    """Returns the instruction set's name, as in LLVM triples: ``x86_64``, ``aarch64``, ``riscv64``."""
    machine = os.uname().machine.lower()
    return _SAME.get(machine, machine)


@cache
def features() -> frozenset[str]:
    """Returns the CPU's features by Linux's names, those of ``/proc/cpuinfo``; empty where they are not known.

    On x86-64 without ``/proc`` they are the ones that the C library has found, of those that compiled code depends on.
    Where there is SVE, one is ``sve`` with the bits of its registers, such as ``sve256``.
    """
    return _from_auxiliary_vector() if isa() == "aarch64" else _from_cpuinfo() or _from_c_library()


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


#: The number that glibc gives a leaf of CPUID and a part of it (sys/platform/x86.h, from 2.33 on).
_LEAVES = {(1, 0): 0, (7, 0): 1, (0x80000001, 0): 2, (7, 1): 6}


def _from_c_library() -> frozenset[str]:
    """Returns the x86-64 features that glibc found in this processor and whose registers the system saves, by Linux's
    names; empty on other processors and without glibc 2.33 or newer.
    """
    if isa() != "x86_64":
        return frozenset()
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


def _from_cpuinfo() -> frozenset[str]:
    try:
        file = os.open("/proc/cpuinfo", os.O_RDONLY)
    except OSError:
        return frozenset()
    try:
        text = os.read(file, _FIRST_ENTRY_BYTES).decode(errors="replace")
    finally:
        os.close(file)
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()
