"""Named rewrites: registered once, listed by pass, and disabled where a caller asks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tests.passes.graphs import graph, relu
from tests.passes.nets import conv, elementwise, reduce_last, slice_last, transpose
from tests.passes.run_main import run_main
from xdsl.ir import SSAValue

from landbridge.compiler.compilation import PIPELINE
from landbridge.errors import CompileError
from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.module import IRModule
from landbridge.passes.registry import names, rewrites, run_pipeline
from landbridge.passes.rewrites import rewrite, without
from landbridge.targets import Target

VIEWED = """
!t = tensor<4xf32, #lb.vdevice<0, "global">>
!h = tensor<2xf32, #lb.vdevice<0, "global">>
func.func @main() -> !h {
  %w = "lb.constant"() {symbol = @w} : () -> !t
  %v = "lb.view"(%w) {offset = 2 : i64} : (!t) -> !h
  func.return %v : !h
}
"""


def module() -> IRModule:
    return IRModule.parse(VIEWED, (Target("llvm"),), constants={"w": np.zeros(4, np.float32)})


def test_every_rewrite_is_of_a_pass_and_says_what_it_does() -> None:
    assert {each.name.partition(".")[0] for each in rewrites()} <= set(names())
    assert all(each.doc for each in rewrites())


def test_those_of_one_pass_are_listed() -> None:
    found = [each.name for each in rewrites("fold_scale")]
    assert found == ["fold_scale.copy", "fold_scale.steps", "fold_scale.weights"]
    assert rewrites("lower") == []


def test_a_disabled_rewrite_is_not_done_and_others_are() -> None:
    assert "lb.view" not in run_pipeline(module(), ["fold"]).print()
    assert "lb.view" in run_pipeline(module(), ["fold"], disabled=["fold.view"]).print()
    assert "lb.view" not in run_pipeline(module(), ["fold"], disabled=["fold.pack"]).print()
    assert "lb.view" not in run_pipeline(module(), ["fold"]).print()  # for one pipeline alone


def test_an_unknown_rewrite_is_an_error_before_anything_runs() -> None:
    given = module()
    before = given.print()
    with pytest.raises(CompileError, match=r"no rewrite 'fold\.views' \(did you mean 'fold\.view'"):
        run_pipeline(given, ["fold"], disabled=["fold.views"])
    assert given.print() == before


def test_two_functions_may_not_have_one_name() -> None:
    with pytest.raises(CompileError, match=r"two rewrites are called 'fold\.view'"):

        @rewrite("fold.view", "another one")
        def another() -> None: ...


def test_contexts_add_up_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("landbridge.passes.rewrites._rewrites", {})

    @rewrite("test.answer", "gives the answer")
    def answer() -> int:
        return 42

    with without(["test.other"]):
        assert answer() == 42
        with without(["test.answer"]):
            assert answer() is None
        assert answer() == 42


def network(g: GraphBuilder, x: SSAValue) -> Sequence[SSAValue]:
    """Convolutions with epilogues, one of 12 channels, a residual sum, maxima of rows, a transpose and a slice."""
    first = elementwise(g, lambda s, a: a * 0.5 + 1.0, conv(g, x, 16, 3))
    negated = elementwise(g, lambda s, a: s.neg(a), conv(g, first, 16))
    second = relu(g, elementwise(g, lambda s, a, b: a + b, negated, x))
    joined = g.concat([second, first, conv(g, second, 12)], 1)
    least = elementwise(g, lambda s, a, b: a - b, joined, reduce_last(g, joined, kind="max"))
    return [transpose(g, least, (0, 1, 3, 2)), slice_last(g, second, 1, 2)]


def exact_network() -> IRModule:
    """The network with weights of 1 and -1: no sum of it is rounded, so that its order does not matter."""
    module = graph([((1, 16, 4, 4), "float32")], network)
    for symbol, array in module.constants.items():
        module.constants[symbol] = np.copysign(np.float32(1), array)
    return module


#: A rewrite without which no memory is planned.
NEEDED = "plan.bytes"


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", ["", *(each.name for each in rewrites() if each.name != NEEDED)])
def test_a_network_computes_the_same_without_any_one_rewrite(name: str) -> None:
    expected = run_main(exact_network())
    module = run_pipeline(exact_network(), PIPELINE, disabled=[name] if name else [])
    for found, array in zip(run_main(module)[-len(expected) :], expected, strict=True):
        np.testing.assert_array_equal(found, array, strict=True)


def test_without_a_rewrite_that_is_needed_the_pass_says_so() -> None:
    with pytest.raises(CompileError, match="no rule plans its memory of 1 dimensions"):
        run_pipeline(exact_network(), PIPELINE, disabled=[NEEDED])
