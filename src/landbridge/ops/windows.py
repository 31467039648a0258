"""Geometry of sliding windows, shared by convolutions and pools."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.errors import ShapeError
from landbridge.ops.context import OpContext
from landbridge.ops.legal import Legal, at_least, one_of
from landbridge.records import record
from landbridge.sizes.size import Extent, Size, ceildiv, largest, same, smallest, undecided
from landbridge.sizes.size import at_least as at_least_size

#: Attributes of windows over the axes ``*D``.
WINDOWS: dict[str, Legal] = {
    "kernel_shape": at_least(1, count="len(D)"),
    "strides": at_least(1, count="len(D)"),
    "dilations": at_least(1, count="len(D)"),
    "pads": at_least(0, count="2 * len(D)"),
    "auto_pad": one_of("NOTSET", "", "VALID", "SAME_UPPER", "SAME_LOWER"),
}


@record(frozen=True)
class Windows:
    """Per spatial axis: kernel extent, stride, dilation, padding before and after, and output extent.

    ``high`` is enough that every window lies inside the padded input; ``declared_high`` is what the model says.
    """

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    low: tuple[Extent, ...]
    high: tuple[Extent, ...]
    declared_high: tuple[Extent, ...]
    output: tuple[Extent, ...]

    @property
    def padded(self) -> bool:
        """Returns whether any padding is needed, for some sizes at least."""
        return any(same(pad, 0) is not True for pad in (*self.low, *self.high))

    def reach(self, axis: int) -> Extent:
        """Returns the end of the last window along ``axis``, relative to the start of the first."""
        return (self.output[axis] - 1) * self.stride[axis] + (self.kernel[axis] - 1) * self.dilation[axis] + 1


def check_kernel(c: OpContext, kernel: Sequence[Extent]) -> None:
    """Raises UnsupportedOperatorError for a kernel whose extents are known only when the input comes."""
    if any(isinstance(k, Size) for k in kernel):
        raise c.unsupported(f"a kernel of {', '.join(map(str, kernel))} elements; give its axes numbers")


def windows(
    c: OpContext, spatial: Sequence[Extent], kernel: Sequence[int], ceil_mode: bool = False, may_be_empty: bool = False
) -> Windows:
    """Returns the windows of the node over ``spatial``, from strides, dilations, pads, auto_pad and ceil_mode.

    A window that is larger than the padded axis does not fit: raises ShapeError. With ``may_be_empty`` an axis that it
    exceeds by less than a stride has one window, which ends at the padding, and one that it exceeds by a stride has
    none, as onnxruntime's pools have it.
    """
    check_kernel(c, kernel)
    rank = len(spatial)
    stride = c.ints("strides") or [1] * rank
    dilation = c.ints("dilations") or [1] * rank
    auto = c.attribute("auto_pad", "NOTSET") or "NOTSET"
    pads = c.ints("pads") or [0] * (2 * rank)
    if len(kernel) != rank or len(stride) != rank or len(dilation) != rank or len(pads) != 2 * rank:
        raise ShapeError(
            f"{c.g.node}: {c.op_type} over {rank} spatial dimensions has kernel {list(kernel)}, strides {stride}, "
            f"dilations {dilation}, pads {pads}"
        )
    low, high, declared, output = list[Extent](), list[Extent](), list[Extent](), list[Extent]()
    for i, extent in enumerate(spatial):
        reach = (kernel[i] - 1) * dilation[i] + 1
        before: Extent = pads[i]
        after: Extent = pads[rank + i]
        if auto == "VALID":
            before = after = 0
        elif auto in ("SAME_UPPER", "SAME_LOWER"):
            total = largest((ceildiv(extent, stride[i]) - 1) * stride[i] + reach - extent, 0)
            before = total // 2 if auto == "SAME_UPPER" else total - total // 2
            after = total - before
        capacity: Extent = extent + before + after - reach
        fits = at_least_size(capacity, 0) if may_be_empty else True
        if fits is None:
            raise undecided(f"{c.g.node}: {capacity} >= 0", capacity, 0, needed=True, fills=True)
        rounds_up = ceil_mode or not fits
        count = (ceildiv(capacity, stride[i]) if rounds_up else capacity // stride[i]) + 1
        if ceil_mode:  # a window must begin inside the input or the padding before it
            beyond = at_least_size((count - 1) * stride[i], extent + before)
            count = smallest(count, ceildiv(extent + before, stride[i])) if beyond is None else count - beyond
        if count < (0 if may_be_empty else 1):
            raise ShapeError(
                f"{c.g.node}: a {c.op_type} window of {reach} does not fit {extent} + {before} + {after} elements"
            )
        low.append(before)
        declared.append(after)
        high.append(largest((count - 1) * stride[i] + reach - extent - before, 0))
        output.append(count)
    return Windows(
        tuple(kernel), tuple(stride), tuple(dilation), tuple(low), tuple(high), tuple(declared), tuple(output)
    )
