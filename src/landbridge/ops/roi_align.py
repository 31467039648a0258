"""RoiAlign: regions of images, each as a grid of cells that are the mean, or the largest, of samples between pixels."""

from __future__ import annotations

from functools import partial

from landbridge.ir.prim_builder import Access, PrimBuilder
from landbridge.ir.scalar_dtypes import accumulator
from landbridge.ir.scalars import ScalarBuilder, Value
from landbridge.ir.types import shape_of
from landbridge.operators import kernel
from landbridge.ops.accuracy import accuracy
from landbridge.ops.adaptive_roi_align import RegionAxis, write_adaptive
from landbridge.ops.context import BodyBuffer, OpContext, Operand
from landbridge.ops.legal import at_least, holds, one_of
from landbridge.ops.rules import Index, rules
from landbridge.ops.slicing import index_within

_IMAGE = Index("[0 for e in many(N)]", "[e - 1 for e in many(N)]")


@rules(
    "X: N C H W",
    "rois: R 4",
    "batch_indices: R",
    attributes={
        "coordinate_transformation_mode": one_of("half_pixel", "output_half_pixel"),
        "mode": one_of("avg", "max"),
        "output_height": at_least(1, below=1 << 31),
        "output_width": at_least(1, below=1 << 31),
        "sampling_ratio": at_least(0, below=1 << 15),
        "spatial_scale": holds("it - it == 0", "finite"),
    },
    where=("min(H, W) > 0 or R == 0",),
    indices={"batch_indices": _IMAGE},
)
@kernel("", "RoiAlign", since=16)
@accuracy(ulp=16, sums=True, note="the condition is the extent of an axis times the magnitudes of the pixels")
def roi_align(c: OpContext, x: Operand, rois: Operand, batches: Operand) -> Operand:
    """Computes cells of the regions ``rois`` [R, 4] (x1, y1, x2, y2) of the images ``x`` [N, C, H, W]: [R, C, rows,
    columns].
    """
    return _aligned(c, x, rois, batches, c.attribute("coordinate_transformation_mode", "half_pixel") == "half_pixel")


@rules(
    "X: N C H W",
    "rois: R 4",
    "batch_indices: R",
    attributes={
        "mode": one_of("avg", "max"),
        "output_height": at_least(1, below=1 << 31),
        "output_width": at_least(1, below=1 << 31),
        "sampling_ratio": at_least(0, below=1 << 15),
        "spatial_scale": holds("it - it == 0", "finite"),
    },
    where=("min(H, W) > 0 or R == 0",),
    indices={"batch_indices": _IMAGE},
)
@kernel("", "RoiAlign", since=10)
@accuracy(ulp=16, sums=True, note="the condition is the extent of an axis times the magnitudes of the pixels")
def roi_align_10(c: OpContext, x: Operand, rois: Operand, batches: Operand) -> Operand:
    """Aligns as RoiAlign of opset 16, with coordinates relative to the corners of pixels."""
    return _aligned(c, x, rois, batches, False)


def _aligned(c: OpContext, x: Operand, rois: Operand, batches: Operand, half_pixel: bool) -> Operand:
    """Samples with the channels last, so that a vector holds one sample of several channels."""
    samples = c.attribute("sampling_ratio", 0)
    (_, channels, *spatial), count = c.shape(x), c.shape(rois)[0]
    dtype = "float64" if c.dtype(x) == "float64" else accumulator(c.dtype(x))
    cells = c.attribute("output_height", 1), c.attribute("output_width", 1)
    axes = [
        RegionAxis(extent, column, cell, c.attribute("spatial_scale", 1.0), half_pixel, dtype)
        for extent, column, cell in zip(spatial, (1, 0), cells, strict=True)
    ]
    largest = c.attribute("mode", "avg") == "max"

    def build(p: PrimBuilder) -> None:
        if samples:
            _write_stages(p, axes, samples, largest)
        else:
            write_adaptive(p, axes, largest)

    operands = [c.value(v) for v in (c.transpose(x, (0, 2, 3, 1)), rois, batches)]
    created = c.g.call("roi_align", operands, [((count, *cells, channels), c.dtype(x))], build)[0]
    return c.transpose(created, (0, 3, 1, 2))


def _write_stages(p: PrimBuilder, axes: list[RegionAxis], samples: int, largest: bool) -> None:
    """Writes, for each region, the sample positions along each axis, then every cell of it in every channel."""
    images, rois, batches = p.inputs
    (count, rows, columns, channels), batch = shape_of(p.outputs[0].type), shape_of(images.type)[0]
    along = []
    for axis in axes:
        shape = [count, axis.cells * samples]
        low, before, after = p.temp(shape, "int32"), p.temp(shape, axis.dtype), p.temp(shape, axis.dtype)
        ends = [(rois, lambda r, _, column=axis.column + more: (r, column)) for more in (0, 2)]
        written: list[Access] = [(b, lambda r, i: (r, i)) for b in (low, before, after)]
        p.generic("pp", shape, ends, written, partial(_of_sample, axis, samples))
        along += [low, before, after]
    source = BodyBuffer(images, p.dtype(images))

    def value(s: ScalarBuilder, total: Value, image: Value, *places: Value) -> Value:
        found = _sample(s, source, index_within(s, image, batch), axes, places, largest)
        return s.maximum(total, found) if largest else total + found * (1.0 / samples**2)

    reads: list[Access] = [(batches, lambda r, *_: (r,))]
    reads += [(b, lambda r, h, w, k, i, j: (r, h * samples + i)) for b in along[:3]]
    reads += [(b, lambda r, h, w, k, i, j: (r, w * samples + j)) for b in along[3:]]
    extents = [count, rows, columns, channels, samples, samples]
    result: list[Access] = [(p.outputs[0], lambda r, h, w, k, i, j: (r, h, w, k))]
    p.generic("pppprr", extents, reads, result, value, init=float("-inf") if largest else 0.0)


def _of_sample(axis: RegionAxis, samples: int, s: ScalarBuilder, begin: Value, end: Value) -> list[Value]:
    """Returns the pixel before a sample, and the weights of it and of the one after."""
    begin, extent = axis.region(s, begin, end)
    number = s.cast(s.cast(s.index(1), "int64"), axis.dtype)
    low, before, after = axis.pixels(s, begin + (number + 0.5) * (extent / float(axis.cells * samples)))
    return [s.cast(low, "int32"), before, after]


def _sample(
    s: ScalarBuilder, source: BodyBuffer, image: Value, axes: list[RegionAxis], places: tuple[Value, ...], largest: bool
) -> Value:
    """Returns the sum of the four weighted pixels around a sample or, as onnxruntime does, the largest of them."""
    channel = s.index(3)
    ends = []
    for axis, (low, before, after) in zip(axes, (places[:3], places[3:]), strict=True):
        ends.append([(index_within(s, low, axis.extent), before), (index_within(s, low + 1, axis.extent), after)])
    found: Value | None = None
    for row, of_row in ends[0]:
        for column, of_column in ends[1]:
            pixel = s.cast(source.load(s, [image, row, column, channel]), axes[0].dtype) * (of_row * of_column)
            found = pixel if found is None else s.maximum(found, pixel) if largest else found + pixel
    assert found is not None
    return found
