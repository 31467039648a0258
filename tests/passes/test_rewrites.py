"""Named rewrites: registered once, listed by pass, and disabled where a caller asks."""

from __future__ import annotations

import numpy as np
import pytest

from landbridge.errors import CompileError
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
