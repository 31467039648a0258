"""Every implementation of an operator by a key, and each of them broken: what it computes is off by 7.

The keys are ``ai.onnx.Relu@1 kernel``, with the first opset version, for what the registry has; ``ai.onnx.HannWindow
function`` for operators that ONNX alone defines, and ``ai.onnx.If import`` for those that the importer resolves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, update_wrapper
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx_ir as ir
from xdsl.ir import SSAValue

from landbridge.frontend.onnx import graph_walk
from landbridge.frontend.onnx.bodies.node_facts import NodeFacts
from landbridge.frontend.onnx.main_function import CONTROL_FLOW
from landbridge.frontend.onnx.row_sequences import RowSequence
from landbridge.frontend.onnx.sequences import OF_SEQUENCES, TensorSequence
from landbridge.operators import REGISTRY, Definition, HostOperator, Implementation, Kernel
from landbridge.operators.implementations import is_built_in
from landbridge.ops.context import OpContext
from tests.docs.operator_table import defined_by_onnx

KINDS: tuple[type[Any], ...] = (Definition, Kernel, HostOperator)

#: Called with the key of an implementation that is used.
Noted = Callable[[str], None]


def key_of(each: Implementation) -> str:
    """The key of an implementation of the registry."""
    return f"{each.domain or 'ai.onnx'}.{each.op_type}@{each.since} {each.NOUN}"


def registered() -> dict[str, Implementation]:
    """The package's own implementations, by key."""
    return {key_of(each): each for kind in KINDS for each in REGISTRY.of_kind(kind) if is_built_in(each)}


def keys() -> list[str]:
    """The keys of everything that docs/operator-table.md lists, sorted."""
    known = {(each.domain, each.op_type) for kind in (Kernel, Definition) for each in REGISTRY.of_kind(kind)}
    functions = [name for name in defined_by_onnx() if ("", name) not in known]
    at_import = {*CONTROL_FLOW, *OF_SEQUENCES}
    others = [*(f"ai.onnx.{name} function" for name in functions), *(f"ai.onnx.{name} import" for name in at_import)]
    return sorted([*registered(), *others])


class _Watched:
    """Stands for the function of an implementation, as which rules and bounds know it too."""

    def __init__(self, function: Callable[..., Any], call: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self._function, self._call = function, call

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._call(*args, **named)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._function

    def __hash__(self) -> int:
        return hash(self._function)


@contextmanager
def watched(broken: str, note: Noted) -> Iterator[None]:
    """Has the implementation of the key ``broken`` compute something else, none for ``""``; ``note`` hears which ones
    are used, of which ``broken`` is only heard where its results were changed."""
    with REGISTRY.isolated(), _watched_walk(broken, note):
        for key, each in registered().items():
            call = _CALLS[type(each)]
            function = _Watched(each.function, partial(call, each, key == broken, partial(note, key)))
            REGISTRY.add(replace(each, function=function))  # type: ignore[type-var]
        yield


def _kernel(each: Kernel, is_broken: bool, note: Callable[[], None], c: OpContext, *inputs: Any) -> Any:
    result = each.function(c, *inputs)
    if not is_broken:
        note()
        return result
    return _off(c, result, note)


def _host(each: HostOperator, is_broken: bool, note: Callable[[], None], *inputs: Any, **attributes: Any) -> Any:
    found = each.function(*inputs, **attributes)
    if each.in_order:
        return lambda *arrays: _array_off(found(*arrays), is_broken, note)
    return _array_off(found, is_broken, note)


def _definition(each: Definition, is_broken: bool, note: Callable[[], None], n: NodeFacts) -> str | None:
    text = each.function(n)
    name = next((output for output in each.outputs if output in n.wanted), None)
    if text is None:
        return None
    note()
    if not is_broken or name is None:
        return text
    right = f"{name}_right"
    by = f"off_f = Constant <value_float = 7.0> () off_by = CastLike (off_f, {right})"
    return re.sub(rf"\b{name}\b", right, text) + f" {by} {name} = Add ({right}, off_by)"


_CALLS: dict[type[Any], Callable[..., Any]] = {Kernel: _kernel, HostOperator: _host, Definition: _definition}


@contextmanager
def _watched_walk(broken: str, note: Noted) -> Iterator[None]:
    """Watches what is in no registry: functions of ONNX, and nodes that the importer resolves."""
    by_functions: set[ir.Node] = set()
    results, function_body = graph_walk.GraphWalk._results, graph_walk.function_body

    def body(node: ir.Node, opset: int, inputs: Sequence[Any]) -> ir.Function | None:
        found = function_body(node, opset, inputs)
        if found is not None:
            by_functions.add(node)
        return found

    def of_node(walk: graph_walk.GraphWalk, node: ir.Node) -> Sequence[Any]:
        found = results(walk, node)
        name = f"ai.onnx.{node.op_type}"
        key = f"{name} function" if node in by_functions else f"{name} import"
        is_sequence = any(isinstance(x, TensorSequence | RowSequence) for x in found) or any(
            isinstance(walk.values.get(v), TensorSequence | RowSequence) for v in node.inputs if v is not None
        )
        if node.domain or not (node in by_functions or node.op_type in CONTROL_FLOW or is_sequence):
            return found
        if key != broken:
            note(key)
            return found
        c = OpContext(walk.g, node.op_type, walk.opset_of(node), {}, len(found), {})
        return list(_off(c, found, partial(note, key)))

    with patch.object(graph_walk, "function_body", body), patch.object(graph_walk.GraphWalk, "_results", of_node):
        yield


def _off(c: OpContext, result: Any, note: Callable[[], None]) -> Any:
    """What a node makes, the first of it off by 7, or by 1 if it is sizes."""
    if isinstance(result, TensorSequence) and not result.elements:
        note()
        return TensorSequence((np.zeros(1, np.float32),))
    if isinstance(result, TensorSequence):
        return TensorSequence(tuple(_off(c, each, note) for each in result.elements))
    if isinstance(result, RowSequence):
        return replace(result, rows=_off(c, result.rows, note))
    if isinstance(result, np.ndarray):
        if result.dtype == object:  # formulas of dimensions
            note()
            return np.asarray(result - 1, object)
        return _array_off(result, True, note)
    if isinstance(result, SSAValue):
        note()
        is_truth = c.dtype(result) == "bool"
        return c.elementwise("off", [result], lambda s, v: v.eq(0) if is_truth else v + 7)
    return [_off(c, result[0], note), *result[1:]] if isinstance(result, Sequence) and result else result


def _array_off(found: Any, is_broken: bool, note: Callable[[], None]) -> Any:
    note()
    if not is_broken:
        return found
    if isinstance(found, tuple | list):
        return [_array_off(found[0], True, note), *found[1:]]
    array = np.asarray(found)
    return np.asarray(~array if array.dtype == bool else (array + array.dtype.type(7)).astype(array.dtype))
