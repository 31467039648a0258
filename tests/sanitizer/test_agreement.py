"""Planted kernels: the sanitizer finds the writes outside of a buffer that Oclgrind and AddressSanitizer find."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from landbridge.device.api import Region, Space
from landbridge.device.protocols import DeviceModules, HostMemory
from landbridge.device.registry import device as find_device
from landbridge.errors import SanitizerError
from landbridge.sanitizer import findings
from tests.devices.present import first_instance
from tests.selection.installed import program

#: The element of 64 floats that a kernel writes.
PLANTED = {"first": 0, "last": 63, "past": 64, "far": 96, "before": -1, "far before": -40}

OPENCL = "__kernel void plant(__global float *x, const int at) { x[at] = 1.0f; }"
OCLGRIND = f"""
import sys
import numpy as np
import pyopencl as cl
platform, = cl.get_platforms()
assert platform.name == "Oclgrind", platform
context = cl.Context(platform.get_devices())
queue = cl.CommandQueue(context)
x = cl.Buffer(context, cl.mem_flags.READ_WRITE, 256)
cl.Program(context, {OPENCL!r}).build().plant(queue, (1,), None, x, np.int32(int(sys.argv[1])))
queue.finish()
"""
#: A kernel of the form that the target ``c`` makes.
C = """
#include <stdint.h>
void plant(void **args, int64_t begin, int64_t end) { for (; begin < end; ++begin) ((float *)args[0])[begin] = 1.0f; }
"""
C_PROGRAM = """
#include <stdlib.h>
int main(int n, char **text) {
  void *x = malloc(256);
  plant(&x, atoi(text[1]), atoi(text[1]) + 1);
  free(x);
}
"""


def is_refused(space: Space) -> bool:
    """Whether the free finds a write outside."""
    try:
        space.device.api.free_data_space(space)
    except SanitizerError as error:
        assert "redzone" in str(error)
        space.device.api.free_data_space(space)
        return True
    return False


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", PLANTED)
def test_oclgrind(name, tmp_path):
    first_instance("opencl")
    at = PLANTED[name]
    (tmp_path / "plant.py").write_text(OCLGRIND)
    run = [program("oclgrind", "debian"), sys.executable, str(tmp_path / "plant.py"), str(at)]
    reported = subprocess.run(run, capture_output=True, text=True, timeout=120, check=True)
    theirs = "Invalid write of size 4 at global memory" in reported.stdout + reported.stderr

    device = find_device("sanitize(opencl)")
    space = device.api.alloc_data_space(0, 256, 1, "global", None)
    api = device.capability(DeviceModules)
    module = api.load_module(0, OPENCL.encode(), "opencl-c")
    try:
        event = api.launch(module, "plant", (1, 1, 1), (1, 1, 1), [Region(space), at], None)
        if event is not None:
            event.synchronize()
    except SanitizerError as error:
        assert "launch of plant" in str(error)
        assert 4 * at <= int(str(error).split("wrote byte ")[1].split()[0]) < 4 * at + 4
    device.api.free_data_space(space)
    assert bool(findings()) == theirs == (not 0 <= at < 64)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", PLANTED)
def test_address_sanitizer(name, tmp_path):
    at = PLANTED[name]
    reported = subprocess.run(
        [_built(tmp_path, "asan", C + C_PROGRAM, "-fsanitize=address"), str(at)], capture_output=True
    )
    theirs = b"ERROR: AddressSanitizer" in reported.stderr
    assert theirs == (reported.returncode != 0)

    device = find_device("sanitize(cpu)")
    space = device.api.alloc_data_space(0, 256, 1, "global", None)
    code = ctypes.CDLL(_built(tmp_path, "plain.so", C, "-shared", "-fPIC"))
    args = (ctypes.c_void_p * 1)(device.capability(HostMemory).host_pointer(space))
    code.plant(args, ctypes.c_int64(at), ctypes.c_int64(at + 1))
    assert is_refused(space) == theirs == (not 0 <= at < 64)


def _built(folder: Path, name: str, text: str, *options: str) -> str:
    (folder / f"{name}.c").write_text(text)
    made = str(folder / name)
    subprocess.run([program("gcc", "debian"), "-O1", *options, "-o", made, str(folder / f"{name}.c")], check=True)
    return made
