"""What the processor under this process can execute."""

from __future__ import annotations

import os
import platform
from functools import cache

_SAME = {"amd64": "x86_64", "arm64": "aarch64"}

#: Enough for the first processor's entry: the file of a machine with many cores takes long to make.
_FIRST_ENTRY_BYTES = 16384


@cache
def isa() -> str:
    """The instruction set's name, as in LLVM triples: ``x86_64``, ``aarch64``, ``riscv64``."""
    machine = platform.machine().lower()
    return _SAME.get(machine, machine)


@cache
def features() -> frozenset[str]:
    """The flags of ``/proc/cpuinfo``; empty where the kernel lists none."""
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
