"""OrtValues over memory of others."""

from __future__ import annotations

import numpy as np
import pytest

import landbridge.onnxruntime as ort
from landbridge.errors import LandbridgeError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("of", ["array", "capsule", "OrtValue", "its capsule"])
def test_what_dlpack_gives_is_used_in_place(of: str) -> None:
    value = ort.OrtValue.ortvalue_from_numpy(X)
    given = {"array": X, "capsule": X.__dlpack__(), "OrtValue": value, "its capsule": value.__dlpack__()}[of]
    found = ort.OrtValue.from_dlpack(given)
    assert found.data_ptr() == X.ctypes.data
    np.testing.assert_array_equal(found.numpy(), X)


def test_bytes_are_bools_where_that_is_reported() -> None:
    found = ort.OrtValue.from_dlpack(np.array([0, 1], np.uint8).__dlpack__(), True)
    assert found.data_type() == "tensor(bool)"


def test_what_cannot_be_used_is_an_error_of_ours() -> None:
    used = X.__dlpack__()
    ort.OrtValue.from_dlpack(used)
    for given, says in ((used, "numpy cannot use"), (3, "a int has no __dlpack__"), (X.astype(">f4"), "numpy cannot")):
        with pytest.raises(LandbridgeError, match=says):
            ort.OrtValue.from_dlpack(given)
