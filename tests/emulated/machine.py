"""A machine that QEMU emulates, without hardware support: boots in seconds, runs one program, is gone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.emulated.architecture import AMD64, Architecture
from tests.emulated.kernel import Kernel

_ENDED = re.compile(r"LANDBRIDGE ended (-?\d+)")
_BROKEN = re.compile(r"Kernel panic|PANIC: double fault")
# QEMU 7.2 broke 4 of 40 boots with counted instructions: the kernel stopped, with impossible values in registers.
_BOOTS = 4
_COUNTED = ("-icount", "shift=auto,sleep=off")


@dataclass(frozen=True)
class Outcome:
    """How the program ended, and what the machine printed; ``code`` is None when it never did."""

    code: int | None
    text: str


def can_emulate(architecture: Architecture = AMD64) -> str | None:
    """What is missing for emulation here, or None."""
    for program in (*architecture.programs, "mke2fs", "apt-get", "dpkg-deb"):
        if shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
            return f"{program} is not installed"
    return None


def run(
    kernel: Kernel,
    disk: Path,
    program: str,
    *arguments: str,
    devices: tuple[str, ...] = (),
    boot: str = "",
    memory_mib: int = 256,
    timeout: float = 180,
    counted: bool = True,
) -> Outcome:
    """Boot, run ``python program arguments``, turn off. ``devices`` are QEMU's arguments, ``boot`` the kernel's.

    ``counted``: instructions are, and idle time is skipped (``-icount``), so that a device's delays cost nothing; a
    long run without any is safer without. A machine whose kernel breaks and that says nothing of the program's end is
    booted again.
    """
    words = ",".join(("-m", program, *arguments))
    architecture = kernel.architecture
    given = " ".join((boot, *architecture.boot, f"landbridge.run={words}"))
    console = f"console={architecture.console}"
    append = f"root=/dev/nvme0n1 ro init=/init {console} quiet loglevel=3 panic=-1 oops=panic {given}"
    command = [
        *(*architecture.machine, "-m", str(memory_mib), "-nographic", "-no-reboot"),
        *(_COUNTED if counted and architecture.counted else ()),
        *("-nodefaults", "-serial", "stdio", "-kernel", str(kernel.image)),
        *("-drive", f"if=none,id=disk,format=raw,readonly=on,file={disk}", "-device", "nvme,drive=disk,serial=disk"),
        *devices,
        *("-append", append),
    ]
    for _ in range(_BOOTS):
        outcome = emulate(command, timeout)
        if outcome.code is not None or not _BROKEN.search(outcome.text):
            break
    return outcome


def emulate(command: list[str], timeout: float) -> Outcome:
    """How the machine ended that QEMU's ``command`` boots, after ``timeout`` seconds at most."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout)
        text = done.stdout + done.stderr
    except subprocess.TimeoutExpired as late:
        text = (late.stdout or b"").decode(errors="replace") + f"\nnot done after {timeout} s"
    ended = _ENDED.search(text)
    return Outcome(int(ended[1]) if ended else None, text)
