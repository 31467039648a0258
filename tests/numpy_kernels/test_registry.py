"""How programs find and call numpy kernels. What the kernels compute: tests/first_tier/test_node_cases.py."""

from __future__ import annotations

import numpy as np
import pytest

from landbridge.errors import BindError
from landbridge.numpy_kernels.registry import PREFIX, bound, find, kernel
from landbridge.vm.host_functions import host_function, is_known


def test_a_kernel_that_there_is_not():
    with pytest.raises(BindError, match=r"'NoSuchKernel'.*compile the model again"):
        host_function(PREFIX + "NoSuchKernel", {})
    assert not is_known(PREFIX + "NoSuchKernel")
    assert is_known(PREFIX + "Conv")


def test_a_name_is_taken_once():
    with pytest.raises(BindError, match="two numpy kernels 'Relu'"):
        kernel("Relu")(find("Exp"))


def test_absent_operands_are_none():
    x, high, out = np.array([1.0, 5.0], np.float32), np.array(3.0, np.float32), np.empty(2, np.float32)
    bound(PREFIX + "Clip", {"absent": [1], "attributes": {}})([x, high, out], {})
    np.testing.assert_array_equal(out, [1, 3])


def test_floating_point_exceptions_are_ignored():
    out = np.empty(2, np.float32)
    with np.errstate(all="raise"):
        bound(PREFIX + "Log", {})([np.array([0.0, -1.0], np.float32), out], {})
    assert out[0] == -np.inf
    assert np.isnan(out[1])


def test_indices_of_a_run_that_are_out_of_range():
    x, out = np.arange(3, dtype=np.float32), np.empty(4, np.float32)
    gather = bound(PREFIX + "Gather", {"attributes": {"axis": 0}})
    gather([x, np.array([-9, -1, 1, 7]), out], {})
    np.testing.assert_array_equal(out, [0, 2, 1, 2])  # the nearest, as docs/operators.md says
    scattered = np.empty(3, np.float32)
    scatter = bound(PREFIX + "ScatterND", {})
    scatter([x, np.array([[-9], [-1], [7]]), np.array([5, 6, 7], np.float32), scattered], {})
    np.testing.assert_array_equal(scattered, [0, 1, 6])
