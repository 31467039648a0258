"""Tensors in scratchpads of rows and in textures: copies of every byte, to and from everything, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import landbridge as lb
from landbridge.device import registry
from landbridge.device.api import Device, NdSpace, Space
from landbridge.errors import (
    DeviceError,
    HostViewError,
    InputError,
    OutOfMemoryError,
    UnsupportedError,
    UseAfterFreeError,
    ZeroCopyError,
)
from landbridge.memory.allocation import allocate
from landbridge.memory.allocators.base import NdSize
from landbridge.memory.holders import largest_holders
from landbridge.memory_kind import MemoryKind
from landbridge.tensor import Tensor
from landbridge.tensor.copy import copy_tensor
from landbridge.tensor.in_rows import row_table, tensor_in_rows
from landbridge.testing.sim_scratch import SimScratchDeviceAPI

TABLE, PITCHED, TEXTURE = "global.vtcm", "global.pitched", "global.texture"


@pytest.fixture(autouse=True)
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimScratchDeviceAPI]:
    """A device of the test's own, whose guards hold at the end."""
    registry.device("sim:scratch")  # gives the name its DLPack type
    made = SimScratchDeviceAPI(seed=7)
    monkeypatch.setitem(registry._plugins._known, made.name, made)
    monkeypatch.setattr(registry, "_devices", {})
    yield made
    made.check_guards()
    assert not made.violations


@pytest.mark.parametrize("scope", [TABLE, PITCHED])
def test_a_row_there_is_not_is_refused(scope: str) -> None:
    space = lb.empty((4, 5), dtype="float32", device="sim:scratch", scope=scope).storage.live_region.space
    assert isinstance(space, NdSpace)
    assert space.row(3) != space.row(0)
    for number in (-1, 4):
        with pytest.raises(InputError, match=f"row {number} of 4; legal: 0 to 3"):
            space.row(number)


