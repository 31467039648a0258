"""What does not fit an input of open dimensions is told when it is given, as it is where sizes are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import landbridge as lb
from landbridge.errors import InputError, ZeroCopyError


@pytest.fixture(scope="module", params=["n", 2], ids=["open", "static"])
def session(request: pytest.FixtureRequest) -> lb.Session:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (request.param, 4)) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "one", [x], [y])
    return lb.Session(lb.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)))


FITTING = np.arange(8, dtype=np.float32).reshape(2, 4)
CASTS = "it takes float32; nothing is cast silently"
MEMORY = "cannot be bound by reference"
DENSE = "the memory is not C-contiguous"


@pytest.mark.parametrize(
    ("value", "by_value", "borrowed"),
    [
        (FITTING.astype(np.float64), CASTS, CASTS),
        (FITTING.astype(np.int32), CASTS, CASTS),
        (lb.asarray(FITTING.astype(np.float64)), CASTS, CASTS),
        ([[1, 2, 3, 4]] * 2, CASTS, MEMORY),
        ([[1], [1, 2]], "numpy makes no array of it", MEMORY),
        ("text", "is none of a tensor's", MEMORY),
        (None, "is none of a tensor's", MEMORY),
        (np.array([["a"] * 4] * 2), "is none of a tensor's", "is none of a tensor's"),
    ],
)
def test_what_does_not_fit_is_reported_when_it_is_given(
    session: lb.Session, value: Any, by_value: str, borrowed: str
) -> None:
    with pytest.raises(InputError, match=f"input 'x': .*{by_value}"):
        session.set_input("x", value)
    with pytest.raises(InputError, match=f"input 'x': .*{borrowed}"):
        session.set_input_zero_copy("x", value)


@pytest.mark.parametrize("value", [np.repeat(FITTING, 2, axis=1)[:, ::2], FITTING[::-1], np.asfortranarray(FITTING)])
def test_memory_with_gaps_is_copied_or_refused(session: lb.Session, value: Any) -> None:
    with pytest.raises(ZeroCopyError, match=f"input 'x': {DENSE}"):
        session.set_input_zero_copy("x", value)
    session.set_input("x", value)
    session.run()
    assert np.array_equal(np.asarray(session.get_output(0)), value)


def test_what_was_bound_stays_bound(session: lb.Session) -> None:
    session.set_input_zero_copy("x", FITTING)
    with pytest.raises(InputError):
        session.set_input_zero_copy("x", FITTING.astype(np.float64))
    session.run()
    assert np.array_equal(np.asarray(session.get_output(0)), FITTING)
