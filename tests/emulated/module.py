"""Kernel modules of ours, built for the kernel to emulate."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.emulated.kernel import Kernel


def build(kernel: Kernel, source: Path, folder: Path) -> tuple[str, bytes]:
    """The module of the folder ``source``, built in ``folder``, as (name, ELF file); raises RuntimeError with the
    compiler's words."""
    shutil.copytree(source, folder, dirs_exist_ok=True)
    command = ["make", "-s", "-C", str(kernel.headers), f"M={folder}", "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{source.name} was not built: {done.stderr[-1000:]}")
    return source.name, (folder / f"{source.name}.ko").read_bytes()