def values(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


def there(array: np.ndarray, scope: str = TABLE, separators: tuple[int, ...] | None = None) -> Tensor:
    return lb.asarray(array).to_device("sim:scratch", scope=scope, axis_separators=separators)


def back(tensor: Tensor) -> np.ndarray:
    return np.asarray(tensor.to_device("cpu"))


@pytest.mark.parametrize("scope", [TABLE, PITCHED])
@pytest.mark.parametrize("separator", range(5))
def test_there_and_back(scope: str, separator: int) -> None:
    array = values(2, 3, 4, 5)
    with lb.ledger() as moves:
        tensor = there(array, scope, (separator,))
        result = back(tensor)
    np.testing.assert_array_equal(result, array)
    assert [move.nbytes for move in moves] == [480, 480]
    assert (tensor.scope, tensor.axis_separators) == (scope, (separator,))


@settings(max_examples=40)
@given(
    shape=st.lists(st.integers(0, 5), min_size=1, max_size=4),
    ends=st.tuples(st.sampled_from([TABLE, PITCHED]), st.sampled_from([TABLE, PITCHED])),
    dtype=st.sampled_from(["uint8", "float16", "int64"]),
    data=st.data(),
)
def test_between_two_spaces(shape: list[int], ends: tuple[str, str], dtype: str, data: st.DataObject) -> None:
    array = values(*shape, dtype=dtype)
    first, second = (data.draw(st.integers(0, len(shape))) for _ in ends)
    source = there(array, ends[0], (first,))
    with lb.ledger() as moves:
        target = source.to_device("sim:scratch", scope=ends[1], axis_separators=(second,))
    np.testing.assert_array_equal(back(target), array)
    assert moves.total_bytes == (0 if target is source else array.nbytes)


def test_flat_scopes_too() -> None:
    array = values(6, 10)
    flat = there(array, "global.scratch")
    rows = flat.to_device("sim:scratch", scope=TABLE)
    np.testing.assert_array_equal(back(rows.to_device("sim:scratch", scope="global")), array)


def test_to_another_device() -> None:
    array = values(6, 10)
    lazy = lb.asarray(array, device="sim:lazy", copy=True)
    rows = lazy.to_device("sim:scratch", scope=TABLE)
    np.testing.assert_array_equal(back(rows), array)
    np.testing.assert_array_equal(back(rows.to_device("sim:lazy")), array)


def test_images() -> None:
    array = values(2, 3, 5, 4)
    image = there(array, TEXTURE, (2, 3))
    assert image.storage.live_region.space.physical_shape == (6, 5, 4)
    np.testing.assert_array_equal(back(image), array)
    np.testing.assert_array_equal(back(image.to_device("sim:scratch", scope=PITCHED, axis_separators=(2,))), array)


def test_an_axis_for_each_dimension_when_none_is_named() -> None:
    assert lb.empty((6, 10), dtype="float32", device="sim:scratch", scope=TABLE).axis_separators == (1,)
    with pytest.raises(InputError, match=r"has 2 dimensions and a tensor of shape .* has 3; say which axes"):
        lb.empty((6, 10, 2), dtype="float32", device="sim:scratch", scope=TABLE)
    with pytest.raises(InputError, match="make 2 dimensions, scope 'global' has 1"):
        lb.empty((6, 10), dtype="float32", device="sim:scratch", axis_separators=(1,))


def test_no_copies_into_rows() -> None:
    with lb.no_copies(), pytest.raises(lb.CopyForbiddenError, match="240 bytes"):
        there(values(6, 10))


def test_capacity(api: SimScratchDeviceAPI) -> None:
    retained = lb.empty((512, 64), dtype="float32", device="sim:scratch", scope=TABLE)
    with pytest.raises(OutOfMemoryError, match=r"262144 bytes in rows, .*'global\.vtcm', 131072 of 262144"):
        lb.empty((1024, 64), dtype="float32", device="sim:scratch", scope=TABLE)
    del retained
    lb.empty((1024, 64), dtype="float32", device="sim:scratch", scope=TABLE)


def test_who_holds_rows() -> None:
    rows = there(values(6, 10))
    assert largest_holders(rows.device, TABLE) == (
        "240 bytes are held by 1 storages, the largest: "
        "240 bytes by Tensor(float32[6, 10], sim:scratch:0, scope='global.vtcm')"
    )


def test_a_table_has_no_view() -> None:
    rows = there(values(6, 10))
    with pytest.raises(
        HostViewError, match=r"rows of scope 'global\.vtcm' .* have separate addresses.*to_device\('cpu'\)"
    ):
        rows.host_view("r").__enter__()
    with pytest.raises(HostViewError, match="have separate addresses"):
        np.asarray(rows)
    with pytest.raises(ZeroCopyError, match="no address"):
        rows.__dlpack__()
    with pytest.raises(ZeroCopyError, match="lies in rows"):
        rows.view((60,))


def test_pitched_rows_have_a_strided_view() -> None:
    rows = there(values(2, 3, 10), PITCHED, (2,))
    with lb.no_copies(), rows.host_view("rw") as view:
        assert view.strides == (768, 256, 4)
        view += 1
    np.testing.assert_array_equal(np.asarray(rows), values(2, 3, 10) + 1)
    with pytest.raises(HostViewError, match="would discard the 1080 bytes between"):
        rows.host_view("w").__enter__()


def test_textures_are_hidden() -> None:
    image = there(values(6, 5, 4), TEXTURE)
    with pytest.raises(HostViewError, match="the host has access 'none'"):
        image.host_view("r").__enter__()
    with pytest.raises(HostViewError, match="cannot address rows"):
        row_table(image)


def test_row_tables(api: SimScratchDeviceAPI) -> None:
    rows = there(values(2, 3, 10), TABLE, (2,))
    space = rows.storage.live_region.space
    assert row_table(rows) == tuple(api.host_pointer(space.row(row).space) for row in range(6))
    pitched = there(values(2, 3, 10), PITCHED, (2,))
    assert row_table(pitched) == tuple(pitched.data_address + 256 * row for row in range(6))
    with pytest.raises(InputError, match="has no rows"):
        row_table(lb.asarray(values(6, 10)))


@pytest.mark.parametrize("scope", [TABLE, PITCHED])
def test_tensors_share_the_rows_of_a_storage(scope: str) -> None:
    storage = allocate(registry.device("sim:scratch"), NdSize((8, 64), "uint8"), scope=scope)
    low = tensor_in_rows(storage, "float32", (3, 4), (1,))
    side = tensor_in_rows(storage, "float32", (3, 4), (1,), byte=16)
    high = tensor_in_rows(storage, "int16", (5, 2, 3), (1,), row=3)
    arrays = [values(3, 4), values(3, 4) + 50, values(5, 2, 3, dtype="int16")]
    for tensor, array in zip((low, side, high), arrays, strict=True):
        copy_tensor(tensor, lb.asarray(array), cause="test")
    for tensor, array in zip((low, side, high), arrays, strict=True):
        np.testing.assert_array_equal(back(tensor), array)
    assert row_table(side)[2] == row_table(low)[2] + 16


@settings(max_examples=40)
@given(scope=st.sampled_from([TABLE, PITCHED]), data=st.data())
def test_a_storage_of_rows_is_a_table_of_bytes(scope: str, data: st.DataObject) -> None:
    """Whatever is written through tensors of any shape, the model is an array of bytes, a line for each row."""
    lines, width = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 5)) * 8
    storage = allocate(registry.device("sim:scratch"), NdSize((lines, width), "uint8"), scope=scope)
    model = np.zeros((lines, width), np.uint8)
    whole = tensor_in_rows(storage, "uint8", (lines, width), (1,))
    copy_tensor(whole, lb.asarray(model), cause="test")
    for number in range(data.draw(st.integers(1, 5))):
        dtype = np.dtype(data.draw(st.sampled_from(["uint8", "int16", "float32", "int64"])))
        row, byte = data.draw(st.integers(0, lines - 1)), data.draw(st.integers(0, width // dtype.itemsize - 1))
        count = data.draw(st.integers(1, lines - row))
        columns = data.draw(st.integers(1, width // dtype.itemsize - byte))
        shape, separator = data.draw(st.sampled_from([((count, columns), 1), ((1, count, columns, 1), 2)]))
        array = (np.arange(count * columns) + 7 * number + 1).astype(dtype).reshape(shape)
        tensor = tensor_in_rows(storage, dtype.name, shape, (separator,), row, byte * dtype.itemsize)
        copy_tensor(tensor, lb.asarray(array), cause="test")
        start = byte * dtype.itemsize
        model[row : row + count, start : start + columns * dtype.itemsize] = array.reshape(count, columns).view(
            np.uint8
        )
        np.testing.assert_array_equal(back(tensor), array)
        np.testing.assert_array_equal(back(whole), model)


@pytest.mark.parametrize(
    ("shape", "separators", "row", "byte", "subject"),
    [
        ((9, 4), (1,), 0, 0, "reaches byte 16 of row 8; the space has 8 rows of 64 bytes"),
        ((6, 4), (1,), 3, 0, "of row 8"),
        ((3, 17), (1,), 0, 0, "reaches byte 68 of row 2"),
        ((3, 4), (1,), 0, 52, "reaches byte 68"),
        ((3, 4), (1,), 0, 2, "cannot start at byte 2 of its rows; give a multiple of 4"),
        ((3, 4), (1,), -1, 0, "reaches byte 16 of row 1"),
        ((3, 4), (1, 2), 0, 0, "give one separator less"),
    ],
)
def test_tensors_stay_in_their_rows(
    shape: tuple[int, ...], separators: tuple[int, ...], row: int, byte: int, subject: str
) -> None:
    storage = allocate(registry.device("sim:scratch"), NdSize((8, 64), "uint8"), scope=TABLE)
    with pytest.raises(InputError, match=subject):
        tensor_in_rows(storage, "float32", shape, separators, row, byte)


def test_strides_of_another_kind_are_refused() -> None:
    storage = allocate(registry.device("sim:scratch"), NdSize((8, 64), "uint8"), scope=PITCHED)
    for strides in ((20, 1), (-64, 1)):
        with pytest.raises(InputError, match="do not lead from row to row"):
            Tensor(storage, "float32", (3, 4), strides, axis_separators=(1,))
    with pytest.raises(InputError, match="the scope has 2 dimensions"):
        Tensor(storage, "float32", (3, 4))


def test_rows_in_flat_memory_are_refused() -> None:
    storage = lb.empty((64,), dtype="uint8", device="sim:scratch").storage
    with pytest.raises(InputError, match="is flat and has no rows"):
        tensor_in_rows(storage, "float32", (3, 4), (1,))


def test_use_after_free() -> None:
    rows = there(values(6, 10))
    rows.storage.free()
    with pytest.raises(UseAfterFreeError):
        back(rows)
    with pytest.raises(UseAfterFreeError):
        row_table(rows)


def test_to_the_same_rows_is_no_copy() -> None:
    rows = there(values(6, 10))
    with lb.no_copies():
        assert rows.to_device("sim:scratch") is rows
        assert rows.to_device("sim:scratch", scope=TABLE) is rows
    moved = rows.to_device("sim:scratch", scope=TABLE, axis_separators=(0,))
    assert moved.storage.live_region.space.physical_shape == (1, 60)
    np.testing.assert_array_equal(back(moved), values(6, 10))


class _FlatRows(SimScratchDeviceAPI):
    """Returns something else than an NdSpace of the shape asked for."""

    name = "sim:bad"
    wrong = 0

    def alloc_data_space_nd(self, index, physical_shape, dtype, scope, alignment):  # type: ignore[no-untyped-def]
        good = super().alloc_data_space_nd(index, physical_shape, dtype, scope, alignment)
        shape, rows = good.physical_shape, good.rows
        return (
            Space(good.device, good.scope, good.handle),
            NdSpace(good.device, good.scope, good.handle, shape, 40, rows=rows[:-1]),
            NdSpace(good.device, good.scope, good.handle, shape, 39, rows=rows),
            NdSpace(good.device, good.scope, good.handle, shape, 40, row_pitch=42),
            NdSpace(good.device, good.scope, good.handle, shape, 40, row_pitch=36),
            NdSpace(good.device, good.scope, good.handle, shape, 40),
            NdSpace(good.device, good.scope, good.handle, (6, 9), 40, rows=rows),
        )[self.wrong]


@pytest.mark.parametrize("wrong", range(7))
def test_a_device_that_returns_other_rows(wrong: int) -> None:
    api = _FlatRows()
    api.wrong = wrong
    with pytest.raises(DeviceError, match=r"requested float32\[6, 10\], alloc_data_space_nd returned"):
        lb.empty((6, 10), dtype="float32", device=Device(api), scope=TABLE)
    assert api.used_bytes(TABLE) == 0, "the space was not given back"


def test_a_device_without_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = Device(registry.device("cpu").api)
    cpu._kinds = {"rows": MemoryKind("rows", "none", True, ndim=2, allocators=("naive",))}
    with pytest.raises(UnsupportedError, match="alloc_data_space_nd"):
        lb.empty((6, 10), dtype="float32", device=cpu, scope="rows")
