"""Copies from every flat scope of every built-in device to every other: the bytes arrive, and say how they went."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest

import landbridge as lb
from landbridge.device import registry
from landbridge.errors import InputError

DEVICES = ("cpu", "opencl", "vulkan", "sim:lazy", "sim:scratch")
VALUES = np.arange(1024, dtype=np.float32)


@cache
def scopes() -> list[tuple[str, str]]:
    return [
        (str(device), kind.scope)
        for name in DEVICES
        for device in registry.devices(name)[:1]
        for kind in device.memory_kinds.values()
        if kind.ndim == 1
    ]


def filled(device: str, scope: str, values: np.ndarray) -> lb.Tensor:
    tensor = lb.empty(values.shape, dtype=str(values.dtype), device=device, scope=scope)
    tensor.copy_from(values)
    return tensor


def content(tensor: lb.Tensor) -> np.ndarray:
    back = np.empty(tensor.shape, tensor.dtype)
    lb.asarray(back).copy_from(tensor)
    return back


@pytest.mark.parametrize("number", range(len(DEVICES)))
def test_every_pair_of_scopes(number: int) -> None:
    sources = [pair for pair in scopes() if pair[0].rpartition(":")[0] == DEVICES[number]]
    for (source, scope), (target, other) in product(sources, scopes()):
        tensor = filled(source, scope, VALUES)
        there = lb.empty(VALUES.shape, dtype="float32", device=target, scope=other)
        with lb.ledger() as moves:
            there.copy_from(tensor)
        np.testing.assert_array_equal(content(there), VALUES, f"{source} {scope} to {target} {other}")
        assert {move.cause.partition(":")[0] for move in moves} == {"copy_from"}
        assert moves.total_bytes in (VALUES.nbytes, 2 * VALUES.nbytes)  # the latter where it is staged


@pytest.mark.parametrize("name", ["opencl", "vulkan", "sim:scratch"])
def test_arrays_with_gaps_and_images(name: str) -> None:
    """Devices copy whole pixels of an image; what is not dense comes to them by way of memory that is."""
    if not registry.devices(name):
        pytest.skip(f"no device {name}")
    values = VALUES[:120].reshape(3, 5, 8)[..., ::2]
    image = lb.empty((3, 5, 4), dtype="float32", device=name, scope="global.texture", axis_separators=[1, 2])
    image.copy_from(values)
    np.testing.assert_array_equal(np.asarray(image.to_device("cpu")), values)
    back = np.zeros((3, 5, 8), np.float32)
    lb.asarray(back[..., 1::2], copy=False).copy_from(image)
    np.testing.assert_array_equal(back[..., 1::2], values)
    assert not back[..., ::2].any()


@pytest.mark.parametrize("device", ["cpu", "sim:lazy"])
def test_parts_of_what_exists(device: str) -> None:
    whole = filled(device, "global", VALUES.reshape(32, 32))
    part = lb.Tensor(whole.storage, "float32", (4, 16), (32, 2), byte_offset=4 * 4 * 32)
    part.copy_from(-VALUES[:64].reshape(4, 16))
    wanted = VALUES.reshape(32, 32).copy()
    wanted[4:8, ::2] = -VALUES[:64].reshape(4, 16)
    np.testing.assert_array_equal(content(whole), wanted)


def test_refusals_copy_nothing() -> None:
    array = np.zeros(8, np.float32)
    tensor = lb.asarray(array)
    frozen = np.zeros(8, np.float32)
    frozen.flags.writeable = False
    for target, source in (
        (tensor, np.ones(9, np.float32)),
        (tensor, np.ones(8, np.int32)),
        (tensor, [1.0] * 8),
        (lb.asarray(frozen), np.ones(8, np.float32)),
    ):
        with pytest.raises(InputError):
            target.copy_from(source)  # type: ignore[arg-type]
    assert not array.any()
