"""Memory behind file descriptors: memfds everywhere, and dma-bufs where the kernel makes some (udmabuf, a heap).

That barriers are called, and with which flags, is seen in a file whose ioctl is ours.
"""

from __future__ import annotations

import errno
import fcntl
import gc
import mmap
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import landbridge as lb
from landbridge.device.import_source import DmaBuf, HostPointer
from landbridge.devices.cpu import CpuDeviceAPI
from landbridge.memory import borrowed
from landbridge.memory.memory_barriers import DmaBufBarriers, is_dma_buf
from landbridge.targets import Target
from tests.devices.present import first_instance
from tests.session.test_board_arrays import N, on_the_cpu
from tests.session.test_frames import HEIGHT, PITCH, SHAPE, SPEC, WIDTH, network, seen_of
from tests.whole_models.small_models import add

BYTES = 1 << 14


def memfd() -> int:
    fd = os.memfd_create("camera", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(fd, BYTES)
    return fd


def dma_buf() -> int:
    """A dma-buf over a memfd: ``UDMABUF_CREATE`` of linux/udmabuf.h."""
    if not os.access("/dev/udmabuf", os.R_OK | os.W_OK):
        pytest.skip("the kernel has no /dev/udmabuf that this user may open")
    memory, driver = memfd(), os.open("/dev/udmabuf", os.O_RDWR)
    try:
        fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        return fcntl.ioctl(driver, 0x40187542, bytearray(struct.pack("=IIQQ", memory, 1, 0, BYTES)), True)
    finally:
        os.close(memory)
        os.close(driver)


def heap_buf() -> int:
    """A dma-buf of the system heap: ``DMA_HEAP_IOCTL_ALLOC`` of linux/dma-heap.h."""
    if not os.access("/dev/dma_heap/system", os.R_OK | os.W_OK):
        pytest.skip("the kernel has no /dev/dma_heap/system that this user may open")
    heap = os.open("/dev/dma_heap/system", os.O_RDWR)
    request = bytearray(struct.pack("=QIIQ", BYTES, 0, os.O_RDWR | os.O_CLOEXEC, 0))
    try:
        fcntl.ioctl(heap, 0xC0184800, request, True)
    finally:
        os.close(heap)
    return int(struct.unpack("=QIIQ", request)[1])


@pytest.fixture(params=[memfd, dma_buf, heap_buf])
def file(request: pytest.FixtureRequest) -> Iterator[int]:
    fd = request.param()
    yield fd
    os.close(fd)


def others(fd: int) -> np.ndarray:
    """What another process or a device sees of the file."""
    return np.frombuffer(mmap.mmap(fd, BYTES), np.uint8)


@settings(max_examples=25)
@given(st.integers(0, 5000), st.lists(st.integers(0, 6), max_size=3), st.integers(0, 40))
def test_it_is_the_memory_of_the_file(offset: int, shape: list[int], gap: int) -> None:
    fd = os.memfd_create("camera")
    try:
        os.ftruncate(fd, BYTES)
        strides, step = [], 1
        for extent in reversed(shape):
            strides.insert(0, step)
            step = step * max(extent, 1) + gap
        t = lb.from_dma_buf(fd, shape, "uint8", device="cpu", offset=offset, strides=strides)
        view = others(fd)
        view[:] = np.random.default_rng(0).integers(0, 256, BYTES)
        wanted = np.lib.stride_tricks.as_strided(view[offset:], shape, strides)
        np.testing.assert_array_equal(np.asarray(t), wanted)
        with t.host_view("rw") as mine:
            mine[...] = 7
        assert (wanted == 7).all() and (view == 7).sum() >= wanted.size
    finally:
        os.close(fd)


def test_the_descriptor_is_the_callers_and_the_mapping_goes_with_the_tensor(file: int) -> None:
    def mapped() -> int:
        maps = Path("/proc/self/maps").read_text()
        return maps.count("/memfd:camera") + maps.count("/dmabuf:")

    before = mapped()
    t = lb.from_dma_buf(file, (BYTES,), "uint8", device="cpu")
    assert mapped() == before + 1
    part = np.asarray(t)[5:]
    del t
    gc.collect()
    part[:] = 3
    assert mapped() == before + 1, "an array over it keeps the mapping"
    del part
    gc.collect()
    assert mapped() == before
    os.fstat(file)


def test_one_opened_for_reading_is_read_only() -> None:
    whole = memfd()
    fd = os.open(f"/proc/self/fd/{whole}", os.O_RDONLY)
    os.close(whole)
    try:
        t = lb.from_dma_buf(fd, (4,), "uint8", device="cpu")
        assert t.readonly and not np.asarray(t).flags.writeable
        with pytest.raises(lb.HostViewError, match="read-only"):
            t.host_view("w")
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    ("nbytes", "offset", "message"),
    [(BYTES + 1, 0, "does not map"), (1, 1 << 62, "does not map"), (BYTES, 4096, "a range inside")],
)
def test_what_the_kernel_does_not_map(file: int, nbytes: int, offset: int, message: str) -> None:
    with pytest.raises(lb.ZeroCopyError, match=message):
        lb.from_dma_buf(file, (nbytes,), "uint8", device="cpu", offset=offset)
    closed = os.dup(file)
    os.close(closed)
    with pytest.raises(lb.ZeroCopyError, match="no file is behind"):
        lb.from_dma_buf(closed, (1,), "uint8", device="cpu")


