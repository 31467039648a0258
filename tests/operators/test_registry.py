"""The registry of operators: versions, duplicates, which implementation wins, and what the importer says of none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest

import landbridge as lb
from landbridge.frontend.onnx.bodies.node_facts import NodeFacts
from landbridge.frontend.onnx.known_operators import implementations
from landbridge.operators import REGISTRY, Definition, HostOperator, Kernel, definition, host_operator, kernel
from landbridge.operators.implementations import is_built_in
from landbridge.ops.context import OpContext, Operand

KINDS = (Kernel, Definition, HostOperator)


@pytest.fixture(autouse=True)
def own_registry() -> Iterator[None]:
    with REGISTRY.isolated():
        yield


def add_kernel(name: str = "Op", since: int = 1, value: float = 1.0) -> None:
    @kernel("test", name, since=since)
    def plus(c: OpContext, x: Operand) -> Operand:
        return c.elementwise("plus", [x], lambda s, v: v + value)


def add_definition(name: str = "Op", since: int = 1, value: float = 2.0) -> None:
    @definition("test", name, since=since, inputs="X", outputs="Y")
    def plus(n: NodeFacts) -> str:
        return f"c = Constant <value_float = {value}> ()  Y = Add (X, c)"


def add_host_operator(name: str = "Op", since: int = 1, value: float = 3.0) -> None:
    @host_operator("test", name, since=since)
    def plus(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return x + np.float32(value)


ADD = {Kernel: add_kernel, Definition: add_definition, HostOperator: add_host_operator}


def result(opset: int = 1, name: str = "Op") -> float:
    """What the node makes of 0."""
    opsets = f'"": 17, "test": {opset}'
    text = f"<ir_version: 8, opset_import: [{opsets}]> g (float[3] x) => (float[3] y) {{ y = test.{name}(x) }}"
    (y,) = lb.Session(lb.compile(onnx.parser.parse_model(text)))(np.zeros(3, np.float32))
    return float(np.asarray(y)[1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")
def test_each_kind_takes_domain_name_and_version(kind: type[Any]) -> None:
    ADD[kind]("Op", 1, 1.0)
    ADD[kind]("Op", 5, 4.0)
    assert (result(1), result(4), result(5), result(9)) == (1, 1, 4, 4)
    assert [each.since for each in REGISTRY.of_kind(kind) if each.domain == "test"] == [1, 5]


@pytest.mark.filterwarnings("error")
def test_kernels_go_before_definitions_and_those_before_host_operators() -> None:
    for kind in reversed(KINDS):
        ADD[kind]()
    assert implementations("test", "Op", 1) == ["kernel", "definition", "host operator"]
    assert [type(each) for each in REGISTRY.find_all("test", "Op", 1)] == [Kernel, Definition, HostOperator]
    assert result() == 1
    add_definition("Other")
    add_host_operator("Other")
    assert result(name="Other") == 2


def test_a_definition_leaves_what_it_cannot_express_to_a_host_operator() -> None:
    @definition("test", "Op", inputs="X", outputs="Y")
    def refused(n: NodeFacts) -> str:
        raise n.unsupported("never")

    with pytest.raises(lb.UnsupportedOperatorError, match=r"test\.Op node 'y': never"):
        result(name="Op")
    add_host_operator()
    with pytest.warns(lb.FallbackWarning):
        assert result() == 3


@pytest.mark.parametrize("kind", KINDS)
def test_two_functions_for_one_version(kind: type[Any]) -> None:
    ADD[kind]()
    ADD[kind]()  # a module that is imported again
    other = {
        Kernel: kernel("test", "Op"),
        Definition: definition("test", "Op", inputs="X", outputs="Y"),
        HostOperator: host_operator("test", "Op"),
    }
    with pytest.raises(lb.CompileError, match=rf"two {kind.NOUN}s for test\.Op since opset 1: .*plus and .*result; "):
        other[kind](result)


def test_names_of_the_default_domain() -> None:
    assert REGISTRY.find(Kernel, "ai.onnx", "Relu", 17) is REGISTRY.find(Kernel, "", "Relu", 17) is not None
    host_operator("ai.onnx", "Made")(np.sort)
    assert REGISTRY.find(HostOperator, "", "Made", 1) is not None


def test_the_error_names_the_ways_to_add_one_the_definition_first() -> None:
    with pytest.raises(lb.UnsupportedOperatorError) as caught:
        result(name="Absent")
    output = str(caught.value)
    assert "operator test.Absent (opset 1) of node 'y' has no implementation: define it by" in output
    places = [output.index(way) for way in ("operators.definition", "operators.kernel", "landbridge.host_operator")]
    assert places == sorted(places)


def test_the_error_says_what_is_near() -> None:
    add_kernel(since=7)
    with pytest.raises(
        lb.UnsupportedOperatorError, match=r"test\.Op \(opset 2\) .*; it is implemented from opset 7 on"
    ):
        result(2)
    with pytest.raises(lb.UnsupportedOperatorError, match=r"no implementation \(did you mean 'Op'\?\)"):
        result(7, "Opp")


def test_what_a_test_registers_is_gone_after_it() -> None:
    with REGISTRY.isolated():
        add_kernel()
        assert not all(is_built_in(each) for each in REGISTRY.of_kind(Kernel))
    assert REGISTRY.find(Kernel, "test", "Op", 1) is None


@pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")
def test_former_decorators() -> None:
    """Of documents of earlier versions, in their order of arguments."""
    from landbridge.frontend.onnx.bodies.registry import defined
    from landbridge.ops.registry import operator

    with pytest.warns(DeprecationWarning, match=r"use landbridge\.operators\.kernel") as reported:

        @operator("Old", domain="test", since=2)
        def old(c: OpContext, x: Operand) -> Operand:
            return c.elementwise("old", [x], lambda s, v: v + 6.0)

    assert reported[0].filename == __file__
    with pytest.warns(DeprecationWarning, match=r"use landbridge\.operators\.definition") as reported:

        @defined("test", "OldBody", "X", "Y")
        def old_body(n: NodeFacts) -> str:
            return "c = Constant <value_float = 7.0> ()  Y = Add (X, c)"

    assert reported[0].filename == __file__
    assert (result(2, "Old"), result(1, "OldBody")) == (6, 7)
