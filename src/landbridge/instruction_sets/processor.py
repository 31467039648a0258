"""What the processor under this process can do, and how a C program checks it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from landbridge.records import record

#: Enough for the first processor's entry: the kernel takes long to write the file for many cores.
_FIRST_ENTRY_BYTES = 16384


def from_cpuinfo() -> frozenset[str]:
    """Returns the features that ``/proc/cpuinfo`` lists of the first processor; none where that cannot be read."""
    return frozenset(cpuinfo("flags", "Features").split())


def cpuinfo(*keys: str) -> str:
    """Returns what ``/proc/cpuinfo`` says of the first processor under one of ``keys``; empty where it has none."""
    try:
        file = os.open("/proc/cpuinfo", os.O_RDONLY)
    except OSError:
        return ""
    try:
        text = os.read(file, _FIRST_ENTRY_BYTES).decode(errors="replace")
    finally:
        os.close(file)
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in keys:
            return value.strip()
    return ""


def _nothing(flags: Sequence[str]) -> dict[str, str]:
    return {}


@record(frozen=True)
class Processor:
    """Facts of the machine that a program runs on.

    ``features()``: those of this process's processor by Linux's names, none where they are not known. A C program
    includes the file ``check_cpu.h`` of ``package``, whose words ``check_values(flags)`` gives for code that needs
    ``flags``: it defines ``lb_name_check_cpu``. Both are of use where libraries for C are written.
    """

    features: Callable[[], frozenset[str]]
    package: str = ""
    check_values: Callable[[Sequence[str]], Mapping[str, str]] = _nothing

    def check_source(self) -> str:
        """Returns the source of the check."""
        from importlib.resources import files  # imported here, as a run does not need it

        return files(self.package).joinpath("check_cpu.h").read_text(encoding="utf-8")