def test_a_pointer_into_a_mapping_keeps_it(file: int) -> None:
    api = CpuDeviceAPI()
    space = api.import_memory(0, DmaBuf(file, 0, 64), "rw")
    again = api.import_memory(0, HostPointer(space.handle, 64), "rw")
    api.release_import(again)
    assert np.frombuffer((np.ctypeslib.ctypes.c_char * 64).from_address(space.handle), np.uint8).sum() == 0
    api.release_import(space)
    assert api._imported == {}


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", ["cpu", "opencl", "vulkan"])
def test_frames_of_a_camera_are_run_on_with_no_copy(file: int, name: str) -> None:
    """The whole way: a descriptor from a driver, a pitch, pixels, a Session; what the camera writes is what it sees."""
    device: Any = lb.device("cpu") if name == "cpu" else first_instance(name)
    frame = lb.from_dma_buf(file, SHAPE, "uint8", device="cpu", offset=4096, strides=SPEC.strides)
    camera = others(file)[4096 : 4096 + HEIGHT * PITCH].reshape(HEIGHT, PITCH)
    session = lb.Session(lb.compile(network(), Target.from_device(device), inputs={"x": SPEC}), device=device)
    with lb.no_copies():
        session.set_input_zero_copy("x", frame)
    for seed in range(2):
        camera[...] = np.random.default_rng(seed).integers(0, 256, camera.shape)
        with lb.no_copies(), frame.host_view("r"):
            session.run()
        with session.get_output(0).host_view("r") as seen:
            np.testing.assert_array_equal(seen, seen_of(camera[:, : WIDTH * 3].reshape(SHAPE)))


def test_opencl_imports_the_file_itself(file: int) -> None:
    device = first_instance("opencl")
    others(file)[4096 : 4096 + 64] = 9
    t = lb.from_dma_buf(file, (64,), "uint8", device=device, offset=4096)
    assert np.asarray(t.to_device("cpu")).tolist() == [9] * 64


@pytest.mark.parametrize(("make", "barriers"), [(memfd, False), (dma_buf, True), (heap_buf, True)])
def test_the_kernel_says_which_is_a_dma_buf(make: Callable[[], int], barriers: bool) -> None:
    fd = make()
    requested = fcntl.ioctl
    fcntl.ioctl = lambda *_: pytest.fail("a barrier would touch what others are doing with it")
    try:
        assert is_dma_buf(fd) is barriers
    finally:
        fcntl.ioctl = requested
    if barriers:
        for side in ("host", "device"):
            DmaBufBarriers(fd).sync(0, BYTES, "rw", side)
    os.close(fd)


