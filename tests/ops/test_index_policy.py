"""Indices out of range, in compiled code: reads take the nearest element, writes are dropped, checks raise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest

import landbridge as lb
from tests.witnesses.guard_pages import SIDES, GuardedRun, in_child

Array = np.ndarray[Any, Any]

X = np.arange(12, dtype=np.float32).reshape(4, 3)
WIDE = np.array([0, 3, -4, 4, -5, 100, -100, 2**62, -(2**62), 2**63 - 1, -(2**63)])


def clamped(indices: Array, extent: int) -> Array:
    """Where an index reads: negative ones from the end, the others from the nearest end."""
    return np.clip([int(i) + extent if i < 0 else int(i) for i in indices.reshape(-1)], 0, extent - 1).reshape(
        indices.shape
    )


def outputs(text: str, target: str, inputs: Sequence[Array]) -> Array:
    """The first output of a model in onnx's text form, each kernel between pages that it may not touch."""
    exe = lb.compile(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 18]> g {text}'), target)
    first, second = (GuardedRun(exe, side)(*inputs)[0] for side in SIDES)
    assert first.tobytes() == second.tobytes()
    return first


def scattered(x: Array, indices: Array, updates: Array) -> Array:
    """ScatterElements along axis 0, what is out of range dropped."""
    y = x.copy()
    for at in np.ndindex(indices.shape):
        index = int(indices[at])
        if -len(x) <= index < len(x):
            y[(index, *at[1:])] = updates[at]
    return y


UPDATES = -1 - np.arange(33, dtype=np.float32).reshape(11, 3)
CASES: dict[str, tuple[str, list[Array], Array]] = {
    "Gather": (
        "(float[4,3] x, int64[11] i) => (float[11,3] y) { y = Gather(x, i) }",
        [X, WIDE],
        X[clamped(WIDE, 4)],
    ),
    "GatherElements": (
        "(float[4,3] x, int64[11,1] i) => (float[11,1] y) { y = GatherElements <axis = 0> (x, i) }",
        [X, WIDE[:, None]],
        X[clamped(WIDE, 4), :1],
    ),
    "GatherND": (
        "(float[4,3] x, int64[11,2] i) => (float[11] y) { y = GatherND (x, i) }",
        [X, np.stack([WIDE, WIDE[::-1]], 1)],
        X[clamped(WIDE, 4), clamped(WIDE[::-1], 3)],
    ),
    "ScatterElements": (
        "(float[4,3] x, int64[11,3] i, float[11,3] u) => (float[4,3] y) { y = ScatterElements <axis = 0> (x, i, u) }",
        [X, np.stack([WIDE, WIDE[::-1], np.full(11, 9)], 1), UPDATES],
        scattered(X, np.stack([WIDE, WIDE[::-1], np.full(11, 9)], 1), UPDATES),
    ),
    "ScatterND": (
        "(float[4,3] x, int64[11,1] i, float[11,3] u) => (float[4,3] y) { y = ScatterND (x, i, u) }",
        [X, WIDE[:, None], UPDATES],
        scattered(X, np.repeat(WIDE[:, None], 3, 1), UPDATES),
    ),
    "ScatterND add": (
        "(float[4,3] x, int64[11,1] i, float[11,3] u) => (float[4,3] y)"
        " { y = ScatterND <reduction = \"add\"> (x, i, u) }",
        [X, WIDE[3:5].repeat(6)[:11, None], UPDATES],
        X,
    ),
    "OneHot": (
        "(int64[11] i, float[2] v) => (float[11,4] y) <int64 d = {4}> { y = OneHot (i, d, v) }",
        [WIDE, np.array([5, 7], np.float32)],
        np.array([[7 if -4 <= i < 4 and int(i) % 4 == k else 5 for k in range(4)] for i in WIDE], np.float32),
    ),
    "ReverseSequence": (
        "(float[4,3] x, int64[3] n) => (float[4,3] y) { y = ReverseSequence (x, n) }",
        [X, np.array([-9, 100, 2**62])],
        np.stack([X[:, 0], X[::-1, 1], X[::-1, 2]], 1),
    ),
    "GridSample": (
        "(float[1,1,4,3] x, float[1,1,4,2] g) => (float[1,1,1,4] y)"
        "{ y = GridSample <mode = \"nearest\", padding_mode = \"border\", align_corners = 1> (x, g) }",
        [X[None, None], np.array([[[[9, 9], [-9, 9], [1e30, -np.inf], [-1, -1]]]], np.float32)],
        np.array([[[[11, 9, 2, 0]]]], np.float32),
    ),
}  # fmt: skip


def check_case(name: str, target: str) -> None:
    text, inputs, wanted = CASES[name]
    np.testing.assert_array_equal(outputs(text, target, inputs), wanted)


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.sample(8)
def test_out_of_range(name: str, target: str) -> None:
    in_child(check_case, name, target)


def check_nan(mode: str, padding: str) -> None:
    text = (
        "(float[1,1,4,3] x, float[1,1,3,2] g) => (float[1,1,1,3] y)"
        f'{{ y = GridSample <mode = "{mode}", padding_mode = "{padding}"> (x, g) }}'
    )
    grid = np.array([[[[np.nan, 0], [0, np.nan], [-1, -1]]]], np.float32)
    outputs(text, "llvm", [X[None, None], grid])


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.sample(3)
def test_coordinates_that_are_no_numbers_read_nothing_else(mode: str, padding: str) -> None:
    in_child(check_nan, mode, padding)


CHECKED = {
    "Gather": ("indices[3] is 4; legal: -4..3. 8 of 11", 3),
    "GatherElements": ("indices[3, 0] is 4; legal: -4..3", 3),
    "GatherND": ("indices[0, 1] is -9223372036854775808; legal: -3..2", 0),
    "ScatterElements": ("indices[0, 1] is -9223372036854775808; legal: -4..3", 0),
    "ScatterND": ("indices[3, 0] is 4; legal: -4..3", 3),
    "ReverseSequence": ("sequence_lens[0] is -9; legal: 0..4", 0),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", CHECKED)
def test_checked_programs_raise(name: str) -> None:
    text, inputs, _ = CASES[name]
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 18]> g {text}')
    session = lb.Session(lb.compile(model, check_indices=True), num_threads=1)
    with pytest.raises(lb.IndexRangeError) as caught:
        session(*inputs)
    assert f"{name} node 'y': {CHECKED[name][0]}" in str(caught.value)
    legal = [np.where((v < 0) | (v > 2), 1, v) if v.dtype == np.int64 else v for v in inputs]
    (checked,) = session(*legal)  # a run after one that failed
    (plain,) = lb.Session(lb.compile(model), num_threads=1)(*legal)
    np.testing.assert_array_equal(np.asarray(checked), np.asarray(plain))


def test_programs_without_checks_have_none() -> None:
    """OneHot has no illegal index, constants are checked when they are compiled: neither costs a run anything."""
    for text in (CASES["OneHot"][0], "(float[4,3] x) => (float[2,3] y) <int64[2] i = {1, -4}> { y = Gather(x, i) }"):
        model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 18]> g {text}')
        kinds = {type(i).__name__ for i in lb.compile(model, check_indices=True).main.instructions}
        assert "HostCall" not in kinds
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 18]> g {CASES["Gather"][0]}')
    assert "HostCall" not in {type(i).__name__ for i in lb.compile(model).main.instructions}
