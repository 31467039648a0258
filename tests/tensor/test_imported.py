"""Tensors of the host that a device uses in place."""

from __future__ import annotations

import numpy as np
import pytest

import landbridge as lb
from landbridge.errors import StorageInUseError
from landbridge.memory.borrowed import host_device
from landbridge.tensor.imported import import_tensor
from tests.memory.import_count import imported_ranges


@pytest.mark.parametrize("exported", [False, True])
def test_imported_bytes_are_in_use(exported: bool) -> None:
    here = host_device()
    tensor = lb.empty((4096,), dtype="uint8")
    if exported:
        np.asarray(tensor)[:] = 1  # the array that is kept for the next export is not who owns the bytes
    before = imported_ranges(here)
    imported = import_tensor(tensor, here)
    assert imported_ranges(here) == before + 1
    with pytest.raises(StorageInUseError, match=r"in use by an import by cpu:0"):
        tensor.storage.free()
    assert imported_ranges(here) == before + 1
    del imported
    tensor.storage.free()
    assert imported_ranges(here) == before


def test_strides_and_offset_stay() -> None:
    whole = np.arange(24, dtype=np.int16).reshape(4, 6)
    imported = import_tensor(lb.Tensor.from_numpy_view(whole[1:, ::-2]), host_device())
    assert imported.strides == (6, -2)
    np.testing.assert_array_equal(np.asarray(imported), whole[1:, ::-2])
