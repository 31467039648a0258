"""Tensors exchanged with torch, both ways: one memory, no copy, nothing said that is not so."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import landbridge as lb
from landbridge.errors import StorageInUseError, ZeroCopyError
from tests.selection.installed import package

torch = package("torch", "peers")

DTYPES = ["bool", "int8", "int64", "uint8", "uint16", "float16", "float32", "float64", "bfloat16"]
FP8 = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"]


@pytest.mark.parametrize("dtype", [*DTYPES, *FP8])
def test_torch_to_landbridge(dtype: str) -> None:
    theirs = torch.arange(12).reshape(3, 4).to(getattr(torch, dtype))
    with lb.no_copies():
        ours = lb.from_dlpack(theirs, copy=False)
    assert (ours.dtype, ours.shape, ours.strides) == (dtype, (3, 4), (4, 1))
    assert ours.data_address == theirs.data_ptr()
    np.testing.assert_array_equal(
        np.asarray(ours).astype(np.float32), theirs.to(torch.float32).numpy() if dtype != "bool" else theirs.numpy()
    )
    theirs.zero_()
    assert not np.asarray(ours).astype(np.float32).any()


@pytest.mark.parametrize("dtype", [*DTYPES, *FP8])
def test_landbridge_to_torch(dtype: str) -> None:
    ours = lb.empty((3, 4), dtype=dtype)
    np.asarray(ours)[:] = np.ones((3, 4))
    for _ in range(2):  # the first export and the repeated one take different paths
        theirs = torch.from_dlpack(ours)
        assert (str(theirs.dtype), tuple(theirs.shape)) == (f"torch.{dtype}", (3, 4))
        assert theirs.data_ptr() == ours.data_address
    theirs.zero_()
    assert not np.asarray(ours).astype(np.float32).any()


def test_strides_and_empty() -> None:
    theirs = torch.arange(24.0).reshape(4, 6).t()[::2]
    ours = lb.from_dlpack(theirs)
    assert (ours.shape, ours.strides) == ((3, 4), (2, 6))
    np.testing.assert_array_equal(np.asarray(ours), theirs.numpy())
    back = torch.from_dlpack(ours)
    assert (back.stride(), back.data_ptr()) == (theirs.stride(), theirs.data_ptr())
    assert lb.from_dlpack(torch.empty(2, 0, 3)).shape == (2, 0, 3)
    assert tuple(torch.from_dlpack(lb.empty((2, 0, 3), dtype="float32")).shape) == (2, 0, 3)
    assert np.asarray(lb.from_dlpack(torch.tensor(5.0))) == 5


def test_each_keeps_the_memory() -> None:
    theirs = torch.arange(6.0)
    ours = lb.from_dlpack(theirs)
    view = np.asarray(ours)[2:]
    del theirs, ours
    gc.collect()
    assert view.tolist() == [2, 3, 4, 5]
    tensor = lb.empty(1 << 16, dtype="float32")
    storage = tensor.storage
    retained = torch.from_dlpack(tensor).reshape(256, 256)[3]
    del tensor
    retained.fill_(2)
    with pytest.raises(StorageInUseError, match="DLPack capsule"):
        storage.free()
    del retained
    storage.free()


def test_grad_is_their_error() -> None:
    with pytest.raises(ZeroCopyError, match="Tensor refused to export its memory"):
        lb.from_dlpack(torch.ones(3, requires_grad=True))


def test_copy_arguments() -> None:
    theirs = torch.arange(4.0)
    with lb.ledger() as moves:
        copied = lb.from_dlpack(theirs, copy=True)
    assert copied.data_address != theirs.data_ptr()
    assert moves.total_bytes == 16
    ours = lb.asarray(np.arange(4.0))
    assert torch.from_dlpack(ours, copy=True).data_ptr() != ours.data_address
    assert torch.from_dlpack(ours, device="cpu").data_ptr() == ours.data_address
    assert lb.from_dlpack(theirs, device="cpu").data_address == theirs.data_ptr()


def test_a_packed_function_takes_both() -> None:
    import tvm_ffi

    seen: list[int] = []
    function = tvm_ffi.convert(lambda a, b: seen.extend(lb.from_dlpack(t).data_address for t in (a, b)))
    theirs, ours = torch.arange(4.0), lb.empty(4, dtype="float32")
    function(theirs, ours)
    assert seen == [theirs.data_ptr(), ours.data_address]
