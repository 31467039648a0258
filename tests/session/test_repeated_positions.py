"""Positions of new steps that a run gives: each once where they continue a state; of equal slots the last stays."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import landbridge as lb

CACHE = """
<ir_version: 10, opset_import: ["" : 18]>
cache (int64[S] q, float[8, 3] past, float[S, 3] x) => (float[8, 3] present{outputs})
<int64[1] last = {{1}}, int64[8] every = {{0, 1, 2, 3, 4, 5, 6, 7}}>
{{
    column = Unsqueeze (q, last)
    {seen}
    {write}
}}
"""
WRITES = {
    "ScatterND": "present = ScatterND (past, column, x)",
    "ScatterElements": "z = Shape (x) at = Expand (column, z) present = ScatterElements <axis = 0> (past, at, x)",
}


def session(write: str, *, continues: bool) -> lb.Session:
    """``continues``: positions are compared with those of the cache, so that they continue it; else they are slots."""
    outputs, seen = (", bool[S, 8] seen", "seen = LessOrEqual (every, column)") if continues else ("", "")
    text = CACHE.format(outputs=outputs, seen=seen, write=WRITES[write])
    return lb.Session(lb.compile(onnx.parser.parse_model(text)))


def rows(*numbers: float) -> np.ndarray:
    return np.repeat(np.array(numbers, np.float32)[:, None], 3, axis=1)


@pytest.mark.parametrize("write", WRITES)
def test_each_position_of_new_steps_is_given_once(write: str) -> None:
    each = session(write, continues=True)
    state = each.bind_state()
    each(np.array([0, 1]), rows(1, 2))
    for wrong in ([3, 3], [2, 2], [2, 4], [1, 3]):
        with pytest.raises(lb.InputError, match=r"at the positions \[\d, \d\] of 'q'; legal: each from \d to \d once"):
            each(np.array(wrong), rows(8, 9))
        assert state.length == 2
    with pytest.raises(lb.InputError, match="continues from 4 steps, the state has 2"):
        each(np.array([4, 5]), rows(8, 9))
    each(np.array([4, 2, 3]), rows(5, 3, 4))  # in any order
    each(np.array([5]), rows(6))
    assert state.length == 6
    assert np.asarray(state.tensors["past"])[:, 0].tolist() == [1, 2, 3, 4, 5, 6, 0, 0]


@pytest.mark.parametrize("write", WRITES)
def test_of_equal_slots_the_last_stays(write: str) -> None:
    each = session(write, continues=False)
    state = each.bind_state()
    each(np.array([3, 3, 1, 3]), rows(1, 2, 3, 4))
    each(np.array([1, 1]), rows(5, 6))
    assert state.capacity is None
    assert np.asarray(state.tensors["past"])[:, 0].tolist() == [0, 6, 0, 4, 0, 0, 0, 0]


def test_rows_of_a_batch_may_begin_at_one_position() -> None:
    """Which is the position of the first step, in each of them: not one of each step."""
    text = """
    <ir_version: 10, opset_import: ["" : 24]>
    cache (int64[2] q, float[2, 8, 3] past, float[2, S, 3] x) => (float[2, 8, 3] present)
    {
        present = TensorScatter <axis = 1> (past, x, q)
    }
    """
    each = lb.Session(lb.compile(onnx.parser.parse_model(text)))
    state = each.bind_state()
    for first in (0, 2):
        each(np.array([first, first]), np.ones((2, 2, 3), np.float32))
    assert state.length == 4 and np.asarray(state.tensors["past"])[:, :4].all()
