"""DLPack both ways: against numpy, and against a producer and a consumer written here from dlpack.h alone."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import landbridge as lb
from landbridge.device.api import Device
from landbridge.device.registry import device_type, register, unregister
from landbridge.dlpack import import_capsule
from landbridge.errors import InputError, LandbridgeError, StorageInUseError, UnknownDeviceError, ZeroCopyError
from tests.device.queueing_device import QueueingDeviceAPI

api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", api)
)
capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
rename_capsule = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", api))

int64_p = ctypes.POINTER(ctypes.c_int64)
Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class DLDevice(ctypes.Structure):
    _fields_ = (("device_type", ctypes.c_int), ("device_id", ctypes.c_int32))


class DLDataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", DLDataType),
        ("shape", int64_p),
        ("strides", int64_p),
        ("byte_offset", ctypes.c_uint64),
    )


class Unversioned(ctypes.Structure):
    _fields_ = (("dl_tensor", DLTensor), ("manager_ctx", ctypes.c_void_p), ("deleter", Deleter))


class Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", Deleter),
        ("flags", ctypes.c_uint64),
        ("dl_tensor", DLTensor),
    )


class Producer:
    """Exports ``data`` under any description, true or not, and counts how often it was given back."""

    def __init__(
        self,
        data: int | None,
        shape: tuple[int, ...] | None,
        *,
        ndim: int | None = None,
        dtype: tuple[int, int, int] = (2, 32, 1),
        strides: tuple[int, ...] | None = None,
        byte_offset: int = 0,
        device: tuple[int, int] = (1, 0),
        flags: int = 0,
        version: tuple[int, int] | None = (1, 0),
    ) -> None:
        self.deleted = 0
        self.requests: list[dict[str, Any]] = []
        self._keep = (
            None if shape is None else int64s(shape),
            None if strides is None else int64s(strides),
            Deleter(self._delete),
        )
        managed = Versioned(flags=flags) if version else Unversioned()
        if version:
            managed.major, managed.minor = version
        managed.deleter = self._keep[2]
        managed.dl_tensor = DLTensor(
            data,
            DLDevice(*device),
            len(shape or ()) if ndim is None else ndim,
            DLDataType(*dtype),
            self._keep[0],
            self._keep[1],
            byte_offset,
        )
        self._managed = managed
        self._device = device

    def _delete(self, pointer: int) -> None:
        self.deleted += 1

    def __dlpack__(self, **request: Any) -> object:
        self.requests.append(request)
        if request and isinstance(self._managed, Unversioned):
            raise TypeError("__dlpack__() got an unexpected keyword argument")
        name = b"dltensor" if isinstance(self._managed, Unversioned) else b"dltensor_versioned"
        return new_capsule(ctypes.addressof(self._managed), name, None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def int64s(values: tuple[int, ...]) -> Any:
    return ctypes.cast((ctypes.c_int64 * max(len(values), 1))(*values), int64_p)


def consume(capsule: object) -> Versioned | Unversioned:
    """What a consumer in C does: read the struct, mark the capsule as used."""
    if capsule_name(capsule) == b"dltensor_versioned":
        managed: Versioned | Unversioned = Versioned.from_address(capsule_pointer(capsule, b"dltensor_versioned"))
        rename_capsule(capsule, USED_VERSIONED)
    else:
        managed = Unversioned.from_address(capsule_pointer(capsule, b"dltensor"))
        rename_capsule(capsule, USED)
    return managed


USED, USED_VERSIONED = b"used_dltensor", b"used_dltensor_versioned"
FLOATS = np.arange(12, dtype=np.float32)
ADDRESS = FLOATS.ctypes.data


class TestWithNumpy:
    @pytest.mark.parametrize(
        "array",
        [
            FLOATS.reshape(3, 4)[::-1, ::2],
            np.zeros((0, 3), np.int8),
            np.array(5.0),
            np.arange(3, dtype=np.uint16),
            np.array([True, False]),
            np.frombuffer(bytes(16), np.float16),
        ],
    )
    def test_round_trip_is_one_memory(self, array: np.ndarray[Any, Any]) -> None:
        with lb.no_copies():
            t = lb.from_dlpack(array, copy=False)
            back = np.from_dlpack(t)
        np.testing.assert_array_equal(back, array)
        assert (back.dtype, back.strides) == (array.dtype, array.strides) or array.size == 0
        assert back.ctypes.data == t.data_address == array.ctypes.data or array.size == 0
        assert back.flags.writeable == array.flags.writeable == (not t.readonly)

    def test_the_capsule_keeps_the_memory(self) -> None:
        t = lb.empty(64, dtype="float64")
        storage = t.storage
        a = np.from_dlpack(t)[3:]
        del t
        a[:] = 4
        with pytest.raises(StorageInUseError, match=r"DLPack capsule float64\[64\]"):
            storage.free()
        assert (a == 4).all()
        del a
        storage.free()

    def test_a_capsule_nobody_consumes(self) -> None:
        t = lb.empty(64, dtype="float64")
        for request in ({}, {"max_version": (1, 0)}):
            capsule = t.__dlpack__(**request)
            del capsule
        t.storage.free()

    def test_ml_dtypes(self) -> None:
        a = np.ones(3, ml_dtypes.bfloat16)
        t = lb.from_dlpack(a)
        assert (t.dtype, t.data_address) == ("bfloat16", a.ctypes.data)

    def test_copy(self) -> None:
        with lb.ledger() as moves:
            t = lb.from_dlpack(FLOATS, copy=True)
        assert moves.total_bytes == 48
        assert t.data_address != ADDRESS


def test_exports_that_live_until_the_interpreter_exits() -> None:
    script = (
        "import numpy as np, landbridge as lb\n"
        "t = lb.empty(1 << 16, dtype='float32')\n"
        "kept = [np.from_dlpack(t), np.asarray(t)[1:], t.__dlpack__(), lb.from_dlpack(np.zeros(9)), t.host_view()]\n"
        "kept += [np.from_dlpack(t), t.__tvm_ffi_object__(), lb.asarray(np.zeros(9)).__tvm_ffi_object__()]\n"
        "cycle = [kept]; cycle.append(cycle)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


class TestProducerHere:
    """Our export, read field by field."""

    def test_versioned(self) -> None:
        t = lb.asarray(FLOATS.reshape(3, 4)[:, 1:3])
        managed = consume(t.__dlpack__(max_version=(1, 3)))
        assert isinstance(managed, Versioned)
        assert (managed.major, managed.flags) == (1, 0)
        d = managed.dl_tensor
        assert (d.device.device_type, d.device.device_id, d.ndim) == (1, 0, 2)
        assert (d.dtype.code, d.dtype.bits, d.dtype.lanes) == (2, 32, 1)
        assert (d.shape[:2], d.strides[:2]) == ([3, 2], [4, 1])
        assert d.data + d.byte_offset == ADDRESS + 4
        managed.deleter(ctypes.addressof(managed))

    @pytest.mark.parametrize(
        ("dtype", "code"),
        [("bfloat16", (4, 16)), ("float8_e4m3fn", (10, 8)), ("float8_e5m2", (12, 8)), ("bool", (6, 8))],
    )
    def test_types(self, dtype: str, code: tuple[int, int]) -> None:
        t = lb.empty(4, dtype=dtype)
        managed = consume(t.__dlpack__())
        assert isinstance(managed, Unversioned)
        assert (managed.dl_tensor.dtype.code, managed.dl_tensor.dtype.bits) == code
        with pytest.raises(StorageInUseError):
            t.storage.free()
        managed.deleter(ctypes.addressof(managed))
        t.storage.free()

    def test_read_only(self) -> None:
        t = lb.asarray(np.frombuffer(bytes(8), np.int8))
        for request in ({}, {"max_version": (0, 8)}):
            with pytest.raises(BufferError, match="read-only, which an unversioned capsule cannot say"):
                t.__dlpack__(**request)
        ours = lb.Tensor(lb.empty(8, dtype="int8").storage, "int8", (8,), readonly=True)
        for tensor in (t, ours):  # numpy exports its own memory, and we ours
            managed = consume(tensor.__dlpack__(max_version=(1, 0)))
            assert isinstance(managed, Versioned)
            assert managed.flags == 1
            managed.deleter(ctypes.addressof(managed))

    def test_copied(self) -> None:
        t = lb.asarray(np.frombuffer(bytes(8), np.int8))
        with lb.ledger() as moves:
            managed = consume(t.__dlpack__(max_version=(1, 0), copy=True))
        assert isinstance(managed, Versioned)
        assert managed.flags == 2
        assert moves.total_bytes == 8
        assert managed.dl_tensor.data + managed.dl_tensor.byte_offset != t.data_address
        managed.deleter(ctypes.addressof(managed))

    def test_zero_size_has_no_address(self) -> None:
        managed = consume(lb.empty((2, 0), dtype="int8").__dlpack__())
        assert managed.dl_tensor.data is None
        managed.deleter(ctypes.addressof(managed))

    def test_the_repeated_export_says_the_same(self) -> None:
        """The first capsule is written here, those after it by numpy."""
        t = lb.empty((3, 5), dtype="int16")
        part = lb.asarray(np.zeros((3, 4), np.int16)[:, ::2])
        frozen = lb.Tensor(t.storage, "int16", (5, 3), (1, 5), readonly=True)
        for tensor in (t, part, frozen):
            seen = []
            for _ in range(3):
                managed = consume(tensor.__dlpack__(max_version=(1, 0)))
                assert isinstance(managed, Versioned)
                d = managed.dl_tensor
                facts = (d.device.device_type, d.device.device_id, d.ndim, d.dtype.code, d.dtype.bits, d.dtype.lanes)
                strides = d.strides[: d.ndim] if d.strides else None
                dense = list(tensor.strides) if tensor.is_contiguous else None
                seen.append(
                    (managed.flags, facts, d.data + d.byte_offset, d.shape[: d.ndim], strides if strides else dense)
                )
                managed.deleter(ctypes.addressof(managed))
            assert seen[0] == seen[1] == seen[2]
        with pytest.raises(ZeroCopyError, match="unversioned capsule cannot say"):
            frozen.__dlpack__()

    def test_a_capsule_is_consumed_once(self) -> None:
        for version in ({}, {"max_version": (1, 0)}):
            t = lb.empty(4, dtype="int8")
            for _ in range(2):
                capsule = t.__dlpack__(**version)
                managed = consume(capsule)
                with pytest.raises(InputError, match="consumed before"):
                    import_capsule(capsule)
                managed.deleter(ctypes.addressof(managed))
            t.storage.free()

    def test_streams(self) -> None:
        t = lb.empty(1, dtype="int8")
        for stream in (None, -1):
            t.__dlpack__(stream=stream)
        with pytest.raises(InputError, match="no streams to exchange"):
            t.__dlpack__(stream=1)

    def test_other_devices(self) -> None:
        npu = Device(register(QueueingDeviceAPI()), 1)
        try:
            t = lb.empty(4, dtype="int8", device=npu)
            assert t.__dlpack_device__() == (device_type(npu.api), 1)
            managed = consume(t.__dlpack__(max_version=(1, 0)))
            region = t.storage.live_region
            assert managed.dl_tensor.data == region.space.handle
            assert managed.dl_tensor.byte_offset == region.byte_offset
            managed.deleter(ctypes.addressof(managed))
            with pytest.raises(ZeroCopyError, match=r"cannot be exported in place to \(1, 0\)"):
                t.__dlpack__(dl_device=(1, 0))
            twin = lb.from_dlpack(t)
            assert twin.device == npu
            assert twin.storage.live_region.space.handle == region.space.handle
        finally:
            unregister("queueing")


class TestConsumerHere:
    """Our import, of capsules that say anything."""

    @pytest.mark.parametrize("version", [(1, 0), (1, 99), None])
    def test_plain(self, version: tuple[int, int] | None) -> None:
        producer = Producer(ADDRESS, (3, 4), version=version)
        t = lb.from_dlpack(producer)
        assert producer.requests[0]["max_version"] >= (1, 0)
        assert len(producer.requests) == (1 if version else 2)  # again without arguments on TypeError
        assert (t.shape, t.strides, t.dtype, t.data_address) == ((3, 4), (4, 1), "float32", ADDRESS)
        np.testing.assert_array_equal(np.asarray(t), FLOATS.reshape(3, 4))
        assert producer.deleted == 0
        view = np.asarray(t)
        del t
        gc.collect()
        assert producer.deleted == 0  # the view still reads it
        del view
        assert producer.deleted == 1

    def test_strides_and_offset(self) -> None:
        t = lb.from_dlpack(Producer(ADDRESS, (2, 3), strides=(-4, 1), byte_offset=36))
        np.testing.assert_array_equal(np.asarray(t), [[9, 10, 11], [5, 6, 7]])

    def test_zero_size_and_no_data(self) -> None:
        t = lb.from_dlpack(Producer(None, (2, 0, 3)))
        assert np.asarray(t).shape == (2, 0, 3)

    def test_zero_size_with_strides_and_an_address_that_mean_nothing(self) -> None:
        producer = Producer((1 << 64) - 3, (0, 2), strides=(1 << 61, -(1 << 63)), byte_offset=7, version=(1, 0))
        tensor = lb.from_dlpack(producer)
        assert np.asarray(tensor).shape == np.asarray(tensor.copy()).shape == (0, 2)

    def test_scalar(self) -> None:
        assert np.asarray(lb.from_dlpack(Producer(ADDRESS, (), byte_offset=8))) == 2

    def test_read_only(self) -> None:
        t = lb.from_dlpack(Producer(ADDRESS, (2,), flags=1))
        assert t.readonly
        assert not np.asarray(t).flags.writeable

    def test_bfloat16(self) -> None:
        bits = np.array([1.5, -2], ml_dtypes.bfloat16)
        t = lb.from_dlpack(Producer(bits.ctypes.data, (2,), dtype=(4, 16, 1)))
        assert np.asarray(t).tolist() == [1.5, -2]

    def test_copied_by_the_producer(self) -> None:
        producer = Producer(ADDRESS, (2,), flags=2)
        assert lb.from_dlpack(producer).shape == (2,)
        producer = Producer(ADDRESS, (2,), flags=2)
        with pytest.raises(ZeroCopyError, match="the producer copied"):
            lb.from_dlpack(producer, copy=False)
        assert producer.requests[0]["copy"] is False
        assert producer.deleted == 1

    @pytest.mark.parametrize(
        ("description", "error", "message"),
        [
            ({"dtype": (2, 32, 4)}, InputError, "lanes=4"),
            ({"dtype": (99, 8, 1)}, InputError, "code=99"),
            ({"version": (2, 0)}, InputError, "wrote DLPack 2.0; we read 1.x"),
            ({"byte_offset": 2}, ZeroCopyError, "not at a multiple of their size"),
            ({"shape": (-1,)}, InputError, "negative extent"),
            ({"shape": (1 << 62, 4)}, InputError, "more bytes than any device"),
            ({"shape": (3,), "data": None}, InputError, "wrote address 0x0 and byte offset 0"),
            ({"byte_offset": (1 << 64) - 4}, InputError, "outside of memory"),
            ({"strides": (-(1 << 50),)}, InputError, "outside of memory"),
            ({"ndim": -1}, InputError, "wrote -1 dimensions"),
            ({"ndim": 65}, InputError, "wrote 65 dimensions"),
            ({"shape": None, "ndim": 1}, InputError, "1 dimensions and a shape at 0x0"),
            ({"device": (77, 0)}, UnknownDeviceError, "DLPack type 77"),
            ({"device": (9, 0)}, UnknownDeviceError, "'vpi'"),
        ],
    )
    def test_refusals_give_the_memory_back(
        self, description: dict[str, Any], error: type[Exception], message: str
    ) -> None:
        producer = Producer(**{"data": ADDRESS, "shape": (2,), **description})
        with pytest.raises(error, match=message):
            lb.from_dlpack(producer)
        gc.collect()
        assert producer.deleted == 1

    def test_a_producer_that_refuses(self) -> None:
        class Refuses:
            def __dlpack__(self, **request: Any) -> object:
                raise BufferError("not today")

        with pytest.raises(ZeroCopyError, match="Refuses refused to export its memory: not today"):
            lb.from_dlpack(Refuses())

    def test_no_producer(self) -> None:
        with pytest.raises(InputError, match="a list has no __dlpack__"):
            lb.from_dlpack([1, 2])

    def test_strides_of_single_extents_mean_nothing(self) -> None:
        t = lb.from_dlpack(Producer(ADDRESS, (1, 3, 1), strides=(-(1 << 60), 2, 1 << 62)))
        assert t.is_contiguous is False
        assert np.asarray(t).tolist() == [[[0], [2], [4]]]
        assert lb.from_dlpack(Producer(ADDRESS, (1, 3), strides=(7, 1))).is_contiguous

    def test_another_place_is_requested(self) -> None:
        class Anywhere(Producer):
            def __dlpack__(self, **request: Any) -> object:
                if "dl_device" in request:
                    self._managed.dl_tensor.device = DLDevice(*request["dl_device"])
                return super().__dlpack__(**request)

        producer = Anywhere(ADDRESS, (4,), device=(4, 0))  # on an OpenCL device, coherent with the host
        t = lb.from_dlpack(producer, device="cpu", copy=False)
        assert producer.requests == [{"max_version": (1, 1), "copy": False, "dl_device": (1, 0)}]
        assert t.data_address == ADDRESS
        assert lb.from_dlpack(Producer(ADDRESS, (4,)), device="cpu").data_address == ADDRESS

    def test_a_place_it_cannot_go_to_is_copied_to(self) -> None:
        api = register(QueueingDeviceAPI())
        try:
            npu = Device(api, 0)
            with lb.ledger() as moves:
                t = lb.from_dlpack(FLOATS, device=npu)
            assert (t.device, moves.total_bytes) == (npu, 48)
            with lb.ledger() as moves:
                back = lb.from_dlpack(t, device="cpu")
            np.testing.assert_array_equal(np.asarray(back), FLOATS)
            assert moves.total_bytes == 48
            for there, device in ((FLOATS, npu), (t, "cpu")):
                with pytest.raises(ZeroCopyError, match=r"copy=False"):
                    lb.from_dlpack(there, device=device, copy=False)
        finally:
            unregister("queueing")

    @settings(max_examples=300)
    @given(
        st.lists(st.integers(-2, 5) | st.integers(-(1 << 63), (1 << 63) - 1), max_size=4),
        st.none() | st.lists(st.integers(-4, 4) | st.integers(-(1 << 63), (1 << 63) - 1), min_size=4, max_size=4),
        st.integers(0, 64) | st.integers(0, (1 << 64) - 1),
        st.tuples(st.integers(0, 20), st.sampled_from([0, 1, 8, 16, 32, 64, 255]), st.integers(0, 2)),
        st.sampled_from([None, (1, 0), (1, 7), (0, 9), (2, 0)]),
        st.integers(0, 7),
    )
    def test_any_description_gives_a_tensor_or_an_error(
        self,
        shape: list[int],
        strides: list[int] | None,
        byte_offset: int,
        dtype: tuple[int, int, int],
        version: tuple[int, int] | None,
        flags: int,
    ) -> None:
        producer = Producer(
            ADDRESS,
            tuple(shape),
            strides=None if strides is None else tuple(strides[: len(shape)]),
            byte_offset=byte_offset,
            dtype=dtype,
            version=version,
            flags=flags,
        )
        try:
            t = lb.from_dlpack(producer)
        except LandbridgeError:
            pass
        else:
            assert (t.shape, t.readonly) == (tuple(shape), bool(version and flags & 1))
            start, stop = t.byte_range
            assert 0 <= start <= stop <= t.storage.nbytes
            assert t.size == 0 or t.data_address == ADDRESS + byte_offset
            del t
        assert producer.deleted == 1

    def test_a_used_capsule(self) -> None:
        class Twice:
            capsule = lb.empty(1, dtype="int8").__dlpack__()

            def __dlpack__(self, **request: Any) -> object:
                return self.capsule

        lb.from_dlpack(Twice())
        with pytest.raises(InputError, match="consumed before"):
            lb.from_dlpack(Twice())
