"""A first program: an Executable of numpy kernels, which is made in milliseconds and run while the compiler works."""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from landbridge.errors import LandbridgeError
from landbridge.executable.executable import Executable
from landbridge.executable.parts import Function, StorageReport, TensorSpec, VDevice
from landbridge.first_tier.call_builder import CallBuilder, ShapedValue
from landbridge.first_tier.instructions import Linked, link
from landbridge.first_tier.not_taken import NotTakenError
from landbridge.first_tier.onnx_file import DeclaredInput, OnnxGraph, read_graph
from landbridge.first_tier.translation import translate
from landbridge.package_version import package_version
from landbridge.targets import Target

#: The key of an Executable's metadata that a first program has, and its value.
TIER, FIRST = "tier", "first"

#: What says that a model is not taken. The last four are those of a damaged model, which contradicts itself where no
#: translation looks.
_REFUSALS = (LandbridgeError, OSError, ArithmeticError, LookupError, TypeError, ValueError)

#: Opsets whose definitions the translations follow.
_OPSETS = range(7, 29)


def first_program(
    model: bytes | Path,
    target: Target,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
) -> Executable | None:
    """Returns a program of numpy kernels for ``model``, an ONNX file or its bytes; None where the first tier cannot.

    ``shapes``: shapes of inputs by name, over what the file declares; ``dims``: what its open dimensions are, by name.
    All extents must then be numbers. The program has
    the inputs and outputs of the model, dense, and fixed. It has no machine code: each of its instructions calls a
    kernel of ``landbridge.numpy_kernels``. Its constants are copies, so that it does not depend on the file. Sums are
    numpy's: results differ from those of the compiled program in the last bits.

    None is returned for operators, element types and forms that have no translation here, for sizes that the data of a
    run decide, for loops, functions and external data, for targets other than a CPU of this host, and for files
    that cannot be read. The compiler takes the same model, or says what is wrong with it.
    """
    return FirstPrograms(model, target, dims).at(shapes)


class FirstPrograms:
    """Makes first programs of ``model`` for ``target``, one for each choice of shapes, as ``first_program`` does.

    The model is read here, once: its programs share constants, and do not depend on what becomes of the file.
    """

    def __init__(self, model: bytes | Path, target: Target, dims: Mapping[str, int] | None = None) -> None:
        self._graph: OnnxGraph | None = None
        self._dims = dims or {}
        self._name = model.stem if isinstance(model, Path) else ""
        if target.kind == "llvm":
            with suppress(*_REFUSALS):
                self._graph = read_graph(model) if isinstance(model, bytes) else _read_file(model)

    def at(self, shapes: Mapping[str, Sequence[int]] | None = None) -> Executable | None:
        """Returns the program for ``shapes``, over what the file declares; None where the first tier cannot."""
        if self._graph is None:
            return None
        try:
            return _program(_with_dims(self._graph, self._dims), shapes or {}, self._name or self._graph.name)
        except _REFUSALS:
            return None


def is_first(executable: Executable) -> bool:
    """Returns whether ``executable`` is a first program."""
    return executable.metadata.get(TIER) == FIRST


def _read_file(path: Path) -> OnnxGraph:
    """Returns the graph of a file; its bytes are mapped while it is read."""
    with path.open("rb") as file:
        if not path.stat().st_size:
            raise NotTakenError("an empty file")
        # Views of it may outlive an error, so that it is closed by the last of them.
        return read_graph(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))


def _with_dims(graph: OnnxGraph, dims: Mapping[str, int]) -> OnnxGraph:
    """Returns ``graph`` with the numbers ``dims`` in place of the dimensions of these names; raises NotTakenError for
    one that no input has.
    """
    if not dims.keys() <= {extent for each in graph.inputs for extent in each.shape or ()}:
        raise NotTakenError("a dimension that no input has")
    inputs = (
        each if each.shape is None else replace(each, shape=tuple(dims.get(str(e), e) for e in each.shape))
        for each in graph.inputs
    )
    return replace(graph, inputs=tuple(inputs)) if dims else graph


def _program(graph: OnnxGraph, shapes: Mapping[str, Sequence[int]], name: str) -> Executable:
    if graph.opset not in _OPSETS:
        raise NotTakenError(f"opset {graph.opset}")
    inputs = {each.name: ShapedValue(_shape(each, shapes), each.dtype) for each in graph.inputs}
    if any(not value.dtype for value in inputs.values()) or not shapes.keys() <= inputs.keys():
        raise NotTakenError("inputs without a dtype, or shapes of no input")
    builder = CallBuilder()
    named = inputs | {label: builder.constant(array) for label, array in graph.constants.items()}
    names = {constant: label for label, value in named.items() if (constant := value).constant is not None}
    translate(graph, graph.opset, builder, named)
    if not graph.outputs or any(each.name not in named for each in graph.outputs):
        raise NotTakenError("outputs that no node has")
    outputs = {each.name: named[each.name] for each in graph.outputs}
    if len(outputs) != len(graph.outputs) or len(inputs) != len(graph.inputs):
        raise NotTakenError("two inputs or outputs of one name")
    if any(each.dtype not in ("", outputs[each.name].dtype) for each in graph.outputs):
        raise NotTakenError("an output that is declared with another dtype")
    linked = link(builder.calls, tuple(inputs.values()), tuple(outputs.values()), names)
    return _executable(linked, inputs, outputs, name)


def _executable(
    linked: Linked, inputs: Mapping[str, ShapedValue], outputs: Mapping[str, ShapedValue], name: str
) -> Executable:
    sides = [
        tuple(TensorSpec(label, value.shape, value.dtype) for label, value in each.items())
        for each in (inputs, outputs)
    ]
    report = StorageReport("cpu", "global", linked.planned_bytes, linked.lower_bound_bytes, linked.is_optimal)
    return Executable(
        functions={"main": Function("main", sides[0], sides[1], linked.instructions)},
        vdevices=(VDevice("cpu"),),
        modules=(),
        constants=linked.constants,
        memory=(report,),
        metadata={"model": name, "landbridge": package_version("landbridge"), "on_mismatch": "error", TIER: FIRST},
    )


def _shape(declared: DeclaredInput, shapes: Mapping[str, Sequence[int]]) -> tuple[int, ...]:
    """Returns the shape of an input, all numbers; raises NotTakenError for an open or empty one."""
    given = shapes.get(declared.name, declared.shape)
    if given is None or (declared.shape is not None and len(given) != len(declared.shape)):
        raise NotTakenError(f"input {declared.name!r} of unknown rank")
    extents = []
    for axis, extent in enumerate(given):
        fixed = declared.shape[axis] if declared.shape is not None else ""
        if isinstance(extent, str) or extent < 1 or (isinstance(fixed, int) and fixed > 0 and fixed != extent):
            raise NotTakenError(f"input {declared.name!r} of shape {list(given)}")
        extents.append(int(extent))
    return tuple(extents)
