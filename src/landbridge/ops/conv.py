"""Handler of Conv."""

from __future__ import annotations

from landbridge.operators import kernel
from landbridge.ops.accuracy import SUMS, accuracy
from landbridge.ops.context import OpContext, Operand
from landbridge.ops.convolution import CONVOLUTION, FITTING, add_bias, convolve
from landbridge.ops.dequantized_products import dequantized_convolution
from landbridge.ops.rules import rules
from landbridge.ops.windows import windows


@rules(
    "X: N C *D",
    "W: M K *k",
    "B?: M",
    attributes=CONVOLUTION,
    where=FITTING,
)
@kernel("", "Conv")
@accuracy(SUMS)
def conv(c: OpContext, x: Operand, w: Operand, bias: Operand | None = None) -> Operand:
    """Computes a 1-, 2- or 3-D convolution with groups, dilations, strides and padding."""
    x_shape, w_shape = c.shape(x), c.shape(w)
    group = c.attribute("group", 1)
    shape = windows(c, x_shape[2:], w_shape[2:])
    total = dequantized_convolution(c, x, w, shape, group)
    return add_bias(c, convolve(c, x, w, shape, group) if total is None else total, bias, c.dtype(x))
