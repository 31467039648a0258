"""Values that a device of memory of its own cannot use where they are: copied for it where they are by value."""

from __future__ import annotations

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device
from landbridge.errors import ZeroCopyError
from landbridge.testing.sim_board import SimBoardDeviceAPI
from landbridge.vm.by_value import ByValue
from tests.vm.test_io_memory import N, X, doubling


@pytest.fixture
def board() -> Device:
    return Device(SimBoardDeviceAPI(), 0)


def test_a_call_copies_what_is_by_value_alone(board: Device) -> None:
    session = lb.Session(doubling(), device=board)
    with pytest.raises(ZeroCopyError):
        session(X)
    for iteration in range(2):
        with lb.ledger() as copies:
            (y,) = session(ByValue(X + iteration, "pieces"))
        np.testing.assert_array_equal(np.asarray(y.to_device("cpu")), 2 * (X + iteration))
        assert [(each.cause, each.nbytes) for each in copies if not each.is_kernel] == [("pieces", X.nbytes)]


def test_what_can_be_used_in_place_is_not_copied(board: Device) -> None:
    session = lb.Session(doubling(), device=board)
    x = lb.empty((N,), dtype="float32", device=board, host_access="rw")
    np.asarray(x)[:] = X
    with lb.no_copies():
        (y,) = session({"x": ByValue(x, "pieces")}).values()
    np.testing.assert_array_equal(np.asarray(y.to_device("cpu")), 2 * X)