def test_barriers_of_a_dma_buf_stand_around_host_views(file: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The flags are those of linux/dma-buf.h: READ 1, WRITE 2, START 0, END 4."""
    calls: list[int] = []
    interrupted = [errno.EINTR, errno.EAGAIN]

    def ioctl(fd: int, request: int, argument: bytes) -> int:
        assert request == 0x40086200
        if interrupted:
            code = interrupted.pop()
            raise OSError(code, os.strerror(code))
        calls.append(struct.unpack("=Q", argument)[0])
        return 0

    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    monkeypatch.setattr(borrowed, "is_dma_buf", lambda fd: True)
    whole = lb.from_dma_buf(file, (BYTES,), "uint8", device="cpu")
    t = lb.from_dma_buf(file, (64,), "uint8", device="cpu", offset=4096)
    assert calls == []
    for tensor, mode, begin, end in ((t, "r", 1, 1), (whole, "w", 2, 2), (t, "w", 3, 2), (t, "rw", 3, 3)):
        calls.clear()
        with tensor.host_view(mode):
            assert calls == [begin], "a part that is written must not lose what is around it"
        assert calls == [begin, 4 | end]
    calls.clear()
    neighbour = lb.from_dma_buf(file, (64,), "uint8", device="cpu")
    with neighbour.host_view("rw"), t.host_view("r"):
        assert calls == [3, 4 | 2, 1], "what one wrote is flushed before the other has all of it invalidated"
    calls.clear()
    view = t.host_view("rw")
    view.invalidate()
    view.flush()
    assert calls == [1, 4 | 2]


def test_barriers_of_a_dma_buf_stand_around_runs(file: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(fcntl, "ioctl", lambda fd, request, flags: calls.append(struct.unpack("=Q", flags)[0]) or 0)
    monkeypatch.setattr(borrowed, "is_dma_buf", lambda fd: True)
    x, y = (lb.from_dma_buf(file, (N,), "float32", device="cpu", offset=offset) for offset in (0, 4096))
    with x.host_view("w") as a:
        a[:] = 3
    s = lb.Session(on_the_cpu(), num_threads=1)
    s.set_input_zero_copy("x", x)
    s.set_output_zero_copy("y", y)
    calls.clear()
    with lb.no_copies():
        s.run()
    # All of the buffer comes to the host, as the output is a part of it that is written, and goes back when it was.
    assert calls == [1, 3, 4 | 1, 4 | 2]
    calls.clear()
    with y.host_view("r") as b:
        assert b.tolist() == [6] * N


def test_a_barrier_that_fails_is_an_error(file: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(borrowed, "is_dma_buf", lambda fd: True)
    t = lb.from_dma_buf(file, (64,), "uint8", device="cpu")

    def fails(*_: object) -> int:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(fcntl, "ioctl", fails)
    with pytest.raises(lb.DeviceError, match=r"DMA_BUF_IOCTL_SYNC for 'r' failed.*broken"), t.host_view("r"):
        pass


def test_memory_made_to_be_shared_is_exported() -> None:
    t = lb.empty((8, 16), dtype="int16", device="cpu", host_access="rw")
    fd, offset = lb.export_fd(t)
    again = lb.from_dma_buf(fd, (8, 16), "int16", device="cpu", offset=offset)
    os.close(fd)
    with t.host_view("w") as a:
        a[...] = np.arange(128).reshape(8, 16)
    np.testing.assert_array_equal(np.asarray(again), np.arange(128).reshape(8, 16))
    assert again.data_address != t.data_address


def test_other_memory_is_not_exported() -> None:
    for t in (lb.empty(8, dtype="int8", device="cpu"), lb.asarray(np.zeros(8, np.int8))):
        with pytest.raises(lb.ZeroCopyError, match="host_access="):
            lb.export_fd(t)


def test_a_file_that_others_cut_is_used_no_more() -> None:
    """Past the end of a mapped file is SIGBUS: whoever asks for the memory is told instead."""
    fd = memfd()
    try:
        t = lb.from_dma_buf(fd, (BYTES // 4,), "float32", device="cpu")
        executable = lb.compile(add(BYTES // 4))
        session = lb.Session(executable, num_threads=1)
        session.set_input_zero_copy(0, t)
        np.asarray(t)[:] = 3
        session.run()
        os.ftruncate(fd, BYTES // 2)
        uses: list[Callable[[], Any]] = [
            lambda: session.set_input_zero_copy(0, t),
            lambda: session.set_input(0, t),
            lambda: session(t),
            lambda: t.data_address,
            lambda: np.asarray(t),
            lambda: np.from_dlpack(t),
            lambda: t.host_view("r").__enter__(),
            lambda: t.copy(),
        ]
        for use in uses:
            with pytest.raises((lb.HostViewError, lb.ZeroCopyError), match=r"bytes now.*F_SEAL_SHRINK"):
                use()
        with pytest.raises(lb.ZeroCopyError):
            lb.from_dma_buf(fd, (BYTES // 4,), "float32", device="cpu")
        os.ftruncate(fd, BYTES)
        assert session(t)[0].shape == (BYTES // 4,)
    finally:
        os.close(fd)


def test_devices_that_import_a_file_are_spared_too() -> None:
    device = first_instance("opencl")
    fd = memfd()
    try:
        t = lb.from_dma_buf(fd, (BYTES // 4,), "float32", device="cpu")
        session = lb.Session(lb.compile(add(BYTES // 4), Target.from_device(device)), device=device)
        try:
            session.set_input_zero_copy(0, t)
        except lb.ZeroCopyError as error:
            pytest.skip(f"this driver imports no such memory: {error}")
        os.ftruncate(fd, 0)
        with pytest.raises(lb.ZeroCopyError, match="bytes now"):
            session.set_input_zero_copy(0, t)
    finally:
        os.close(fd)


def test_sealed_files_are_not_requested_again(monkeypatch: pytest.MonkeyPatch) -> None:
    fd = memfd()
    try:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        t = lb.from_dma_buf(fd, (BYTES,), "uint8", device="cpu")
        monkeypatch.setattr(os, "fstat", lambda _: pytest.fail("it was asked"))
        np.asarray(t)[:] = 1
    finally:
        monkeypatch.undo()
        os.close(fd)


def test_our_own_memory_cannot_be_cut_by_whom_it_is_exported_to() -> None:
    shared = lb.empty(4096, dtype="uint8", host_access="rw", alignment=4096)
    fd, _ = lb.export_fd(shared)
    try:
        for size in (0, 100, 1 << 40):
            with pytest.raises(PermissionError):
                os.ftruncate(fd, size)
    finally:
        os.close(fd)
