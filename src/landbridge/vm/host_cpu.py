"""What the processor under this process can execute."""

from __future__ import annotations

import ctypes
import os
from functools import cache

from landbridge.executable.cpu_features import HWCAPS, SVE_GET_LENGTH, SVE_LENGTH_MASK

_SAME = {"amd64": "x86_64", "arm64": "aarch64"}

#: Enough for the first processor's entry: the file of a machine with many cores takes long to make.
_FIRST_ENTRY_BYTES = 16384


@cache
def isa() -> str:
    """The instruction set's name, as in LLVM triples: ``x86_64``, ``aarch64``, ``riscv64``."""
    machine = os.uname().machine.lower()
    return _SAME.get(machine, machine)


@cache
def features() -> frozenset[str]:
    """The CPU's features by Linux's names, those of ``/proc/cpuinfo``; empty where the system tells none.

    Where there is SVE, ``sve256`` or the like says the bits of its registers.
    """
    return _from_auxiliary_vector() if isa() == "aarch64" else _from_cpuinfo()


def _from_auxiliary_vector() -> frozenset[str]:
    # It is the process's own, so it is right under an emulator and where /proc is not mounted.
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
