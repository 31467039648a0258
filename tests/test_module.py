import numpy as np
import pytest

import landbridge as lb
from landbridge.errors import InputError, ZeroCopyError
from landbridge.module import Module
from tests.vm import programs


def tensor(array: np.ndarray) -> lb.Tensor:
    return lb.Tensor.from_numpy_view(array)


def test_kernels_by_name():
    module = Module(programs.two_stages())
    assert sorted(module) == ["add", "double"] and len(module) == 2
    a, b, c = np.arange(64, dtype=np.float32), np.ones(64, np.float32), np.zeros(64, np.float32)
    module["add"](tensor(a), tensor(b), tensor(c))
    assert np.array_equal(c, a + b)


def test_kernels_inside_branches():
    assert sorted(Module(programs.branches())) == ["copy", "double", "is_positive"]


def test_operands_are_checked():
    kernel = Module(programs.moves_data())["copy"]
    x, y = np.ones(64, np.float32), np.zeros(128, np.float32)
    with pytest.raises(InputError, match="takes 2 tensors, not 1"):
        kernel(tensor(x))
    with pytest.raises(InputError, match="operand 1 has 512 bytes, it takes 256"):
        kernel(tensor(x), tensor(y))
    with pytest.raises(ZeroCopyError, match="operand 1 is not contiguous"):
        kernel(tensor(x), tensor(y[::2]))
    with pytest.raises(KeyError):
        Module(programs.moves_data())["add"]


def test_kernels_as_packed_functions():
    import tvm_ffi

    packed = Module(programs.moves_data())["copy"].packed()
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    packed(tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(y))
    assert np.array_equal(x, y)
    with pytest.raises(Exception, match="takes 2 tensors, not 1"):
        packed(tvm_ffi.from_dlpack(x))
