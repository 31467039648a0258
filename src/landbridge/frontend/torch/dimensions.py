"""Reads the dimensions of an exported program of torch: expressions of symbols, and their ranges."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

import onnx_ir as ir

from landbridge.records import record
from landbridge.sizes.dim import Dim


@record(frozen=True)
class TorchDimensions:
    """The shapes of inputs with open extents, and ranges by name, in the form of ``shapes=`` and ``dims=`` of
    compile.
    """

    shapes: dict[str, tuple[int | str, ...]] = field(default_factory=dict)
    dims: dict[str, Dim | str | int] = field(default_factory=dict)


def dimensions_of(graph: ir.Graph, program: Any) -> TorchDimensions:
    """Returns the dimensions of the inputs of ``graph``, which was exported from the ExportedProgram ``program``.

    An upper bound that is torch's own default is left out, so that the program takes as large sizes as it can.
    """
    open_shapes = {name: shape for name, shape in _shapes_of(program) if any(map(_expression, shape))}
    named = [(value, open_shapes[str(value.name)]) for value in graph.inputs if value.name in open_shapes]
    names: dict[Any, str] = {}
    for value, shape in named:
        for extent, dim in zip(shape, value.shape or (), strict=False):
            expression = _expression(extent)
            words = re.findall(r"[A-Za-z_]\w*", str(dim.value)) if isinstance(dim, ir.SymbolicDim) else []
            if expression is not None and len(expression.free_symbols) == len(words) == 1:
                (symbol,) = expression.free_symbols
                names.setdefault(symbol, words[0])
    found = TorchDimensions()
    for value, shape in named:
        found.shapes[str(value.name)] = tuple(_text(extent, names) for extent in shape)
    for symbol in {s: None for _, shape in named for e in shape for s in getattr(_expression(e), "free_symbols", ())}:
        bounds = program.range_constraints.get(symbol)
        if bounds is not None and bounds.upper.is_Integer:
            found.dims[names.get(symbol, str(symbol))] = Dim(int(bounds.lower), int(bounds.upper))
    return found


def fixed_axes(dynamic_shapes: Any, graph: ir.Graph) -> Iterator[str]:
    """Yields the axes of argument tensors that ``dynamic_shapes`` leaves open, but that are fixed in ``graph``."""
    if not dynamic_shapes:
        return
    shapes = {str(value.name): value.shape for value in graph.inputs}
    if isinstance(dynamic_shapes, Mapping):
        requested = [pair for name, spec in dynamic_shapes.items() for pair in _axes_of_tensors(str(name), spec)]
    else:
        found = [axes for spec in dynamic_shapes for _, axes in _axes_of_tensors("", spec)]
        requested = list(zip(shapes, found, strict=False))
    for name, axes in requested:
        numbered = axes.items() if isinstance(axes, Mapping) else enumerate(axes or ())
        for axis, wanted in numbered:
            shape = shapes.get(name)
            is_open = type(wanted).__name__ != "_DimHint" and not isinstance(wanted, int | None)
            if is_open and isinstance(axis, int) and shape is not None and isinstance(shape[axis], int):
                yield f"axis {axis} of input {name!r} is {shape[axis]}"


def _axes_of_tensors(name: str, spec: Any) -> Iterator[tuple[str, Any]]:
    """Yields (name, axes) of each tensor of an argument; a tuple, as ``*args`` is, a list or a dict has several."""
    is_mapping = isinstance(spec, Mapping)
    if is_mapping:
        are_axes = all(isinstance(key, int) for key in spec)
    else:
        are_axes = not any(isinstance(item, Mapping | tuple | list) for item in spec or ())
    if are_axes:
        yield name, spec
    else:
        for key, inner in spec.items() if is_mapping else enumerate(spec):
            yield from _axes_of_tensors(f"{name}_{key}", inner)


def _shapes_of(program: Any) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yields (name, shape) of each tensor that is passed to ``program``."""
    wanted = set(program.graph_signature.user_inputs)
    for node in program.graph.nodes:
        if node.op == "placeholder" and node.name in wanted and hasattr(node.meta.get("val"), "shape"):
            yield node.name, tuple(node.meta["val"].shape)


def _expression(extent: Any) -> Any:
    """Returns the sympy expression of an open extent, else None."""
    expression = getattr(getattr(extent, "node", None), "expr", None)
    return expression if getattr(expression, "free_symbols", None) else None


def _text(extent: Any, names: dict[Any, str]) -> int | str:
    expression = _expression(extent)
    if expression is None:
        return int(extent)
    import sympy

    return str(expression.xreplace({symbol: sympy.Symbol(name) for symbol, name in names.items()}))
