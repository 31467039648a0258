"""The kernels of mynpu: C of the lowered functions, built by the system's C compiler into a shared library.

A kernel is ``void name(void **args, int64_t begin, int64_t end)``: ``args`` are the addresses of its operands, and it
does the tasks from ``begin`` to ``end``, which are independent of each other. The grid of a launch counts them.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from landbridge.codegen.c import print_kernels
from landbridge.errors import CodegenError
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.parts import ModuleImage
from landbridge.targets import Target, c_compiler
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from landbridge_mynpu.target import FORMAT

_FLAGS = ("-O2", "-shared", "-fPIC", "-std=gnu11", "-w", "-ffp-contract=fast", "-fno-math-errno")


class MynpuGenerator:
    """Makes one shared library of all functions of a module."""

    def __call__(self, module: ModuleOp, target: Target) -> ModuleImage:
        text, sequences = print_kernels(module)
        return ModuleImage(target.to_json(), DeviceImage(FORMAT, _built(text), sequences))

    def supports(self, prim: FuncOp, target: Target) -> str | None:
        """Why there is no kernel of ``prim``, as in "mynpu has no math.erf"; it goes to a CPU then."""
        return None


generate = MynpuGenerator()


def _built(text: str) -> bytes:
    compiler = c_compiler.find()
    if compiler is None:
        raise CodegenError(
            "target 'mynpu' needs a C compiler and finds none; install one (Debian: apt-get install gcc)"
        )
    with TemporaryDirectory(prefix="mynpu-") as folder:
        source, library = Path(folder, "kernels.c"), Path(folder, "kernels.so")
        source.write_text(text, encoding="utf-8")
        command = [compiler, *_FLAGS, str(source), "-o", str(library), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CodegenError(f"{compiler} rejects the kernels of mynpu: {done.stderr.strip()[:500]}")
        return library.read_bytes()
