"""A board that dies, hangs, loses its context or is suspended: each is an error of its own, with a way on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device
from landbridge.device.registry import register, unregister
from landbridge.errors import (
    ContextLostError,
    DeviceError,
    DeviceLostError,
    DeviceSuspendedError,
    InputError,
    JobTimeoutError,
    UnsupportedError,
)
from landbridge.memory import allocators
from tests.mixed.mortal_board import MortalBoard
from tests.mixed.remote_board import N
from tests.mixed.test_remote_board import by_board, executable

X = np.arange(N, dtype=np.float32)


@pytest.fixture
def board() -> Iterator[MortalBoard]:
    made = MortalBoard()
    register(made)
    yield made
    unregister("mortal")
    made.close()


def session(device: Device, kernel: str = "double") -> lb.Session:
    made = lb.Session(executable(by_board(0, 1, kernel), by_board(0, 2, "double")), device=device)
    made.set_input("x", X)
    return made


def works(device: Device) -> None:
    made = session(device)
    made.run()
    for name in "yz":
        assert (np.asarray(made.get_output(name).to_device("cpu")) == 2 * X).all()


def test_a_board_that_dies_is_lost_until_it_is_reopened(board: MortalBoard) -> None:
    device = lb.device("mortal")
    held = session(device, "held")
    run = held.run_async()
    os.kill(board.process.pid, signal.SIGKILL)
    with pytest.raises(
        DeviceLostError, match=r"mortal:0 is lost \(its process has ended\).*call device.reopen\(\)"
    ) as it:
        run.wait(30)
    assert not isinstance(it.value, ContextLostError)
    with pytest.raises(DeviceLostError):
        held.run()
    works(device.reopen())


def test_a_job_that_takes_too_long_is_an_error_of_its_run_alone(board: MortalBoard) -> None:
    device = lb.device("mortal", job_timeout=0.2)
    held = session(device, "held")
    with pytest.raises(
        JobTimeoutError, match=r"kernel held.* on mortal:0 was ended: .*job_timeout=0.2 s; give it more"
    ):
        held.run()
    board.release()  # the next one is in time
    held.run()
    assert (np.asarray(held.get_output("y").to_device("cpu")) == 2 * X).all()
    works(device)
    with pytest.raises(InputError, match="legal: seconds over 0"):
        device.reopen(job_timeout=0)


def test_a_job_that_cannot_be_ended_alone_takes_the_context_with_it(board: MortalBoard) -> None:
    board.ends_jobs = False
    device = lb.device("mortal", job_timeout=0.2)
    held = session(device, "held")
    with pytest.raises(ContextLostError, match=r"mortal:0 has lost the context of this process \(a job took longer"):
        held.run()
    assert device.is_lost
    works(device.reopen())


def test_a_lost_context_is_not_a_lost_device(board: MortalBoard) -> None:
    device = lb.device("mortal")
    made = session(device)
    made.run()
    board.lost_context = "another program's fault had it reset"
    with pytest.raises(ContextLostError, match=r"another program's fault.*call device.reopen\(\)"):
        made.run()
    with pytest.raises(ContextLostError):
        lb.empty((4,), dtype="float32", device=device)
    board.process.kill()
    works(device.reopen())


def test_a_suspended_board_is_not_used_and_keeps_its_memory(board: MortalBoard) -> None:
    device = lb.device("mortal")
    made = session(device)
    there = lb.asarray(X).to_device(device)
    device.suspend()
    for use in (made.run, lambda: there.to_device("cpu"), lambda: lb.empty((4,), dtype="float32", device=device)):
        with pytest.raises(DeviceSuspendedError, match=r"mortal:0 is suspended; call device.resume\(\)"):
            use()
    assert not device.is_lost
    lb.empty((4,), dtype="float32", device="cpu")
    with pytest.raises(DeviceSuspendedError):
        device.suspend()
    assert device.resume() is device
    assert (np.asarray(there.to_device("cpu")) == X).all()
    made.run()
    assert (np.asarray(made.get_output("y").to_device("cpu")) == 2 * X).all()
    with pytest.raises(InputError, match="not suspended"):
        device.resume()


def test_memory_is_given_back_while_a_board_is_suspended(board: MortalBoard) -> None:
    device = lb.device("mortal")
    there = lb.empty((1 << 20,), dtype="uint8", device=device, scope="global")
    device.suspend()
    board.log.clear()
    there.storage.free()
    allocators.trim(device)
    assert board.log == ["free"]
    assert device.resume() is device
    works(device)


def test_memory_that_is_lost_while_a_board_is_suspended_ends_its_life(board: MortalBoard) -> None:
    board.retains_memory = False
    device = lb.device("mortal")
    made = session(device)
    device.suspend()
    again = device.resume()
    assert again is not device and device.is_lost and not again.is_lost
    with pytest.raises(ContextLostError, match="not retained while it was suspended"):
        made.run()
    works(again)


def test_a_suspended_board_may_be_reopened(board: MortalBoard) -> None:
    device = lb.device("mortal")
    device.suspend()
    works(device.reopen())
    with pytest.raises(DeviceLostError, match="reopened"):
        lb.empty((4,), dtype="float32", device=device)


def test_a_device_without_these_methods_is_not_suspended() -> None:
    with pytest.raises(UnsupportedError, match="cpu:0 cannot be suspended"):
        lb.device("cpu").suspend()


def test_what_resume_must_return(board: MortalBoard) -> None:
    device = lb.device("mortal")
    device.suspend()
    board.retains_memory = 1  # type: ignore[assignment]
    with pytest.raises(DeviceError, match=r"resume\(\) returned 1; legal: True or False"):
        device.resume()
    board.retains_memory = True
    assert device.resume() is device
