"""The inputs of a model: those that are fixed at compile time, and those that become arguments of ``@main``, possibly
as frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import onnx_ir as ir
from xdsl.ir import Attribute, Block

from landbridge.dtypes import numpy_dtype
from landbridge.errors import CompileError, InputError, UnsupportedOperatorError
from landbridge.frontend.input_spec import InputSpec
from landbridge.frontend.onnx.attributes import dtype_of_onnx
from landbridge.frontend.onnx.frames import InputFrame, frame_of, read_frame
from landbridge.frontend.onnx.shapes import check_declared_inputs, input_shapes, read_extents
from landbridge.frontend.onnx.values import UNKNOWN, ImportedValue
from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.types import tensor_type
from landbridge.ops.context import Array
from landbridge.ops.extent_arrays import extents_array
from landbridge.records import record
from landbridge.sizes.size import Extent, dimensions_of


@record(frozen=True, eq=False)
class ModelInputs:
    """The ``arguments`` of ``@main`` and the ``fixed`` inputs; an input without elements is both.

    By name: the known ``shapes``, the ``frames`` of some inputs, and the ``elements`` of inputs that give sizes of open
    dimensions. ``advice`` has a line for each input whose shape is not known.
    """

    arguments: list[ir.Value]
    fixed: dict[ir.Value, Array]
    shapes: dict[str, tuple[Extent, ...]]
    frames: dict[str, InputFrame]
    elements: dict[str, tuple[Extent, ...]]
    advice: list[str]

    @property
    def names(self) -> list[str]:
        """Returns the names of the arguments."""
        return [str(value.name) for value in self.arguments]

    def types(self) -> list[Attribute]:
        """Returns the types of the arguments; that of a scalar if the shape is not known."""
        return [
            self.frames[name].type if name in self.frames else tensor_type(self.shapes.get(name, ()), _dtype(value))
            for name, value in zip(self.names, self.arguments, strict=True)
        ]

    def values(self, g: GraphBuilder, block: Block) -> dict[ir.Value, ImportedValue]:
        """Returns the values of the inputs in ``block``, whose arguments have ``types``; ``g`` appends the code that
        reads frames.
        """
        values: dict[ir.Value, ImportedValue] = {}
        for name, value, argument in zip(self.names, self.arguments, block.args, strict=True):
            argument.name_hint = None
            if name in self.frames:
                values[value] = read_frame(g, argument, self.frames[name])
            elif name in self.elements:
                array = extents_array(self.elements[name]).reshape(self.shapes[name])
                values[value] = array if array.dtype == object else array.astype(numpy_dtype(_dtype(value)))
            else:
                values[value] = argument if name in self.shapes else UNKNOWN
        return values | self.fixed


def model_inputs(
    graph: ir.Graph,
    shapes: Mapping[str, Sequence[int | str]],
    constants: Mapping[str, Any],
    frames: Mapping[str, InputSpec],
    dimensions: Mapping[str, Extent] | None = None,
    elements: Mapping[str, tuple[Extent, ...]] | None = None,
) -> ModelInputs:
    """Returns the inputs of ``graph``, given what an ``ImportRequest`` states of them.

    ``elements``: the elements of inputs that stay arguments of ``@main``. An input without elements is fixed.

    Raises InputError for names of no input and values that do not fit, ShapeError for shapes that contradict the file.
    """
    inputs = [v for v in graph.inputs if v.name not in graph.initializers]
    if dimensions:
        declared = [
            *shapes.values(),
            *(spec.shape or () for spec in frames.values()),
            *filter(_has_text, constants.values()),
            *(elements or {}).values(),
        ]
        dimension_names = chain.from_iterable([v] if isinstance(v, str) else v for v in declared)
        settled = {*shapes, *(name for name, array in constants.items() if not _has_text(array))}
        check_declared_inputs(inputs, dimension_names, dimensions, settled)
    open_values = {name: array for name, array in constants.items() if _has_text(array)}
    fixed = _empty(inputs) | _fixed(inputs, {n: array for n, array in constants.items() if n not in open_values})
    read = {**(elements or {}), **_elements(inputs, open_values, dimensions)}
    given = {
        **_shapes_left_open(inputs, frames),
        **shapes,
        **{str(v.name): a.shape for v, a in fixed.items() if v.name in constants},
        **{name: np.shape(array) for name, array in open_values.items()},
    }
    known, advice = input_shapes(inputs, given, dimensions)
    arguments = [v for v in inputs if v not in fixed or v.name not in constants]
    created = ModelInputs(arguments, fixed, known, _frames(arguments, frames, known, dimensions or {}), read, advice)
    _check_declared(created)
    return created


def _check_declared(inputs: ModelInputs) -> None:
    """Raises InputError for a dimension that occurs in no shape of a bound input."""
    bound = [inputs.frames[n].shape if n in inputs.frames else inputs.shapes.get(n, ()) for n in inputs.names]
    dimension_names = dimensions_of(chain(*bound, *inputs.elements.values()))
    for name, shape in inputs.shapes.items():
        for dimension in dimensions_of(shape).keys() - dimension_names.keys():
            raise InputError(
                f"inputs: {name!r} is {shape}, and no frame says what {dimension!r} is, as it is resized to that; "
                "state these extents in shapes="
            )


def _has_text(given: Any) -> bool:
    return isinstance(given, str) or (isinstance(given, list | tuple) and any(isinstance(e, str) for e in given))


def _elements(
    inputs: Sequence[ir.Value], given: Mapping[str, Any], dimensions: Mapping[str, Extent] | None
) -> dict[str, tuple[Extent, ...]]:
    """Returns the elements of inputs by name, if some of them are open."""
    by_name = {str(v.name): v for v in inputs}
    elements = {}
    for name, array in given.items():
        if name not in by_name:
            raise InputError(f"constants: the model has no input {name!r}; its inputs: {', '.join(by_name) or 'none'}")
        dtype = _dtype(by_name[name])
        if dtype != "int64":
            raise InputError(f"constants: {name!r} has open elements and is {dtype}; int64 is legal")
        elements[name] = read_extents([array] if isinstance(array, str) else array, dimensions or {})
        if any(isinstance(e, int) and e < 0 for e in elements[name]):
            raise InputError(f"constants: {name!r} is {tuple(array)}; beside open elements numbers from 0 are legal")
    return elements


def _empty(inputs: Sequence[ir.Value]) -> dict[ir.Value, Array]:
    """Returns the inputs that have no elements according to the file."""
    found = {}
    for value in inputs:
        extents = [] if value.shape is None else [e for e in value.shape if isinstance(e, int)]
        if value.shape is not None and 0 in extents and len(extents) == len(value.shape):
            found[value] = np.zeros(extents, numpy_dtype(_dtype(value)))
    return found


def _fixed(inputs: Sequence[ir.Value], constants: Mapping[str, Any]) -> dict[ir.Value, Array]:
    """Returns the inputs that ``constants`` fixes, in the dtype of the file."""
    by_name = {str(v.name): v for v in inputs}
    fixed = {}
    for name, given in constants.items():
        if name not in by_name:
            raise InputError(f"constants: the model has no input {name!r}; its inputs: {', '.join(by_name) or 'none'}")
        wanted = numpy_dtype(_dtype(by_name[name]))
        try:
            array = np.asarray(given)
            converted = array.astype(wanted)
        except (TypeError, ValueError) as error:
            raise InputError(f"constants: {name!r} takes numbers of {wanted}, as an array or a list: {error}") from None
        if isinstance(given, np.ndarray | np.generic) and array.dtype != wanted:
            raise InputError(f"constants: {name!r} is {array.dtype}, the model takes {wanted}; convert it")
        fixed[by_name[name]] = converted
    return fixed


def _shapes_left_open(inputs: Sequence[ir.Value], frames: Mapping[str, InputSpec]) -> dict[str, tuple[int | str, ...]]:
    """Returns the shapes of inputs that follow from their frames, if the file does not fix them."""
    fixed = {str(v.name) for v in inputs if v.shape is not None and all(isinstance(e, int) for e in v.shape)}
    shapes = {name: spec.model_shape() for name, spec in frames.items() if name not in fixed}
    return {name: shape for name, shape in shapes.items() if shape is not None}


def _frames(
    inputs: Sequence[ir.Value],
    frames: Mapping[str, InputSpec],
    known: Mapping[str, tuple[Extent, ...]],
    dimensions: Mapping[str, Extent],
) -> dict[str, InputFrame]:
    """Returns the frames of inputs whose shape is known, by name."""
    dtypes = {str(v.name): _dtype(v) for v in inputs}
    for name in frames:
        if name not in dtypes:
            raise InputError(f"inputs: no input {name!r} is left to state; they are: {', '.join(dtypes) or 'none'}")
    found = {}
    for name in frames.keys() & known.keys():
        declared = frames[name].shape
        frame = None if declared is None else read_extents(declared, dimensions)
        found[name] = frame_of(name, frames[name], frame, known[name], dtypes[name])
    return {name: found[name] for name in frames if name in found}


def _dtype(value: ir.Value) -> str:
    if not isinstance(value.type, ir.TensorType):
        raise UnsupportedOperatorError(
            f"input {value.name!r} is not a tensor ({value.type}); sequences, optionals and maps cannot be compiled"
        )
    try:
        return dtype_of_onnx(value.type.dtype)
    except CompileError as error:
        raise CompileError(f"input {value.name!r}: {error}") from error
