"""Rules that choose the loops of a call to block, one for each kind of kernel."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from landbridge.analysis.axis_classes import AxisClass, class_of
from landbridge.ir.stages import PrimView
from landbridge.ir.types import element_count, shape_of
from landbridge.passes.lower.access import linearize
from landbridge.passes.lower.nest import widest_bytes
from landbridge.passes.pack.layout import Layout, layout_of
from landbridge.passes.rewrites import rewrite
from landbridge.records import record
from landbridge.sizes.size import at_least


@record(frozen=True)
class Candidate:
    """A call that may be blocked: its PrimFunc, and the values of the graph that the call's arguments have.

    ``weights`` are inputs that are constants or parameters, which are packed once for each value they get. ``given``
    are those that come from outside the program, states included: a run would reorder them. ``blocked`` are inputs that
    have a blocked form already, and outputs whose layout is requested to be blocked. ``tile`` is the number of elements
    of the target's vector; with ``narrow``, half a vector may take less time to multiply.
    """

    prim: PrimView
    classes: list[AxisClass]
    inputs: Sequence[SSAValue]
    outputs: Sequence[SSAValue]
    weights: Collection[SSAValue]
    given: Collection[SSAValue]
    blocked: Collection[SSAValue]
    tile: int
    narrow: bool

    @property
    def contracted_weights(self) -> SSAValue | None:
        """Returns the argument that is the weight of the leading contraction; None if there is none."""
        first = next(self.prim.generics())
        read = [o.buffer for o, value in zip(first.ins, first.body.args, strict=False) if value.first_use]
        if not first.reduces or len(read) != 2:
            return None
        found = [b for b in read if b in self.weights]
        return found[0] if len(found) == 1 else None

    @property
    def output_channels(self) -> AxisClass | None:
        """Returns the class of axis 1 of all outputs; None if they differ in rank or class, or have another rank than 3
        or 4.
        """
        ranks = {len(shape_of(o.type)) for o in self.outputs}
        if len(ranks) != 1 or not ranks <= {3, 4}:
            return None
        found = [class_of(self.classes, o, 1) for o in self.outputs]
        return found[0] if all(each is found[0] for each in found) else None

    def data_axis(self, c: AxisClass) -> int | None:
        """Returns the axis of class ``c`` in the input that has it and is no weight; None if not exactly one input has
        it.
        """
        axes = [axis for a in self.inputs if a not in self.weights and (axis := c.axis_of(a)) is not None]
        return axes[0] if len(axes) == 1 else None


@record(frozen=True)
class Blocking:
    """The classes of a PrimFunc that are cut into tiles, and the resulting layouts of its buffers."""

    tile: int
    cut: Sequence[AxisClass]
    layouts: Mapping[SSAValue, Layout]


def blocking_of(c: Candidate) -> Blocking | None:
    """Returns the blocking that the rule for a kernel like ``c`` chooses; None if the kernel stays plain."""
    weights = c.contracted_weights
    if weights is not None and len(shape_of(c.outputs[0].type)) == 4:
        return convolution(c, weights)
    if weights is not None and len(shape_of(weights.type)) == 2:
        return matrix_product(c, weights)
    return propagated(c)


def sums_its_channels(c: Candidate) -> bool:
    """Returns whether a convolution reads one argument along both its reduced and its produced channels.

    Such a convolution can only be blocked with two arguments.
    """
    if c.contracted_weights is None or len(shape_of(c.outputs[0].type)) != 4:
        return False
    return c.output_channels is not None and c.output_channels.reduces


@rewrite("pack.convolution", "a convolution computes blocks of channels")
def convolution(c: Candidate, weights: SSAValue) -> Blocking | None:
    """Returns the blocking of a convolution of two spatial axes; None if its layouts stay plain.

    Output channels are blocked unless there are fewer than half a tile, or vectors along the pixels of a line are
    fuller. The channels that are summed over are blocked if the data are blocked already, or if the output channels are
    blocked, there is at least a tile of input channels, and the data are more than a short signal. A convolution whose
    output channels are also summed over stays plain, as does one of each channel by itself on a short signal.
    """
    lanes = c.output_channels
    if lanes is not None and (lanes.reduces or _stays_plain(c, weights, lanes)):
        return None
    if lanes is not None and (lanes.extent < c.tile // 2 or _lines_are_fuller(c, weights, lanes.extent)):
        lanes = None
    cut = [lanes] if lanes is not None else []
    summed = next(
        (k for k in c.classes if k.reduces and not k.fixed and k.axis_of(weights) is not None and c.data_axis(k) == 1),
        None,
    )
    if summed is not None:
        data = next(a for a in c.inputs if a is not weights and summed.axis_of(a) is not None)
        is_wide = lanes is not None and summed.extent >= c.tile and not _has_short_lines(c, data)
        if data in c.blocked or is_wide:
            cut = [summed, *cut]
    return _blocked(c, cut, lanes) if cut else None


#: Lines of a signal up to here lie in few pages: their vectors are not reordered before they are broadcast.
_SHORT_LINE = 256


def _has_short_lines(c: Candidate, data: SSAValue) -> bool:
    """Returns whether ``data`` is a signal from outside the program, images of one line, of which few pixels are made.

    Its elements are broadcast from where they are. A window of a stream may be much longer than what a run computes.
    """
    pixels = shape_of(c.outputs[0].type)[2:]  # without a height where a view of the result is written
    is_short = at_least(_SHORT_LINE, prod(pixels))
    return data in c.given and bool(is_short) and all(n == 1 for n in shape_of(data.type)[2:-1])


def _stays_plain(c: Candidate, weights: SSAValue, lanes: AxisClass) -> bool:
    """Returns whether a convolution of each channel by itself has vectors along its short lines, where they are."""
    data = next((a for a in c.inputs if a is not weights and lanes.axis_of(a) == 1), None)
    return data is not None and data not in c.blocked and _has_short_lines(c, data)


def _lines_are_fuller(c: Candidate, weights: SSAValue, channels: int) -> bool:
    """Returns whether vectors along the pixels of a line fill more of their lanes than vectors of all ``channels``.

    Pixels of a line are contiguous in plain data.
    """
    g = next(c.prim.generics())
    pixel, data = g.outs[0].map.results[-1], [o for o in g.ins if o.buffer is not weights]
    if channels >= c.tile or any(a in c.blocked for a in c.inputs) or not isinstance(pixel, AffineDimExpr):
        return False
    line = g.extents[pixel.position]
    if not isinstance(line, int) or any(linearize(o.map.results[-1]).coeff(pixel.position) != 1 for o in data):
        return False
    lanes = min(c.tile, 1 << (channels - 1).bit_length()) if c.narrow else c.tile
    of_channels = channels / lanes * (1 if lanes == c.tile else _NARROW)
    return line / (-(-line // c.tile) * c.tile) > of_channels


#: The share of peak that narrow vectors in blocks of 14 reach: as many elements are loaded in the same time, and a
#: vector in addition.
_NARROW = 14 / 15


@rewrite("pack.matrix_product", "weights of a matrix product get panels of columns")
def matrix_product(c: Candidate, weights: SSAValue) -> Blocking | None:
    """Returns a blocking that packs the weights in column panels; everything else stays plain."""
    columns = next((k for k in c.classes if not k.fixed and not k.reduces and k.axis_of(weights) is not None), None)
    # A panel is one vector of the widest element computed with: a plain result has no padding after its last column.
    tile = c.tile * 4 // max(4, *(widest_bytes(g.body) for g in c.prim.generics()))
    if columns is None or columns.extent < tile or tile < 2:
        return None
    if all(_lies_along(o, columns) for o in c.outputs):
        tile = _wide_panel(c, columns.extent, tile) or tile
    else:  # results and vectors lie along another axis: the padding of the last panel would have to be stored
        narrow = _full_panel(columns.extent, tile)
        if narrow is None:
            return None
        tile = narrow
    layout = layout_of(weights, [columns], tile, first=columns)
    assert layout is not None  # the class has an axis of the weights
    return Blocking(tile, [columns], {weights: layout})


def _lies_along(result: SSAValue, columns: AxisClass) -> bool:
    """Returns whether elements that are adjacent along ``columns`` are adjacent in the memory of ``result``."""
    axis = columns.axis_of(result)
    return axis is not None and all(e == 1 for e in shape_of(result.type)[axis + 1 :])


#: If columns are no lanes, a panel is wider than this part of a vector, or the weights keep their layout.
_LEAST_PART = 4
#: The most vectors of a panel that is read once: enough accumulators for two pipes, and contiguous.
_WIDEST_PANEL = 8
#: The least share of lanes that panels fill if they end within a vector.
_FULL_ENOUGH = 0.9


@rewrite("pack.full_panel", "weights get panels narrower than a vector, without padding")
def _full_panel(columns: int, tile: int) -> int | None:
    """Returns the widest panel, up to ``tile``, whose columns are all there; None if it is a small part of a vector."""
    return next((t for t in range(tile, tile // _LEAST_PART, -1) if columns % t == 0), None)


@rewrite("pack.wide_panel", "weights of a product with one row get panels of several vectors")
def _wide_panel(c: Candidate, columns: int, tile: int) -> int:
    """Returns the width of weight panels; with one row of data a step reads one contiguous row of a wide panel.

    Panels of one vector are read as parallel streams, whose distance of K vectors is a multiple of the page size for
    many K: their lines then map to one set of L1 and evict each other (4K aliasing).
    """
    if element_count(shape_of(c.outputs[0].type)) != columns:
        return tile
    widths = [w for w in range(tile, _WIDEST_PANEL * tile + 1) if columns % w == 0]
    share, width = max(((w / (-(-w // tile) * tile), w) for w in widths), default=(0.0, tile))
    return width if share >= _FULL_ENOUGH else tile


@rewrite("pack.propagated_layout", "a call keeps the packed layout of its operand")
def propagated(c: Candidate) -> Blocking | None:
    """Returns a blocking of the channels like that of an argument in ``blocked``; None if there is no such
    input.

    The channel axis must be a parallel loop of every stage.
    """
    lanes, rank = c.output_channels, len(shape_of(c.outputs[0].type))
    followed = [a for a in c.blocked if rank == 4 or len(shape_of(a.type)) == rank]
    if lanes is None or lanes.reduces or not any(lanes.axis_of(a) == 1 for a in followed):
        return None
    return _blocked(c, [lanes], lanes)


def _blocked(c: Candidate, cut: Sequence[AxisClass], lanes: AxisClass | None) -> Blocking:
    """Returns a blocking that cuts the classes ``cut`` in all buffers that have them.

    In weights, the axis of ``lanes`` is the first of those that are cut.
    """
    layouts = {
        buffer: layout
        for buffer in (*c.inputs, *c.outputs, *c.prim.temporaries)
        if (layout := layout_of(buffer, cut, c.tile, first=lanes if buffer in c.weights else None)) is not None
    }
    return Blocking(c.tile, cut, layouts)
