"""Kernel modules of ours, built for the kernel to emulate."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.emulated.kernel import Kernel


def build(kernel: Kernel, source: Path, folder: Path, name: str | None = None, *options: str) -> tuple[str, bytes]:
    """The module ``name`` of the folder ``source`` (None: called as that), built in ``folder`` with make's ``options``,
    as (name, ELF file); raises RuntimeError with the compiler's words."""
    shutil.copytree(source, folder, dirs_exist_ok=True)
    options = (*kernel.architecture.make, f"M={folder}", "CONFIG_DEBUG_INFO_BTF_MODULES=", *options)
    command = ["make", "-s", "-C", str(kernel.headers), *options, "modules"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{source.name} was not built: {done.stderr[-1000:]}")
    name = name or source.name
    return name, (folder / f"{name}.ko").read_bytes()
