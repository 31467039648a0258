"""Bounds to the byte: what shares one byte is refused, what only touches is taken. Each at both ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from onnx import TensorProto, helper

import landbridge as lb
from landbridge.errors import HostAccessError, InputError
from landbridge.memory import ledger
from landbridge.tensor.copy import copy_tensor

N = 64
WHERE = {"before": -N, "after": N}
SHARES_ONE = {"before": 1 - N, "after": N - 1}


@cache
def executable() -> lb.Executable:
    """``y = max(x, 3)`` of bytes."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.UINT8, (N,)) for name in "xy")
    three = helper.make_tensor("three", TensorProto.UINT8, (1,), [3])
    graph = helper.make_graph([helper.make_node("Max", ["x", "three"], ["y"])], "bytes", [x], [y], [three])
    return lb.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))


def memory() -> np.ndarray:
    return np.zeros(3 * N, np.uint8)


def part(array: np.ndarray, at: int) -> np.ndarray:
    return array[N + at : 2 * N + at]


def input_then_output(s: lb.Session, x: np.ndarray, y: np.ndarray) -> None:
    s.set_input_zero_copy("x", x)
    s.set_output_zero_copy(0, y)
    s.run()


def output_then_input(s: lb.Session, x: np.ndarray, y: np.ndarray) -> None:
    s.set_output_zero_copy(0, y)
    s.set_input_zero_copy("x", x)
    s.run()


def called(s: lb.Session, x: np.ndarray, y: np.ndarray) -> None:
    s(x, out=[y])


@pytest.mark.parametrize("bind", [input_then_output, output_then_input, called])
@pytest.mark.parametrize("end", WHERE)
def test_input_and_output(bind: Callable[..., None], end: str) -> None:
    array, s = memory(), lb.Session(executable(), num_threads=1)
    with pytest.raises(InputError, match="share 1 bytes"):
        bind(s, part(array, 0), part(array, SHARES_ONE[end]))
    s = lb.Session(executable(), num_threads=1)
    bind(s, part(array, 0), part(array, WHERE[end]))
    assert (part(array, WHERE[end]) == 3).all() and array.sum() == 3 * N


@pytest.mark.parametrize("end", WHERE)
def test_copies(end: str) -> None:
    array = memory()
    output = {"cause": "test", "tensor": "", "source": "cpu:0", "destination": "cpu:0"}
    part(array, 0)[:] = 1
    with pytest.raises(InputError, match="overlap"):
        ledger.copy_array(part(array, SHARES_ONE[end]), part(array, 0), **output)
    ledger.copy_array(part(array, WHERE[end]), part(array, 0), **output)
    assert array.sum() == 2 * N


@pytest.mark.parametrize("device", ["cpu", "sim:lazy"])
@pytest.mark.parametrize("back", [False, True])
def test_copies_of_tensors(device: str, back: bool) -> None:
    storage = lb.empty((3 * N,), dtype="uint8", device=device).storage

    def copy(nbytes: int) -> None:
        ends = [lb.Tensor(storage, "uint8", (nbytes,), None, start) for start in (0, N)]
        copy_tensor(*(ends[::-1] if back else ends), cause="test")

    # on the host its views refuse
    refused = (
        pytest.raises(HostAccessError) if device == "cpu" else pytest.raises(InputError, match="disjoint from the")
    )
    with refused:
        copy(N + 1)
    copy(N)


@pytest.mark.parametrize("end", WHERE)
def test_views(end: str) -> None:
    whole = lb.empty((3 * N,), dtype="uint8")

    def at(start: int) -> lb.Tensor:
        return lb.Tensor(whole.storage, "uint8", (N,), None, N + start)

    with at(0).host_view("w"):
        with at(WHERE[end]).host_view("w"):
            pass
        with pytest.raises(HostAccessError), at(SHARES_ONE[end]).host_view("w"):
            pass


def test_tensors_of_a_storage() -> None:
    storage = lb.empty((N,), dtype="uint8").storage
    for shape, strides, offset in (((N,), None, 1), ((N + 1,), None, 0), ((2,), (N,), 0), ((2,), (-1,), 0)):
        with pytest.raises(InputError, match="needs bytes"):
            lb.Tensor(storage, "uint8", shape, strides, offset)
    for shape, strides, offset in (((N - 1,), None, 1), ((N,), None, 0), ((2,), (N - 1,), 0), ((2,), (-1,), 1)):
        lb.Tensor(storage, "uint8", shape, strides, offset)


def test_what_a_run_uses() -> None:
    """Of memory that is bound, whoever touches one byte of it waits for runs."""
    storage = lb.empty((3 * N,), dtype="uint8").storage
    s = lb.Session(executable(), num_threads=1)
    s.set_output_zero_copy(0, lb.Tensor(storage, "uint8", (N,), None, N))
    ((_, tenant),) = storage.part()[0].live_tenants()
    for start, stop, touches in ((0, N, False), (0, N + 1, True), (2 * N, 3 * N, False), (2 * N - 1, 3 * N, True)):
        assert tenant.conflicts(start, stop, False) == touches
