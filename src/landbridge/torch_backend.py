"""The backend ``landbridge`` of ``torch.compile``: graphs that Dynamo finds in a module run as compiled programs.

``torch.compile(model, backend="landbridge", options={"target": "llvm", "num_threads": 4})``: ``device`` and
``num_threads`` are of ``landbridge.Session``, every other option is of ``landbridge.compile``. It is for inference:
torch itself runs a graph that needs gradients, changes its inputs or returns other than tensors, with a
FallbackWarning.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import torch

from landbridge.compiler.api import compile
from landbridge.errors import FallbackWarning
from landbridge.frontend.torch.export import quiet
from landbridge.frontend.torch.fast_paths import expand_fast_paths
from landbridge.reporting.warning_notes import warn
from landbridge.session import Session

#: Returns how often a tensor was changed in place, by torch's count.
_changes = attrgetter("_version")
#: The most programs of one graph that are retained, for different weights and numbers.
_RETAINED = 16
_OF_SESSION = ("device", "num_threads")


def landbridge_backend(
    graph: torch.fx.GraphModule, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """Returns a callable that runs ``graph``; Dynamo calls this, and torch cannot export inside it, so the first call
    compiles.
    """
    reason = _why_not(graph, example_inputs)
    if reason is not None:
        warn(f"torch runs this graph itself: {reason}", FallbackWarning)
        return graph.forward  # type: ignore[no-any-return]
    return CompiledGraph(graph, example_inputs, options or {})


class CompiledGraph:
    """A ``graph`` compiled for the weights of its call; it is compiled again for other or changed weights."""

    def __init__(self, graph: torch.fx.GraphModule, example_inputs: Sequence[Any], options: Mapping[str, Any]) -> None:
        self._graph = graph
        self._options = {name: value for name, value in options.items() if name not in _OF_SESSION}
        self._session_options = {name: value for name, value in options.items() if name in _OF_SESSION}
        self._weights = [number for number, given in enumerate(example_inputs) if _is_weight(given)]
        placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self._values = [number for number, node in enumerate(placeholders) if _is_number(node)]
        self._inputs = [
            number
            for number, given in enumerate(example_inputs)
            if isinstance(given, torch.Tensor) and number not in (*self._weights, *self._values)
        ]
        #: By numbers and the identity of weights: these, which stay alive so that no other tensor gets the identity of
        #: one, the count of changes of each, and what runs for them. Tensors are no keys: they compare by elements.
        self._created: dict[tuple[float, ...], tuple[list[Any], list[int], Session | None]] = {}

    def __call__(self, *args: Any) -> list[Any]:
        """Returns the results of the graph, new tensors; ``args`` are its placeholders in order. Raises what
        ``compile`` does.
        """
        session = self._session_for(args)
        if session is None:
            return self._graph(*args)  # type: ignore[no-any-return]
        given = [args[number].detach().contiguous() for number in self._inputs]
        return [torch.from_dlpack(result) for result in session(*given)]

    def _session_for(self, args: Sequence[Any]) -> Session | None:
        """Returns the Session for the weights among ``args``; None where torch has to run the graph."""
        weights = [args[number] for number in self._weights]
        key = (*(args[number].item() for number in self._values), *map(id, weights))
        changes = [0 if weight.is_inference() else _changes(weight) for weight in weights]
        found = self._created.get(key)
        if found is None or found[1] != changes:
            found = self._created[key] = (weights, changes, self._compiled(args))
            if len(self._created) > _RETAINED:
                del self._created[next(iter(self._created))]
        return found[2]

    def _compiled(self, args: Sequence[Any]) -> Session | None:
        known = {number: args[number].detach() for number in self._weights}
        known |= {number: args[number].item() for number in self._values}
        given = tuple(args[number].detach() for number in self._inputs)
        with torch.no_grad(), quiet():
            module, open_axes = _inference_module(self._graph, known)
            exported = torch.export.export(module, given, dynamic_shapes=open_axes).run_decompositions({})
            signature = exported.graph_signature
            changed = [*signature.user_inputs_to_mutate.values(), *signature.buffers_to_mutate.values()]
        if changed:
            warn(f"torch runs this graph itself: it changes {', '.join(changed)} in place", FallbackWarning)
            return None
        program = compile(exported, **self._options)
        return Session(program, **self._session_options)


def _is_weight(given: Any) -> bool:
    """Returns whether Dynamo lifted ``given`` from the module: a parameter, or a tensor that it marks as static."""
    return isinstance(given, torch.nn.Parameter) or hasattr(given, "_dynamo_static_input_type")


def _is_number(node: torch.fx.Node) -> bool:
    """Returns whether a placeholder is a Python number, which Dynamo passes as a tensor and reads back."""
    value = node.meta.get("example_value")
    reads = all(getattr(user.target, "__name__", user.target) == "item" for user in node.users)
    return isinstance(value, torch.Tensor) and value.ndim == 0 and value.dtype == torch.float64 and reads


def _why_not(graph: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> str | None:
    """Returns why ``graph`` cannot be compiled, None where it can."""
    tensors = [given for given in example_inputs if isinstance(given, torch.Tensor)]
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return "gradients are wanted; call it in torch.no_grad() or torch.inference_mode()"
    elsewhere = next((tensor.device for tensor in tensors if tensor.device.type != "cpu"), None)
    if elsewhere is not None:
        return f"it has tensors on {elsewhere}, and the host's memory is legal"
    known = [node.meta.get("example_value") for node in graph.graph.nodes if node.op == "placeholder"]
    extents = {str(extent) for value in known if isinstance(value, torch.Tensor) for extent in value.shape}
    if any(isinstance(value, torch.SymInt) and str(value) not in extents for value in known):
        return "it takes a number that changes and is not an extent of a tensor; pass it as a tensor"
    (output,) = [node for node in graph.graph.nodes if node.op == "output"]
    results = [getattr(node, "meta", {}).get("example_value") for node in output.args[0]]
    if not results or not all(isinstance(result, torch.Tensor) for result in results):
        return "it returns something other than tensors"
    return None


def _inference_module(
    graph: torch.fx.GraphModule, known: Mapping[int, Any]
) -> tuple[torch.fx.GraphModule, tuple[dict[int, Any], ...]]:
    """Returns ``graph`` as a module that contains the ``known`` values, by index of placeholder, and takes only
    tensors.

    Also returns which axes of these tensors are open, for ``torch.export``. A size among the placeholders is read from
    a tensor.
    """
    created = torch.fx.GraphModule(graph, copy.deepcopy(graph.graph))
    placeholders = [node for node in created.graph.nodes if node.op == "placeholder"]
    extents: dict[str, tuple[Any, int]] = {}
    open_axes = []
    for number, node in enumerate(placeholders):
        shape = getattr(node.meta.get("example_value"), "shape", None)
        if number in known or shape is None:
            continue
        axes = {axis: extent for axis, extent in enumerate(shape) if isinstance(extent, torch.SymInt)}
        open_axes.append(dict.fromkeys(axes, torch.export.Dim.AUTO))
        for axis, extent in axes.items():
            extents.setdefault(str(extent.node.expr), (node, axis))
    for number, node in enumerate(placeholders):
        value = node.meta.get("example_value")
        with created.graph.inserting_after(placeholders[-1]):
            if isinstance(known.get(number), torch.Tensor):
                created.register_buffer(f"weight_{number}", known[number])
                replacement = created.graph.get_attr(f"weight_{number}")
            elif isinstance(value, torch.SymInt):
                replacement = created.graph.call_function(torch.ops.aten.sym_size.int, extents[str(value.node.expr)])
            elif number in known:
                for user in list(node.users):
                    user.replace_all_uses_with(known[number])
                    created.graph.erase_node(user)
                created.graph.erase_node(node)
                continue
            else:
                continue
        node.replace_all_uses_with(replacement)
        created.graph.erase_node(node)
    expand_fast_paths(created.graph)
    created.recompile()
    return created.eval(), tuple(open_axes)
