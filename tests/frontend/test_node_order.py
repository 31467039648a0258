"""Nodes in no topological order are sorted: of graphs, of graphs inside of nodes, of functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, NodeProto

import landbridge as lb
from landbridge.errors import ImportModelError, ModelWarning
from landbridge.frontend.onnx.node_order import all_nodes, sort_nodes

HEADER = '<ir_version: 8, opset_import: ["" : 17, "f" : 1]>'
CHAIN = HEADER + "g (float[2,3] x) => (float[2,3] y) { a = Neg(x) b = Exp(a) c = Add(b, a) y = Abs(c) }"
INSIDE = HEADER + (
    "g (float[2,3] x, bool k) => (float[2,3] y) { q = Neg(x) y = If(k) <then_branch = t () => (float[2,3] u) "
    "{ a = Exp(q) u = Add(a, q) }, else_branch = e () => (float[2,3] v) { v = Abs(q) }> }"
)
FUNCTION = HEADER + (
    "g (float[2,3] x) => (float[2,3] y) { y = f.top(x) }"
    '<domain: "f", opset_import: ["" : 17]> top (x) => (y) { a = Neg(x) y = Exp(a) }'
)
X = np.random.default_rng(0).standard_normal((2, 3), np.float32)
FEEDS: dict[str, Any] = {"x": X, "k": np.array(True)}


def backwards(text: str) -> ModelProto:
    model = onnx.parser.parse_model(text)
    for nodes in all_nodes(model):
        reversed_nodes = [NodeProto.FromString(node.SerializeToString()) for node in reversed(nodes.node)]
        del nodes.node[:]
        nodes.node.extend(reversed_nodes)
    return model


def results(model: ModelProto) -> Iterator[np.ndarray[Any, Any]]:
    program = lb.compile(model)
    yield from map(np.asarray, lb.Session(program)(*(FEEDS[spec.name] for spec in program.main.inputs)))


@pytest.mark.parametrize(("text", "reported"), [(CHAIN, "'g'"), (INSIDE, "'g', 't'"), (FUNCTION, "'top'")])
def test_it_is_as_if_it_were_sorted(text: str, reported: str) -> None:
    sorted_model, model = onnx.parser.parse_model(text), backwards(text)
    before = model.SerializeToString()
    with pytest.warns(ModelWarning, match=f"nodes of {reported} are in no topological order"):
        (found,) = results(model)
    assert model.SerializeToString() == before  # it is the caller's
    (wanted,) = results(sorted_model)
    np.testing.assert_array_equal(found, wanted)
    session = onnxruntime.InferenceSession(sorted_model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {value.name: FEEDS[value.name] for value in session.get_inputs()}
    np.testing.assert_allclose(found, session.run(None, feeds)[0], rtol=1e-6)


def test_what_is_sorted_stays_as_it_is() -> None:
    for text in (CHAIN, INSIDE, FUNCTION):
        model = onnx.parser.parse_model(text)
        before = model.SerializeToString()
        assert sort_nodes(model) == []
        assert model.SerializeToString() == before


def test_nodes_keep_their_order_where_they_can() -> None:
    text = HEADER + "g (float[2,3] x) => (float[2,3] y) { p = Neg(x) y = Add(r, p) q = Abs(x) r = Exp(q) s = Neg(x) }"
    model = onnx.parser.parse_model(text)
    assert sort_nodes(model) == ["g"]
    assert [node.output[0] for node in model.graph.node] == ["p", "q", "r", "y", "s"]


def test_a_name_inside_is_not_the_one_outside() -> None:
    """``a`` of the branch is its own: no edge to the ``a`` that a later node makes."""
    text = HEADER + (
        "g (float[2,3] x, bool k) => (float[2,3] y) { i = If(k) <then_branch = t () => (float[2,3] u) "
        "{ a = Exp(x) u = Neg(a) }, else_branch = e () => (float[2,3] v) { v = Abs(x) }> a = Neg(i) y = Neg(a) }"
    )
    model = onnx.parser.parse_model(text)
    assert sort_nodes(model) == []


@pytest.mark.parametrize("make", [lambda model: model, lambda model: model.SerializeToString()])
def test_a_cycle_is_reported(make: Callable[[ModelProto], Any]) -> None:
    text = HEADER + "g (float[2,3] x) => (float[2,3] y) { z = Neg(x) a = Add(b, x) b = Exp(a) y = Abs(b) }"
    with pytest.raises(ImportModelError, match=r"need each other's results in a cycle.*: 'a', 'b', 'y'"):
        lb.compile(make(onnx.parser.parse_model(text)))
