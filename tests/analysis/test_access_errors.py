"""An AccessError says whose kernel it is: one generated from a model is a bug to report, IR is its author's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from tests.sanitizer.test_sanitized_programs import PICK

import landbridge as lb
from landbridge.errors import AccessError
from landbridge.operators import REGISTRY, kernel
from landbridge.passes.lower.operands import Operands

MODEL = '<ir_version: 8, opset_import: ["" : 17]> g (float[5,7] x) => (float[5,7] z) { y = Exp(x) z = Softmax(y) }'


@pytest.fixture
def stores_two_further(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lowering with a bug: what is stored goes two elements further."""
    correct = Operands.where

    def where(self: Operands, *args: Any) -> Any:
        place = correct(self, *args)
        return place if isinstance(place, tuple) else self.code.add(place, 2)

    monkeypatch.setattr(Operands, "where", where)


@pytest.fixture(autouse=True)
def no_operators_of_other_tests() -> Iterator[None]:
    """Messages name no operator that another test of this process defined."""
    with REGISTRY.isolated():
        yield


@pytest.mark.usefixtures("stores_two_further")
def test_a_generated_kernel_is_a_bug_to_report() -> None:
    with pytest.raises(AccessError) as caught:
        lb.compile(onnx.parser.parse_model(MODEL))
    output = str(caught.value)
    assert f"@{caught.value.kernel} " in output
    assert "it has 7" in output
    assert "a bug in Landbridge, not in the model" in output
    assert "report it" in output
    assert "sanitize=True" in output
    assert "from node 'y+z' of the model" in output
    assert "clamp" not in output, "an index that is not the user's"


def test_what_it_names_as_the_way_out_compiles(stores_two_further: None) -> None:
    lb.compile(onnx.parser.parse_model(MODEL), sanitize=True)


def test_given_ir_is_its_authors() -> None:
    with pytest.raises(AccessError, match="IR that was given to compile: clamp or test the index") as caught:
        lb.compile(PICK, sanitize=False)
    assert caught.value.kernel == "pick"
    assert "bug" not in str(caught.value)


@pytest.mark.usefixtures("stores_two_further")
def test_an_operator_defined_elsewhere_is_named() -> None:
    @kernel("elsewhere", "Twice")
    def twice(c: Any, x: Any) -> Any:
        return c.elementwise("twice", [x], lambda s, v: v + v)

    with pytest.raises(AccessError, match=rf"defined elsewhere, Twice \({__name__}\), that has to clamp"):
        lb.compile(onnx.parser.parse_model(MODEL))


def test_it_survives_pickling() -> None:
    import pickle

    found = pickle.loads(pickle.dumps(AccessError("text", "kernel")))
    assert (str(found), found.kernel) == ("text", "kernel")
    assert np.all([isinstance(found, AccessError), isinstance(found, lb.VerifyError)])
