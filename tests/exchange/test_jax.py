"""Tensors exchanged with JAX, both ways."""

from __future__ import annotations

import numpy as np
import pytest

import landbridge as lb
from landbridge.errors import StorageInUseError
from tests.selection.installed import package

jax = package("jax", "peers")
jnp = package("jax.numpy", "peers")

DTYPES = ["bool", "int8", "int32", "uint8", "uint16", "float16", "float32", "bfloat16"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_jax_to_landbridge(dtype: str) -> None:
    theirs = jnp.arange(12).reshape(3, 4).astype(dtype)
    with lb.no_copies():
        ours = lb.from_dlpack(theirs, copy=False)
    assert (ours.dtype, ours.shape) == (dtype, (3, 4))
    assert ours.data_address == theirs.unsafe_buffer_pointer()
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


@pytest.mark.parametrize("dtype", DTYPES)
def test_landbridge_to_jax(dtype: str) -> None:
    ours = lb.empty((3, 4), dtype=dtype, alignment=64)
    np.asarray(ours)[:] = np.ones((3, 4))
    for _ in range(2):
        theirs = jax.dlpack.from_dlpack(ours)
        assert theirs.dtype == dtype
        assert theirs.unsafe_buffer_pointer() == ours.data_address
    np.testing.assert_array_equal(np.asarray(theirs).astype(np.float32), np.ones((3, 4)))


def test_jax_keeps_our_memory() -> None:
    tensor = lb.empty(1 << 12, dtype="float32")
    np.asarray(tensor)[:] = 3
    storage = tensor.storage
    theirs = jax.dlpack.from_dlpack(tensor)
    del tensor
    with pytest.raises(StorageInUseError, match="DLPack capsule"):
        storage.free()
    assert float(theirs.sum()) == 3 * (1 << 12)


def test_read_only_memory_is_refused() -> None:
    frozen = lb.asarray(np.frombuffer(bytes(16), np.float32))
    with pytest.raises(BufferError, match="read-only"):  # JAX asks for the unversioned form, which cannot say so
        jax.dlpack.from_dlpack(frozen)


def test_empty() -> None:
    assert lb.from_dlpack(jnp.zeros((2, 0))).shape == (2, 0)
    assert jax.dlpack.from_dlpack(lb.empty((2, 0), dtype="float32")).shape == (2, 0)
