"""Kernels that keep more between their stages than a stack holds: open rows of any length, and long known ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import landbridge as lb
from landbridge.passes.lower.cost import TASKS

#: Relative to each result: exp within 2 ulp of f32, and a sum of four.
TOLERANCE = 2e-6
#: A row of more elements than fit a stack.
LONG = TASKS.stack_bytes // 4 + 1


def softmax(*shape: int | str) -> onnx.ModelProto:
    """A softmax over the last axis but one: between its stages it keeps a largest number for each of the last."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy")
    node = helper.make_node("Softmax", ["x"], ["y"], axis=len(shape) - 2)
    graph = helper.make_graph([node], "softmax", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def check(session: lb.Session, *shape: int) -> None:
    x = np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    exact /= exact.sum(-2, keepdims=True)
    found = np.asarray(session(x)[0])
    assert np.abs(found / exact - 1).max() < TOLERANCE


@pytest.mark.sample(2)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("target", ["llvm", "c"])
def test_rows_of_any_number_and_length(target: str, threads: int) -> None:
    session = lb.Session(lb.compile(softmax("N", 4, "L"), target), num_threads=threads)
    for rows in (1, 2, TASKS.enough - 1, TASKS.enough, TASKS.enough + 1, 3 * TASKS.enough - 1):
        for length in (1, 16, 1000):
            check(session, rows, 4, length)
    check(session, 2, 4, LONG)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_rows_of_several_axes(target: str) -> None:
    session = lb.Session(lb.compile(softmax("N", "M", 2, "L"), target))
    for shape in ((1, 1, 2, 1), (7, 20, 2, 33), (2, 3, 2, 20000), (9, 30, 2, 3)):
        check(session, *shape)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_one_row_of_any_length(target: str) -> None:
    session = lb.Session(lb.compile(softmax(5, "L"), target))
    for length in (1, 17, LONG):
        check(session, 5, length)


@pytest.mark.parametrize("rows", [1, 3])
def test_known_rows_that_are_long(rows: int, tmp_path: Path) -> None:
    executable = lb.compile(softmax(rows, 2, LONG))
    check(lb.Session(executable), rows, 2, LONG)
    executable.save(tmp_path / "softmax.lbx")
    check(lb.Session(lb.load(tmp_path / "softmax.lbx")), rows, 2, LONG)


def test_scratch_is_memory_of_the_plan_and_of_no_more_parts_than_rows() -> None:
    executable = lb.compile(softmax("N", 4, "L"))
    assert executable.scratch_bytes == 0
    (report,) = executable.memory
    row = 4 * 1024
    two_temporaries = {rows: report.planned_bytes.at({"N": rows, "L": 1024}) for rows in (1, 40, 10 * TASKS.enough)}
    assert two_temporaries == {1: 2 * row, 40: 80 * row, 10 * TASKS.enough: 2 * TASKS.enough * row}


def test_rows_that_fit_a_stack_take_it() -> None:
    executable = lb.compile(softmax("N", 4, "L"), dims={"L": "1..1024"})
    assert executable.memory == ()
    assert executable.scratch_bytes == 2 * 4 * 1024


def test_the_sanitizer_sees_scratch_as_an_operand() -> None:
    check(lb.Session(lb.compile(softmax(3, 2, LONG), sanitize=True)), 3, 2, LONG)
