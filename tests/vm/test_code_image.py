import ctypes
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from landbridge.errors import BindError, ExecutableError
from landbridge.vm import host_cpu
from landbridge.vm.code_image import load_image
from tests.vm.programs import code_image


def call(address: int, *arrays: np.ndarray, tasks: int) -> None:
    args = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(address)(ctypes.addressof(args), 0, tasks)


def test_functions_run():
    x, y = np.linspace(-1, 1, 8, dtype=np.float32), np.zeros(8, np.float32)
    image = load_image(code_image())
    call(image.address("double"), x, y, tasks=8)
    assert np.array_equal(y, x * 2)


def test_imports_reach_the_c_library():
    assert "expm1f" in code_image().imports
    x, y = np.linspace(-1, 1, 8, dtype=np.float32), np.zeros(8, np.float32)
    image = load_image(code_image())
    call(image.address("expm1"), x, y, tasks=8)
    assert np.allclose(y, np.expm1(x), rtol=1e-6)


def test_relocations_receive_the_load_address():
    # a bare table: the slot at 8 holds offset 16
    code = bytes(8) + (16).to_bytes(8, "little") + bytes(16)
    image = load_image(replace(code_image(), code=code, symbols={"start": 0}, imports={}, relocations=(8,)))
    start = image.address("start")
    assert ctypes.c_uint64.from_address(start + 8).value == start + 16


def test_pages_are_never_writable_and_executable():
    image = load_image(code_image())
    address = image.address("double")
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, permissions = line.split()[:2]
        low, high = (int(part, 16) for part in span.split("-"))
        if low <= address < high:
            assert permissions.startswith("r-x")
            return
    pytest.fail("the image is not mapped")


def test_unknown_function():
    with pytest.raises(BindError, match="nothing_like_it"):
        load_image(code_image()).address("nothing_like_it")


def test_other_isa():
    with pytest.raises(ExecutableError, match="compiled for sparc64, this machine is " + host_cpu.isa()):
        load_image(replace(code_image(), isa="sparc64"))


def test_missing_features_are_named():
    with pytest.raises(ExecutableError, match="avx9000, quantum"):
        load_image(replace(code_image(), features=("sse2", "quantum", "avx9000")))


def test_unknown_import_is_named():
    with pytest.raises(ExecutableError, match="no_such_function_of_c"):
        load_image(replace(code_image(), imports={"no_such_function_of_c": (0,)}))


@pytest.mark.parametrize(
    "damage",
    [
        {"symbols": {"f": 1 << 40}},
        {"symbols": {"f": -1}},
        {"imports": {"memcpy": (1 << 40,)}},
        {"relocations": (-8,)},
        {"relocations": (1 << 62,)},
    ],
)
def test_places_outside_the_image(damage):
    with pytest.raises(ExecutableError, match="image of"):
        load_image(replace(code_image(), **damage))
