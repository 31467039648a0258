"""Keeps the state of a streaming convolution in a window that slides: new samples are written, and none is moved.

Such a model joins its last samples with new ones, and gives the last of both to the next run. Where ``alias=`` requests
that the output has the memory of the input::

    joined    = Concat(cache_in, x)            k samples of the state, n new ones
    cache_out = Slice(joined, the last k)

becomes::

    cache_out = WriteWindow(cache_in, x)       the last n of k + n samples are x

``cache_in`` and ``cache_out`` are then k + n samples, one memory. Before a run, the first k are the state. After it,
the last k are: they are the first k of the same rows n samples further on, so the next run begins there. A row of the
window then ends in samples that the next row no longer needs.

Where a run decides n, within the range of a dimension, rows of the window have k and the most new samples, whatever n
is, and the nodes read the first k + n::

    cache_out = WriteWindow(cache_in, x)       n samples behind the first k are x
    joined    = ReadWindow(cache_out, x)       the first k + n
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import onnx_ir as ir

from landbridge.frontend.onnx.inferred_extents import inferred_extents
from landbridge.frontend.onnx.node_names import name_of_node
from landbridge.process.locks import cached_property
from landbridge.records import record
from landbridge.sizes.size import Extent, Size

#: From here on, the end of a Slice is that of the axis: exporters write the largest integer of 32 or 64 bits.
_NO_END = (1 << 31) - 1
#: Ranges of new samples that end above this have no end: a window would have memory for all of it.
_MOST_NEW = 1 << 20


@record(frozen=True)
class Window:
    """A state that may be a window: ``output`` is the last of what ``join`` makes of ``past`` and of new samples along
    ``axis``, as many ``samples`` as ``past`` has. ``most``: the most new ones; ``is_open``: whether there may be fewer.
    """

    output: ir.Value
    join: ir.Node
    past: ir.Value
    axis: int
    samples: int
    most: int
    is_open: bool


def found_windows(
    graph: ir.Graph, shapes: Mapping[str, Sequence[int | str]], dimensions: Mapping[str, Extent]
) -> dict[str, Window]:
    """Returns the outputs of ``graph`` that are the last samples of an input and new ones, by name.

    ``shapes``: those that the caller gives to inputs, by name. ``dimensions``: ranges of open dimensions, by name. The
    number of samples of the state has to be known, and of new ones the most.
    """
    inputs, extents = set(graph.inputs), _Extents(graph, shapes, dimensions)
    found = {}
    for output in graph.outputs:
        window = _window(output, inputs, extents)
        if window is not None and output.name:
            found[output.name] = window
    return found


def keep_in_windows(
    graph: ir.Graph, windows: Iterable[Window], shapes: Mapping[str, Sequence[int | str]]
) -> dict[str, Sequence[int | str]]:
    """Let each of ``windows`` be one memory with its input, of which a run writes the new samples.

    Returns ``shapes``, those that the caller gives to inputs, with the samples that these inputs have then.
    """
    given = dict(shapes)
    for window in windows:
        past, output, joined = window.past, window.output, window.join.outputs[0]
        assert past.shape is not None  # _window has seen it
        name, part = output.name, output.producer()
        new, where = window.join.inputs[1], {"axis": window.axis, "first": window.samples}
        name_of_join = name_of_node(window.join)
        write = ir.node("WriteWindow", [past, new], where, domain="landbridge", name=name_of_join)
        written = read = write.outputs[0]
        graph.insert_before(window.join, write)
        if window.is_open:
            part_read = ir.node("ReadWindow", [written, new], where, domain="landbridge", name=f"{name_of_join}.read")
            graph.insert_before(window.join, part_read)
            read = part_read.outputs[0]
            read.name = f"{name}.read"
        for use in list(joined.uses()):
            use.node.replace_input_with(use.idx, read)
        graph.remove(window.join, safe=True)
        total = window.samples + window.most
        past.shape = ir.Shape([total if axis == window.axis else extent for axis, extent in enumerate(past.shape)])
        if past.name and past.name in given:
            shape = given[past.name]
            given[past.name] = [total if axis == window.axis else extent for axis, extent in enumerate(shape)]
        written.shape, written.type = past.shape, past.type
        graph.outputs[list(graph.outputs).index(output)] = written
        if part is not None and not any(each.uses() or each.is_graph_output() for each in part.outputs):
            graph.remove(part, safe=True)
        output.name, written.name = None, name
    return given


class _Extents:
    """The extents of values of a graph; those that it does not declare are inferred when one is asked for."""

    def __init__(
        self,
        graph: ir.Graph,
        shapes: Mapping[str, Sequence[int | str]],
        dimensions: Mapping[str, Extent],
    ) -> None:
        self._graph, self._shapes, self._dimensions = graph, shapes, dimensions

    @cached_property
    def _inferred(self) -> Mapping[str, tuple[int | str | None, ...]]:
        return inferred_extents(self._graph, self._shapes)

    def number(self, value: ir.Value, axis: int) -> int:
        """Returns the extent of ``value`` along ``axis``; 0 if it is not known."""
        return next((extent for extent in self._known(value, axis) if isinstance(extent, int)), 0)

    def most(self, value: ir.Value, axis: int) -> int:
        """Returns the most that the extent of ``value`` along ``axis`` may be, a dimension; 0 if it has no limit."""
        for extent in self._known(value, axis):
            declared = self._dimensions.get(extent) if isinstance(extent, str) else None
            if isinstance(declared, Size) and declared.high is not None and declared.high <= _MOST_NEW:
                return declared.high
        return 0

    def _known(self, value: ir.Value, axis: int) -> Iterator[int | str]:
        """Yields what is known of the extent of ``value`` along ``axis``: numbers, and names of dimensions."""
        name = value.name or ""
        given = self._shapes.get(name) if value.is_graph_input() else None
        for known in (lambda: given or value.shape or (), lambda: self._inferred.get(name, ())):
            extents = known()
            extent = extents[axis] if axis < len(extents) else None
            found = extent.value if isinstance(extent, ir.SymbolicDim) else extent
            declared = self._dimensions.get(found) if isinstance(found, str) else None
            if declared is not None and not isinstance(declared, Size):
                found = declared
            if found is not None:
                yield found


def _window(output: ir.Value, inputs: Collection[ir.Value], extents: _Extents) -> Window | None:
    part = _of_onnx(output.producer(), "Slice", "Split")
    join = None if part is None or part.inputs[0] is None else _of_onnx(part.inputs[0].producer(), "Concat")
    if part is None or join is None or len(join.inputs) != 2:
        return None
    past, new, joined = join.inputs[0], join.inputs[1], join.outputs[0]
    if past is None or past not in inputs or new is None or past.shape is None or len(list(past.uses())) != 1:
        return None
    if past.is_initializer() or past.is_graph_output() or joined.is_graph_output():
        return None
    axis = join.attributes["axis"].as_int() % len(past.shape)
    samples, added = (extents.number(value, axis) for value in (past, new))
    most = added or extents.most(new, axis)
    if not samples or not most:
        return None
    is_last = _is_last(part, output, axis, len(past.shape), samples, samples + added if added else None)
    return Window(output, join, past, axis, samples, most, not added) if is_last else None


def _of_onnx(node: ir.Node | None, *kinds: str) -> ir.Node | None:
    """Returns ``node`` if it is one of these operators of ONNX."""
    return node if node is not None and node.op_type in kinds and node.domain in ("", "ai.onnx") else None


def _is_last(part: ir.Node, output: ir.Value, axis: int, rank: int, samples: int, total: int | None) -> bool:
    """Returns whether ``part`` has the last ``samples`` of ``total`` along ``axis`` as its ``output``, None: of any
    number.
    """
    if part.op_type == "Split":
        along = part.attributes["axis"].as_int() if "axis" in part.attributes else 0
        sizes = _numbers(part.inputs[1]) if len(part.inputs) > 1 else None
        is_cut = total is not None and sizes == [total - samples, samples]
        return is_cut and along % rank == axis and part.outputs[1] is output
    if len(part.inputs) < 3:
        return False
    starts, ends = (_numbers(value) for value in part.inputs[1:3])
    axes, steps = (_numbers(part.inputs[at]) if len(part.inputs) > at else [d] for at, d in ((3, 0), (4, 1)))
    if starts is None or ends is None or axes is None or len(starts) != 1 or steps != [1]:
        return False
    (start,), (end,) = starts, ends
    if total is None:
        return axes[0] % rank == axis and start == -samples and end >= _NO_END
    start, end = (number + total if number < 0 else number for number in (start, end))
    return axes[0] % rank == axis and start == total - samples and end >= total


def _numbers(value: ir.Value | None) -> list[int] | None:
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    return None if tensor is None or tensor.size > 8 else [int(each) for each in tensor.numpy().reshape(-1).tolist()]
