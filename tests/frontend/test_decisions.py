"""Questions about sizes are decided where they come up, and the walk goes on."""

from __future__ import annotations

import pytest
from onnx import parser

from landbridge.errors import UndecidedSizeError
from landbridge.frontend.onnx.decisions import MOST_DECIDED, Decisions
from landbridge.frontend.onnx.import_request import ImportRequest
from landbridge.frontend.onnx.importer import import_onnx
from landbridge.frontend.programs import Imported
from landbridge.ir.main_attributes import io_names
from landbridge.ir.types import shape_of
from landbridge.ir.verifier import verify
from landbridge.sizes.size import dimension, dimensions_of, undecided
from landbridge.targets import Target


def _imported(text: str) -> Imported:
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}')
    found = import_onnx(ImportRequest(model, (Target("llvm"),), dimensions={}))
    verify(found.module)
    return found


def _dimensions(found: Imported) -> dict[str, int]:
    """The smallest size of each dimension of the inputs."""
    arguments = found.module.main.body.block.args
    return {name: s.low for name, s in dimensions_of(e for a in arguments for e in shape_of(a.type)).items()}


POOLS = """pools (float[1, 1, h, w] x) => (float[1, 1, p, q] y) {
    a = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
    b = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (a)
    c = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (b)
    y = Relu (c)
}"""
SUM = """sum (float[n, 4] a, float[m, 4] b, float[k, 4] c) => (float[n, 4] y) {
    s = Add (a, b)
    y = Add (s, c)
}"""
IN_A_BRANCH = """chosen (float[n, 4] a, float[m, 4] b, bool yes) => (float[k, 4] y) {
    r = Relu (a)
    y = If (yes) <
        then_branch = added () => (float[k, 4] t) { t = Add (r, b) },
        else_branch = less () => (float[k, 4] e) { e = Sub (r, b) }>
}"""
#: Where all of the text is known to be shorter than 8, there is nothing to cut off.
CUT = """cut (float[n, 4] a, float[8, 4] b) => (float[k, 4] y) {
    zero = Constant <value = int64[1] {0}> ()
    eight = Constant <value = int64[1] {8}> ()
    c = Slice (a, zero, eight, zero)
    r = Relu (c)
    y = Add (r, b)
}"""


@pytest.mark.parametrize(
    ("text", "dimensions"),
    [(POOLS, {"h": 8, "w": 8}), (SUM, {"k": 1}), (IN_A_BRANCH, {"m": 1})],
    ids=["ranges", "equalities", "in_a_branch"],
)
def test_one_walk_decides_all(text: str, dimensions: dict[str, int]) -> None:
    found = _imported(text)
    assert list(found.walks) == [""]
    assert _dimensions(found) == dimensions
    assert all(op.name != "lb.view" for op in found.module.main.walk())


def test_what_was_built_for_sizes_that_are_excluded_is_built_again() -> None:
    found = _imported(CUT)
    assert list(found.walks) == ["", "nodes before were built for sizes that a decision has excluded"]
    assert io_names(found.module.main)[0] == ("a", "b")


def test_a_choice_that_proves_wrong_begins_another_walk() -> None:
    text = """wrong (float[1, n, 4] x) => (float[k] y) {
        a = Squeeze (x)
        shape = Constant <value = int64[1] {4}> ()
        y = Reshape (a, shape)
    }"""
    found = _imported(text)
    first, second = found.walks
    assert first == ""
    assert second.startswith("a choice of ranges was wrong: Reshape node 'y'")
    assert _dimensions(found) == {}


def test_tried_ranges_are_limited() -> None:
    decisions = Decisions(decided=MOST_DECIDED)
    error = undecided("n is large", dimension("n"), 5)
    assert not decisions.decide(error)
    assert Decisions().decide(error)
    assert not Decisions({"n": dimension("n")}).decide(error)


def test_the_widest_range_is_taken_and_the_others_wait() -> None:
    decisions = Decisions()
    assert decisions.decide(undecided("n is large", dimension("n"), 5))
    assert decisions.known == {"n": dimension("n", 5)}
    assert decisions.pending == [{"n": dimension("n", 1, 4)}]
    assert decisions.extent(dimension("n") + 1) == dimension("n", 5) + 1


def test_dimensions_of_the_enclosing_program_are_decided_there() -> None:
    n, m = dimension("n"), dimension("m")
    error = undecided("n is m", n, m, equal=True, needed=True)
    assert Decisions({"n": n, "m": m}).decide(error)
    assert not Decisions({"n": n, "m": m}, is_body=True).decide(error)
    assert isinstance(error, UndecidedSizeError)
