"""A camera, a board and a display, each in a process of its own: fences alone order them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from threading import Timer

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device, Stream
from landbridge.device.fence import Fence
from landbridge.device.fences import fence_of
from landbridge.errors import InputError, RunTimeoutError, UnsupportedError
from landbridge.executable.instructions import Call
from tests.mixed.remote_board import N, RemoteBoard, RemoteBoardWithFences
from tests.mixed.test_remote_board import by_board, executable
from tests.vm import programs

FRAME = np.arange(1, N + 1, dtype=np.float32)
_CAMERA = """
import mmap, os, sys
memory, fence, at = mmap.mmap(int(sys.argv[1]), 0), int(sys.argv[2]), int(sys.argv[3])
frame = sys.stdin.buffer.read()
memory[at:at + len(frame)] = frame
os.eventfd_write(fence, 1)
"""
_DISPLAY = """
import select, sys
select.select([int(sys.argv[1])], [], [])
print("shown", flush=True)
"""


def process(program: str, files: Sequence[int], *more: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", "-S", "-c", program, *map(str, (*files, *more))]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=files)


@pytest.fixture
def board() -> Iterator[RemoteBoardWithFences]:
    made = RemoteBoardWithFences()
    yield made
    made.close()


def on_board(board: RemoteBoard, kernel: str = "double") -> tuple[lb.Session, lb.Tensor]:
    """A Session whose program is the board's alone, with x bound in its memory."""
    session = lb.Session(executable(by_board(0, 1, kernel), by_board(0, 2, "double")), device=Device(board, 0))
    x = lb.empty((N,), dtype="float32", device=Device(board, 0))
    session.set_input_zero_copy("x", x)
    return session, x


def test_camera_to_board_to_display(board: RemoteBoardWithFences) -> None:
    fence = os.eventfd(0)
    session, x = on_board(board)
    camera = process(_CAMERA, (board.memory_file, fence), int(x.storage.live_region.space.handle))
    session.wait_for(fence)
    os.close(fence)
    run = session.run_async()
    with run.fence() as over:
        display = process(_DISPLAY, (over.fileno(),))
        with pytest.raises(RunTimeoutError):
            run.wait(0.2)
        assert not over.is_signalled() and display.poll() is None
        camera.communicate(FRAME.tobytes(), timeout=30)
        run.wait(30)
        assert display.communicate(timeout=30)[0] == b"shown\n" and over.is_signalled()
    for name in "yz":
        assert (np.asarray(session.get_output(name).to_device("cpu")) == 2 * FRAME).all()


def test_a_fence_of_the_board_is_signalled_by_the_board(board: RemoteBoardWithFences) -> None:
    session, _ = on_board(board, "held")
    run = session.run_async()
    while board._submitted < 2 and not run.done():
        time.sleep(1e-3)
    with fence_of(Device(board, 0)) as done:
        assert not done.wait(0.05)
        board.release()
        assert done.wait(30)
    run.wait(30)


class OfSyncFiles(RemoteBoardWithFences):
    """It waits for no eventfds."""

    def wait_fence(self, index: int, stream: Stream | None, fence: int) -> None:
        raise UnsupportedError("this board waits for sync files")


@pytest.mark.parametrize("made", [RemoteBoard, OfSyncFiles])
def test_the_host_waits_where_the_board_cannot(made: type[RemoteBoard]) -> None:
    board, fence = made(), os.eventfd(0)
    try:
        session, _ = on_board(board)
        Timer(0.1, lambda: os.eventfd_write(fence, 1)).start()
        session.wait_for(fence)
        assert Fence.owning(fence).is_signalled()
        session.run()
        if not isinstance(board, RemoteBoardWithFences):
            assert fence_of(Device(board, 0)).is_signalled()
    finally:
        board.close()


def test_a_session_of_the_cpu_waits_on_the_host() -> None:
    session = lb.Session(programs.executable({"x": (N,)}, {"y": (N,)}, [Call(0, "double", (0, 1), N)]))
    fence = os.eventfd(0)
    started = time.monotonic()
    Timer(0.1, lambda: os.eventfd_write(fence, 1)).start()
    session.wait_for(fence)
    assert time.monotonic() - started >= 0.1
    os.close(fence)
    for wrong in (fence, -1, "camera", None, True):
        with pytest.raises(InputError, match="is no fence"):
            session.wait_for(wrong)  # type: ignore[arg-type]


def test_the_fence_of_a_run_that_is_over_or_failed_is_signalled() -> None:
    session = lb.Session(programs.executable({"x": (N,)}, {"y": (N,)}, [Call(0, "double", (0, 1), N)]))
    session.set_input("x", FRAME)
    run = session.run_async()
    run.wait(30)
    fence = run.fence()
    assert fence.is_signalled() and run.fence().wait(0)
    fence.close()
    with pytest.raises(InputError, match="closed"):
        fence.is_signalled()
