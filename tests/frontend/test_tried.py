"""A model that cannot be compiled shows its cause first, and what was tried after it below that."""

from __future__ import annotations

import pytest
from onnx import parser

import landbridge as lb
from landbridge.errors import AccessError, CompileError, ShapeError
from landbridge.frontend.tried import add_tried, tried_after


def test_attempts_are_listed_once_and_shortly() -> None:
    error = ShapeError("the cause\nand more of it")
    add_tried(error, [("one way", ShapeError("x" * 200)), ("another", ShapeError("the cause\nas before"))])
    add_tried(error, [("another", ShapeError("the cause"))])
    assert str(error).splitlines() == [
        "the cause",
        "and more of it",
        "Tried after that, without success:",
        f"  - one way: {'x' * 120}...",
        "  - another: the same",
    ]
    add_tried(error, [(f"way {number}", ShapeError("")) for number in range(4)])
    assert str(error).splitlines()[-2:] == ["  - way 1: ", "  - and 2 more"]


def test_nothing_is_listed_where_nothing_was_tried() -> None:
    error = ShapeError("the cause")
    add_tried(error, [])
    assert str(error) == "the cause"


def test_the_first_error_is_raised_with_its_own_cause() -> None:
    first = CompileError("first")
    first.__cause__ = AccessError("its cause")
    with pytest.raises(CompileError) as raised, tried_after(first, "again"):
        raise ShapeError("last")
    assert raised.value is first
    assert str(first) == "first\nTried after that, without success:\n  - again: last"
    assert str(first.__cause__) == "its cause"


#: Models that cannot be compiled, with the first words of the cause. Sizes, branches and loops are searched in vain.
REFUSED = {
    "ranges": (
        """g (float[1, n, 4] x, float[1, m, 4] y) => (float[k] r, float[q] bad) {
            a = Squeeze(x)
            b = Squeeze(y)
            r = Concat<axis = 0>(a, b)
            three = Constant<value_ints = [3, 5]>()
            wrong = Constant<value_ints = [7, 2]>()
            z = ConstantOfShape(three)
            bad = Reshape(z, wrong)
        }""",
        "Concat node 'r'|Reshape node 'bad'",
    ),
    "branches": (
        """g (float[n, m] x, bool yes) => (float[p, q] r, float[s] bad) {
            t = If(yes) <
                then_branch = one() => (float[n, m] u) { u = Exp(x) },
                else_branch = other() => (float[n, w] v) { v = Concat<axis = 1>(x, x) }>
            r = Relu(t)
            three = Constant<value_ints = [7, 7, 2]>()
            z = ConstantOfShape(three)
            bad = MatMul(z, z)
        }""",
        "If node 't': the branches give",
    ),
    "operators": (
        "g (float[n, m] x) => (float[p, q] r) { a = Relu(x) r = com.example.Unknown(a) }",
        "the model cannot be compiled; 1 problem",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_cause_comes_first(name: str) -> None:
    text, cause = REFUSED[name]
    imports = '["": 18, "com.example": 1]'
    model = parser.parse_model(f"<ir_version: 8, opset_import: {imports}> {text}")
    with pytest.raises(CompileError, match=f"^({cause})") as raised:
        lb.compile(model)
    lines = str(raised.value).splitlines()
    tried = [line for line in lines if line.startswith("Tried after")]
    assert len(tried) <= 1
    assert name == "operators" or tried
