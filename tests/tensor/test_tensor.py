"""Tensor and the functions that make one: what is a view, what is a copy, and what is refused."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import landbridge as lb
from landbridge.device.api import Device, Space
from landbridge.device.import_source import DmaBuf
from landbridge.device.stream import set_device
from landbridge.errors import (
    HostAccessError,
    HostViewError,
    InputError,
    StorageInUseError,
    UseAfterFreeError,
    ZeroCopyError,
)
from landbridge.memory_kind import MemoryKind
from landbridge.shapes.strides import same_layout
from landbridge.tensor import Tensor
from landbridge.tensor.copy import copy_tensor
from tests.device.queueing_device import QueueingDeviceAPI


@pytest.fixture
def npu() -> Device:
    return Device(QueueingDeviceAPI(), 0)


class TestEmpty:
    def test_facts(self) -> None:
        t = lb.empty((2, 3, 4), dtype="float32", alignment=4096)
        assert (t.shape, t.dtype, t.strides, t.ndim, t.size, t.nbytes) == ((2, 3, 4), "float32", (12, 4, 1), 3, 24, 96)
        assert (str(t.device), t.scope, t.readonly, t.is_contiguous) == ("cpu:0", "global", False, True)
        assert t.data_address % 4096 == 0
        assert repr(t) == "Tensor(float32[2, 3, 4], cpu:0)"

    @pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), 5, (np.int64(2), 1)])
    def test_shapes(self, shape: Any) -> None:
        assert np.asarray(lb.empty(shape, dtype=np.int8)).shape == np.empty(shape).shape

    @pytest.mark.parametrize("dtype", ["bool", "uint64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2fnuz"])
    def test_dtypes(self, dtype: str) -> None:
        a = np.asarray(lb.empty((2, 5), dtype=dtype))
        a[:] = 1
        assert a.dtype.name == dtype
        assert (a == 1).all()
        assert lb.asarray(a).dtype == dtype

    def test_device(self, npu: Device) -> None:
        t = lb.empty(4, dtype="int8", device=npu, scope="shared", host_access="read_write")
        assert repr(t) == "Tensor(int8[4], queueing:0, scope='shared')"
        with set_device(npu):
            assert lb.empty(1, dtype="int8").device == npu

    @pytest.mark.parametrize(
        ("request_", "message"),
        [
            ({"shape": (2, -1)}, "negative extent"),
            ({"shape": (1.5,)}, "sequence of integers"),
            ({"shape": (1 << 32, 1 << 31)}, "more bytes than any device"),
            ({"shape": (0, 1 << 62, 4)}, "more bytes than any device"),
            ({"dtype": "float33"}, "unknown dtype 'float33'"),
            ({"alignment": 48}, "alignment 48 is not legal; give a power of two"),
            ({"alignment": 64.0}, r"alignment 64\.0 is not legal"),
            ({"scope": "vtcm"}, "no memory scope 'vtcm'; legal: global"),
            ({"host_access": "wr"}, "host_access 'wr' is unknown; legal: r, w, rw, none"),
        ],
    )
    def test_refusals(self, request_: dict[str, Any], message: str) -> None:
        with pytest.raises(InputError, match=message):
            lb.empty(**{"shape": 1, "dtype": "int8", **request_})

    def test_refusals_of_a_scope(self, npu: Device) -> None:
        with pytest.raises(InputError, match="one allocation of scope 'shared' of queueing:0 has at most 1048576"):
            lb.empty((1 << 20) + 1, dtype="int8", device=npu, scope="shared")
        with pytest.raises(InputError, match="host_access 'read' requested of scope 'global' of queueing:0"):
            lb.empty(1, dtype="int8", device=npu, scope="global", host_access="read")

    def test_host_access_chooses_a_scope_that_gives_it(self, npu: Device) -> None:
        for requested in ("r", "w", "rw", "read"):
            t = lb.empty(4, dtype="int8", device=npu, host_access=requested)
            assert t.storage.kind.scope == "shared"
        assert lb.empty(4, dtype="int8", device=npu, host_access="none").storage.kind.scope == "global"


class TestFromNumpyView:
    @given(hnp.arrays(np.int32, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)), st.data())
    def test_any_basic_slice(self, base: np.ndarray[Any, Any], data: st.DataObject) -> None:
        a = base[data.draw(hnp.basic_indices(base.shape, allow_ellipsis=False))] if base.ndim else base
        a = np.asarray(a) if isinstance(a, np.ndarray) else base
        t = Tensor.from_numpy_view(a)
        assert (t.shape, t.size, t.nbytes, t.data_address) == (a.shape, a.size, a.nbytes, a.ctypes.data)
        assert t.is_contiguous == a.flags.c_contiguous
        assert same_layout(a.shape, [s * 4 for s in t.strides], a.strides)  # one element or none has no strides
        assert t.storage.address + t.byte_offset == a.ctypes.data
        start, stop = t.byte_range
        assert 0 <= start <= stop <= t.storage.nbytes
        again = Tensor(t.storage, t.dtype, t.shape, t.strides, t.byte_offset)  # the general form agrees
        np.testing.assert_array_equal(np.asarray(again), a)
        assert np.asarray(t).base is not None or a.size == 0

    def test_later_writes_are_seen_and_the_shape_stays(self) -> None:
        a = np.zeros((2, 3))
        t = Tensor.from_numpy_view(a)
        a[1, 2] = 9
        a.shape = (6,)
        assert t.shape == (2, 3)
        assert np.asarray(t)[1, 2] == 9
        np.asarray(t)[0, 0] = 4
        assert a[0] == 4

    def test_readonly(self) -> None:
        t = Tensor.from_numpy_view(np.frombuffer(b"1234", np.int8))
        assert t.readonly
        assert t.storage.readonly
        assert not np.asarray(t).flags.writeable

    def test_subclasses_become_plain(self) -> None:
        assert type(np.asarray(Tensor.from_numpy_view(np.arange(3).view(np.recarray)))) is np.ndarray

    @pytest.mark.parametrize(
        ("array", "error", "message"),
        [
            (np.zeros(2, ">f4"), ZeroCopyError, "another byte order"),
            (np.zeros(9, np.int8)[1:].view(np.int32), ZeroCopyError, "not .* at multiples of their 4 bytes"),
            (np.zeros(2, [("a", "i4"), ("b", "i1")])["a"], ZeroCopyError, "at multiples"),
            (np.zeros(2, "U3"), InputError, "unknown dtype"),
            (np.zeros(2, object), InputError, "unknown dtype"),
        ],
    )
    def test_refusals(self, array: np.ndarray[Any, Any], error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            Tensor.from_numpy_view(array)


class TestAsarray:
    @pytest.mark.parametrize(
        "obj", [np.arange(6.0), bytearray(8), memoryview(bytes(8)), lb.empty(3, dtype="int8")], ids=type
    )
    @pytest.mark.parametrize("copy", [None, False])
    def test_views(self, obj: Any, copy: bool | None) -> None:
        with lb.no_copies():
            t = lb.asarray(obj, copy=copy)
        np.testing.assert_array_equal(np.asarray(t), np.asarray(obj))
        assert np.shares_memory(np.asarray(t), np.asarray(obj))

    def test_a_tensor_is_itself(self) -> None:
        t = lb.empty(3, dtype="int8")
        assert lb.asarray(t) is t

    @pytest.mark.parametrize("strides", [slice(None), slice(None, None, -2)])
    def test_copy_true(self, strides: slice) -> None:
        a = np.arange(6.0)[strides]
        with lb.ledger() as moves:
            t = lb.asarray(a, copy=True)
        assert moves.total_bytes == a.nbytes
        assert not np.shares_memory(np.asarray(t), a)
        assert t.is_contiguous
        np.testing.assert_array_equal(np.asarray(t), a)

    @pytest.mark.parametrize("obj", [[1.0, 2.0], 3, ((1, 2), (3, 4)), True])
    def test_python_values(self, obj: Any) -> None:
        t = lb.asarray(obj)
        np.testing.assert_array_equal(np.asarray(t), np.asarray(obj))
        with pytest.raises(ZeroCopyError, match="has no memory to view"):
            lb.asarray(obj, copy=False)

    def test_dtype(self, npu: Device) -> None:
        a = np.array([1.5, -2.0], np.float32)
        with lb.ledger() as moves:
            t = lb.asarray(a, dtype="bfloat16")
        assert t.dtype == "bfloat16"
        assert moves.total_bytes == 4
        assert np.asarray(t).tolist() == [1.5, -2.0]
        assert lb.asarray(a, dtype=np.float32, copy=False).data_address == a.ctypes.data
        with pytest.raises(ZeroCopyError, match="as float64 on cpu:0 needs a copy"):
            lb.asarray(a, dtype="float64", copy=False)
        there = lb.asarray(a, dtype=np.int32, device=npu)
        assert (there.dtype, there.device) == ("int32", npu)
        with pytest.raises(ZeroCopyError, match="on queueing:0 needs a copy"):
            lb.asarray(a, device=npu, copy=False)
        np.testing.assert_array_equal(np.asarray(there.to_device("cpu")), a.astype(np.int32))

    def test_objects_are_refused(self) -> None:
        with pytest.raises(InputError, match="unknown dtype"):
            lb.asarray([object()])

    def test_array_interface(self) -> None:
        class Frame:
            def __init__(self, pixels: np.ndarray[Any, Any]) -> None:
                self.__array_interface__ = pixels.__array_interface__

        pixels = np.arange(6, dtype=np.uint8)
        assert lb.asarray(Frame(pixels), copy=False).data_address == pixels.ctypes.data


class TestArrayProtocol:
    def test_view(self) -> None:
        t = lb.empty((2, 2), dtype="int32")
        with lb.no_copies():
            a = np.asarray(t)
            b = np.asarray(t, dtype=np.int32, copy=False)
        a[:] = 8
        assert b.tolist() == [[8, 8], [8, 8]]

    def test_copies_are_requested_and_entered(self) -> None:
        t = lb.asarray(np.arange(4, dtype=np.int32))
        with lb.ledger() as moves:
            assert np.array(t).tolist() == [0, 1, 2, 3]
            assert np.asarray(t, dtype=np.float64).dtype == np.float64
        assert [m.nbytes for m in moves] == [16, 32]
        with pytest.raises(ZeroCopyError, match="as float64 needs a copy"):
            np.asarray(t, dtype=np.float64, copy=False)

    def test_memory_the_host_cannot_see(self, npu: Device) -> None:
        for scope, way_out in (("global", "t.to_device"), ("shared", "host_view")):
            with pytest.raises(HostViewError, match=way_out):
                np.asarray(lb.empty(1, dtype="int8", device=npu, scope=scope))

    def test_the_array_is_the_callers(self) -> None:
        t = lb.asarray(np.arange(6))
        a = np.asarray(t)
        a.shape = (2, 3)
        assert t.shape == (6,)

    @pytest.mark.parametrize("make", [lambda: lb.empty(4, dtype="int8"), lambda: lb.asarray(np.zeros(4, np.int8))])
    def test_after_free(self, make: Callable[[], Tensor]) -> None:
        t = make()
        t.storage.free()
        for use in (lambda: np.asarray(t), lambda: t.data_address, lambda: t.host_view("r"), t.copy, t.__dlpack__):
            with pytest.raises(UseAfterFreeError):
                use()
        assert repr(t) == "Tensor(int8[4], freed)"


class TestDmaBuf:
    def test_import(self) -> None:
        class Importing(QueueingDeviceAPI):
            def import_memory(self, index: int, source: Any, access: str) -> Space:
                space = self.alloc_data_space(index, source.nbytes, 1, "shared", None)
                self.imported = source
                return space

            def release_import(self, space: Space) -> None:
                self.free_data_space(space)

        api = Importing()
        file = os.memfd_create("frame")
        os.truncate(file, 64 + 22)
        t = lb.tensor.from_dma_buf(file, (2, 3), "int16", device=Device(api, 0), offset=64, strides=(8, 1))
        assert api.imported == DmaBuf(file, 64, 22)
        assert (t.strides, t.scope, str(t.device)) == ((8, 1), "shared", "queueing:0")
        with t.host_view("rw") as a:
            a[:] = 1
        del t, a
        os.close(file)
        assert api.buffers == {}

    def test_refusals(self, npu: Device) -> None:
        with pytest.raises(ZeroCopyError, match="queueing:0 cannot use DmaBuf"):
            lb.tensor.from_dma_buf(7, (2, 3), "int16", device=npu)
        with pytest.raises(InputError, match="descriptor -1"):
            lb.tensor.from_dma_buf(-1, (2, 3), "int16", device="cpu")
        with pytest.raises(InputError, match="must be at least 0"):
            lb.tensor.from_dma_buf(7, (2, 3), "int16", device="cpu", offset=-1)


class TestView:
    def test_view(self) -> None:
        t = lb.asarray(np.arange(6))
        v = t.view((3, 2))
        assert v.data_address == t.data_address
        assert np.asarray(v).tolist() == [[0, 1], [2, 3], [4, 5]]
        with pytest.raises(InputError, match=r"has 6 elements, shape \(4,\) has 4"):
            t.view((4,))
        with pytest.raises(ZeroCopyError, match="another shape needs a copy"):
            lb.asarray(np.arange(6)[::2]).view((3, 1))
        assert lb.asarray(np.frombuffer(bytes(4), np.int8)).view((2, 2)).readonly

    def test_elements_outside_the_storage(self) -> None:
        storage = lb.empty(16, dtype="int8").storage
        for shape, strides, offset in [((17,), None, 0), ((4,), (5,), 1), ((4,), (-1,), 2), ((1,), None, -1)]:
            with pytest.raises(InputError, match="of a storage of 16"):
                Tensor(storage, "int8", shape, strides, offset)
        with pytest.raises(InputError, match="one for each dimension"):
            Tensor(storage, "int8", (2, 2), (1,))
        assert np.asarray(Tensor(storage, "int8", (4,), (-5,), 15)).strides == (-5,)


def test_float8_copy_keeps_bits() -> None:
    a = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn)
    t = lb.asarray(a, copy=True)
    assert np.asarray(t).tobytes() == a.tobytes()


class TestExportsAreKept:
    """What is exported again is the same, unless somebody changed or freed it."""

    def test_each_caller_has_an_array_of_his_own(self) -> None:
        t = lb.empty((2, 3), dtype="float32")
        first, second = np.asarray(t), np.asarray(t)
        first.shape = (6,)
        first.flags.writeable = False
        assert second.shape == np.asarray(t).shape == np.from_dlpack(t).shape == (2, 3)
        assert np.asarray(t).flags.writeable
        assert first.ctypes.data == second.ctypes.data == t.data_address

    def test_what_is_retained_holds_nothing_up(self) -> None:
        t = lb.empty(8, dtype="float32")
        for _ in range(3):
            np.from_dlpack(t)[:] = 1
            np.asarray(t)[:] = 2
        t.storage.free()
        for use in (np.asarray, np.from_dlpack, lb.from_dlpack, lambda t: t.__tvm_ffi_object__()):
            with pytest.raises(UseAfterFreeError, match="was freed"):
                use(t)

    def test_the_second_export_holds_the_bytes_too(self) -> None:
        t = lb.empty(8, dtype="float32")
        storage = t.storage
        np.from_dlpack(t)
        held = [np.from_dlpack(t)[1:]]
        for last in (False, True):
            with pytest.raises(StorageInUseError, match=r"DLPack capsule over float32\[8\]"):
                storage.free()
            if last:
                held.clear()
            else:
                held = [np.asarray(t)[::2].view(np.int32)]
        storage.free()

    def test_a_queued_write_is_waited_for(self, npu: Device) -> None:
        t = lb.empty(8, dtype="int8")
        np.asarray(t)[:] = 0
        there = lb.asarray(np.full(8, 7, np.int8), device=npu)
        for read in (np.asarray, np.from_dlpack, lambda t: np.from_dlpack(t.__tvm_ffi_object__())):
            read(t)
            copy_tensor(t, there, cause="test")
            assert t.storage.has_queued
            assert read(t).tolist() == [7] * 8

    def test_nothing_goes_round_in_circles(self) -> None:
        t = lb.empty(8, dtype="float32")
        np.asarray(t), np.from_dlpack(t), t.__tvm_ffi_object__()
        gone = weakref.ref(t.storage)
        gc.disable()
        try:
            del t
            assert gone() is None
        finally:
            gc.enable()


class TestPackedArgument:
    def test_the_memory_is_the_same(self) -> None:
        import tvm_ffi

        t = lb.empty((4, 4), dtype="float32")
        np.asarray(t)[:] = 1

        def double(x: Any) -> None:
            array = np.from_dlpack(x)
            assert array.ctypes.data == t.data_address
            array *= 2

        function = tvm_ffi.convert(double)
        for expected in (2, 4):
            function(t)
            assert (np.asarray(t) == expected).all()
        assert t.__tvm_ffi_object__() is t.__tvm_ffi_object__()

    def test_dtypes_numpy_lacks(self) -> None:
        t = lb.empty(4, dtype="bfloat16")
        assert str(t.__tvm_ffi_object__().dtype) == "bfloat16"

    def test_a_callee_that_keeps_it_is_a_holder(self) -> None:
        import tvm_ffi

        retained: list[Any] = []
        t = lb.empty(4, dtype="float32")
        tvm_ffi.convert(retained.append)(t)
        with pytest.raises(StorageInUseError, match="DLPack capsule"):
            t.storage.free()
        retained.clear()
        t.storage.free()

    def test_read_only_and_open_views(self) -> None:
        with pytest.raises(ZeroCopyError, match="a PackedFunc cannot be told"):
            lb.asarray(np.frombuffer(bytes(8), np.int8)).__tvm_ffi_object__()
        t = lb.empty(4, dtype="float32")
        for _ in range(2):
            with t.host_view("r"), pytest.raises(HostAccessError, match="a PackedFunc writes bytes 0 to 16"):
                t.__tvm_ffi_object__()
            t.__tvm_ffi_object__()

    def test_the_package_is_imported_only_then(self) -> None:
        script = (
            "import sys, numpy as np, landbridge as lb\n"
            "t = lb.empty(4, dtype='float32'); np.from_dlpack(t); lb.from_dlpack(np.zeros(3)); np.asarray(t)\n"
            "assert 'tvm_ffi' not in sys.modules\n"
            "kept = t.__tvm_ffi_object__()\n"
            "assert 'tvm_ffi' in sys.modules\n"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_offsets_a_scope_cannot_give() -> None:
    class SubBuffers(QueueingDeviceAPI):
        def memory_kinds(self, index: int) -> dict[str, MemoryKind]:
            return {"global": MemoryKind("global", "none", coherent=False, alignment=256, offset_alignment=128)}

    storage = lb.empty(1024, dtype="uint8", device=Device(SubBuffers(), 0)).storage
    assert Tensor(storage, "uint8", (4,), byte_offset=256).byte_offset == 256
    with pytest.raises(InputError, match=r"cannot start at byte 64 .* multiple of 128"):
        Tensor(storage, "uint8", (4,), byte_offset=64)
    host = lb.empty(64, dtype="uint8").storage
    with pytest.raises(InputError, match="multiple of 4"):
        Tensor(host, "float32", (4,), byte_offset=2)


def test_strides_that_are_none() -> None:
    storage = lb.empty(64, dtype="uint8").storage
    for strides, message in (((1,), "one for each dimension"), ((1, 1 << 63), "reach further"), ((1, 0.5), "integers")):
        with pytest.raises(InputError, match=message):
            Tensor(storage, "uint8", (2, 2), strides)  # type: ignore[arg-type]
