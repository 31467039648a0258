"""Shapes of inputs: from the file, from ``shapes=``, from named dimensions."""

from __future__ import annotations

import pytest
from onnx import helper

from landbridge.errors import InputError, ShapeError, UnsupportedOperatorError
from landbridge.ir.types import shape_of
from tests.frontend.models import imported, model, value


def relu(*dims: int | str | None) -> object:
    return model([helper.make_node("Relu", ["x"], ["y"])], [value("x", list(dims))], ["y"])


def two(first: list[object], second: list[object]) -> object:
    nodes = [helper.make_node("Relu", ["a"], ["c"]), helper.make_node("Relu", ["b"], ["d"])]
    return model(nodes, [value("a", first), value("b", second)], ["c", "d"])


def shapes_of(module: object) -> list[tuple[int, ...]]:
    return [shape_of(a.type) for a in module.main.body.block.args]


def test_given_and_declared() -> None:
    assert shapes_of(imported(relu(2, 3))) == [(2, 3)]
    assert shapes_of(imported(relu("n", 3), {"x": [4, 3]})) == [(4, 3)]


def test_named_dimension_is_propagated() -> None:
    assert shapes_of(imported(two(["batch", 3], [2, "batch"]), {"a": (5, 3)})) == [(5, 3), (2, 5)]


def test_question_marks_are_not_a_name() -> None:
    with pytest.raises(UnsupportedOperatorError, match=r"'b' has unknown dimensions \(2, \?\)"):
        imported(two(["?", 3], [2, "?"]), {"a": (5, 3)})


def test_unknown_name_lists_inputs() -> None:
    with pytest.raises(InputError, match="no input 'z'; its inputs: x"):
        imported(relu(2, 3), {"z": (2, 3)})


@pytest.mark.parametrize("shape", [(2, 4), (2, 3, 1), (-1, 3)])
def test_shape_that_contradicts_the_file(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="'x'"):
        imported(relu("n", 3), {"x": shape})


def test_one_name_two_extents() -> None:
    with pytest.raises(ShapeError, match="'batch' is 5 in input 'a' and 6 in input 'b'"):
        imported(two(["batch", 3], [2, "batch"]), {"a": (5, 3), "b": (2, 6)})


def test_unknown_dimensions_and_operators_are_listed_together() -> None:
    nodes = [
        helper.make_node("Whence", ["x"], ["i"], name="where", domain="test.unknown"),
        helper.make_node("Whole", ["z"], ["u"], name="set", domain="test.unknown"),
    ]
    m = model(nodes, [value("x", ["n", 3]), value("z", [None])], [value("i", None, 7), value("u", None)])
    m.opset_import.append(helper.make_opsetid("test.unknown", 1))
    with pytest.raises(UnsupportedOperatorError) as error:
        imported(m)
    text = str(error.value)
    for part in (
        "4 problems",
        "--shape 'x=<n>x3'",
        "shapes={'z': (<axis 0>,)}",
        "Whence",
        "'where'",
        "Whole",
        "'set'",
    ):
        assert part in text, part
