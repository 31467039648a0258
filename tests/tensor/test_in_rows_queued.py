"""Rows of a device that queues: copies of many rows, as late as legal, in any order that is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

import landbridge as lb
from landbridge.device import registry
from landbridge.device.api import NdSpace, Space
from landbridge.memory_kind import MemoryKind
from landbridge.shapes.physical import row_bytes
from landbridge.tensor.copy import copy_tensor
from landbridge.testing.sim_lazy import SimLazyDeviceAPI


class LazyRows(SimLazyDeviceAPI):
    """sim:lazy with a scope ``rows``: each row is a block of its own, with all that watches one."""

    def memory_kinds(self, index: int) -> Mapping[str, MemoryKind]:
        kinds = super().memory_kinds(index)
        rows = replace(kinds["global"], scope="rows", ndim=2, offset_alignment=1, allocators=("naive",))
        return {**kinds, "rows": rows}

    def alloc_data_space_nd(
        self, index: int, physical_shape: Sequence[int], dtype: str, scope: str, alignment: int
    ) -> NdSpace:
        nbytes = row_bytes(physical_shape, dtype)
        spaces = [self.alloc_data_space(index, nbytes, alignment, "global", None) for _ in range(physical_shape[0])]
        rows = tuple(space.handle for space in spaces)
        return NdSpace(spaces[0].device, scope, rows[0], tuple(physical_shape), nbytes, rows=rows)

    def free_data_space(self, space: Space) -> None:
        if isinstance(space, NdSpace):
            for row in range(space.physical_shape[0]):
                super().free_data_space(space.row(row).space)
        else:
            super().free_data_space(space)


@pytest.fixture(params=range(6))
def api(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[LazyRows]:
    registry.device("sim:lazy")
    made = LazyRows(request.param)
    monkeypatch.setitem(registry._plugins._known, "sim:lazy", made)
    monkeypatch.setattr(registry, "_devices", {})
    yield made
    for index in range(made.count()):
        made.close(index)
    made.check_freed_blocks()
    assert not made.violations


def rows(array: np.ndarray, separator: int = 1, device: str = "sim:lazy") -> lb.Tensor:
    return lb.asarray(array).to_device(device, scope="rows", axis_separators=(separator,))


def test_a_chain_of_copies(api: LazyRows) -> None:
    values = np.random.default_rng(api.seed).random((7, 3, 5), np.float32)
    tensor = rows(values)
    for separator in (2, 0, 3, 1):
        tensor = tensor.to_device("sim:lazy", scope="rows", axis_separators=(separator,))
    np.testing.assert_array_equal(np.asarray(tensor.to_device("cpu")), values)


def test_the_source_may_change_at_once(api: LazyRows) -> None:
    values = np.arange(40, dtype=np.float32).reshape(8, 5)
    tensor = rows(values)
    values[:] = -1
    np.testing.assert_array_equal(np.asarray(tensor.to_device("cpu")), np.arange(40).reshape(8, 5))


def test_a_copy_that_fails_half_way(api: LazyRows) -> None:
    """Rows that were queued before are done all the same, and nothing is freed before."""
    first = rows(np.ones((8, 5), np.float32))
    second = lb.empty((8, 5), dtype="float32", device="sim:lazy", scope="rows")
    left = [4]
    copy = api.copy_data_from_to

    def fails(*request: object) -> object:
        left[0] -= 1
        if left[0] < 0:
            raise RuntimeError("no more")
        return copy(*request)  # type: ignore[arg-type]

    api.copy_data_from_to = fails  # type: ignore[method-assign,assignment]
    with pytest.raises(lb.DeviceError, match="RuntimeError: no more"):
        copy_tensor(second, first, cause="test")
    del api.copy_data_from_to
    first.storage.free()
    assert (np.asarray(second.to_device("cpu"))[:4] == 1).all()


def test_rows_are_freed_after_their_last_use(api: LazyRows) -> None:
    values = np.arange(40, dtype=np.float32).reshape(8, 5)
    first = rows(values)
    second = first.to_device("sim:lazy", scope="rows", axis_separators=(2,))
    first.storage.free()
    flat = second.to_device("sim:lazy", scope="global")
    del first, second
    np.testing.assert_array_equal(np.asarray(flat.to_device("cpu")), values)


def test_between_two_devices(api: LazyRows) -> None:
    values = np.arange(40, dtype=np.float32).reshape(8, 5)
    near = rows(values)
    far = near.to_device("sim:lazy:1", scope="rows", axis_separators=(1,))
    del near
    np.testing.assert_array_equal(np.asarray(far.to_device("cpu")), values)
    scratch = far.to_device("sim:scratch", scope="global.vtcm")
    np.testing.assert_array_equal(np.asarray(scratch.to_device("cpu")), values)
    image = rows(values.reshape(2, 5, 4)).to_device("sim:scratch", scope="global.texture")
    np.testing.assert_array_equal(np.asarray(image.to_device("cpu")), values.reshape(2, 5, 4))
