"""Operators that move or measure elements: those of ``com.microsoft``, most of which are older than their ONNX
equivalents, and one of ONNX whose own definition fails for a batch of one.
"""

from __future__ import annotations

from landbridge.errors import ShapeError
from landbridge.frontend.onnx.bodies.node_facts import NodeFacts, integer_list
from landbridge.operators import definition

_MS = "com.microsoft"
_POOLED = ("kernel_shape", "pads", "strides", "dilations")


@definition(_MS, "Trilu", inputs="X, k", outputs="Y")
def trilu(n: NodeFacts) -> str:
    return f"Y = Trilu <upper = {n.attribute('upper', 1)}> (X{', k' if n.has('k') else ''})"


@definition(_MS, "ExpandDims", inputs="X, axis", outputs="Y")
def expand_dims(n: NodeFacts) -> str:
    return """wide = Cast <to = 7> (axis) one = Constant <value_ints = [1]> () axes = Reshape (wide, one)
        Y = Unsqueeze (X, axes)"""


@definition(_MS, "GatherND", inputs="data, indices", outputs="output")
def gather_nd(n: NodeFacts) -> str:
    return "wide = Cast <to = 7> (indices) output = GatherND (data, wide)"


@definition(_MS, "Range", inputs="start, limit, delta", outputs="Y")
def range_of(n: NodeFacts) -> str:
    if n.has("delta"):
        return "Y = Range (start, limit, delta)"
    return "one = Constant <value_int = 1> () step = CastLike (one, start) Y = Range (start, limit, step)"


@definition(_MS, "Pad", inputs="data, pads, value", outputs="output")
def pad(n: NodeFacts) -> str:
    mode = n.attribute("mode", "constant")
    return f'output = Pad <mode = "{mode}"> (data, pads{", value" if n.has("value") else ""})'


@definition(_MS, "Unique", inputs="x", outputs="y, idx, counts")
def unique(n: NodeFacts) -> str:
    return "y, first, idx, counts = Unique <sorted = 0> (x)"


@definition(_MS, "GridSample", inputs="X, Grid", outputs="Y")
def grid_sample(n: NodeFacts) -> str:
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(n.attribute("mode", "bilinear"), "nearest")
    padding, corners = n.attribute("padding_mode", "zeros"), n.attribute("align_corners", 0)
    return f'Y = GridSample <mode = "{mode}", padding_mode = "{padding}", align_corners = {corners}> (X, Grid)'


@definition("", "AffineGrid", inputs="theta, size", outputs="grid")
def affine_grid(n: NodeFacts) -> str | None:
    """Returns the products of ``theta``, (N, 2, 3) or (N, 3, 4), with the coordinates of pixels, x first, from -1
    to 1.
    """
    if n.is_computed("size"):
        return None
    (length,), corners = n.shape("size"), n.attribute("align_corners", 0)
    if length not in (4, 5):
        raise ShapeError(f"size has {length} elements; legal: 4 of N, C, H, W or 5 of N, C, D, H, W")
    spatial, dtype = range(int(length) - 2), 11 if n.dtype("theta") == "float64" else 1
    lines = [
        "zero = Constant <value_int = 0> () one = Constant <value_int = 1> () two = Constant <value_int = 2> ()",
        f"unit = Cast <to = {dtype}> (one) first = Constant <value_ints = [2]> ()",
        f"end = Constant <value_ints = [{length}]> () extents = Slice (size, first, end)",
        "last = Constant <value_ints = [-1]> ()",
    ]
    for a in spatial:
        others = [b - len(spatial) for b in spatial if b != a]
        # Twice the distance of each pixel from the middle, divided by the number of intervals; a single pixel is in the
        # middle.
        parts = f"less{a} = Sub (e{a}, one) parts{a} = Max (less{a}, one)" if corners else f"parts{a} = Identity (e{a})"
        lines.append(
            f"at{a} = Constant <value_int = {a}> () e{a} = Gather (extents, at{a}) r{a} = Range (zero, e{a}, one)"
            f" twice{a} = Mul (r{a}, two) low{a} = Sub (e{a}, one) far{a} = Sub (twice{a}, low{a}) {parts}"
            f" f{a} = Cast <to = {dtype}> (far{a}) p{a} = Cast <to = {dtype}> (parts{a}) c{a} = Div (f{a}, p{a})"
            f" others{a} = Constant <value_ints = {integer_list(others)}> () wide{a} = Unsqueeze (c{a}, others{a})"
            f" whole{a} = Expand (wide{a}, extents) x{a} = Unsqueeze (whole{a}, last)"
        )
    places = ", ".join(f"x{a}" for a in reversed(spatial))
    lines.append(
        f"ones = Expand (unit, extents) x = Unsqueeze (ones, last) all = Concat <axis = -1> ({places}, x)"
        f" columns = Constant <value_ints = [-1, {len(spatial) + 1}]> () rows = Reshape (all, columns)"
        " typed = CastLike (rows, theta) turned = Transpose <perm = [0, 2, 1]> (theta) made = MatMul (typed, turned)"
        f" n = Shape <end = 1> (theta) axes = Constant <value_ints = [{len(spatial)}]> ()"
        " shape = Concat <axis = 0> (n, extents, axes) grid = Reshape (made, shape)"
    )
    return "\n".join(lines)


@definition(_MS, "CDist", inputs="A, B", outputs="C")
def cdist(n: NodeFacts) -> str:
    """Returns distances computed from differences, because products lose the digits of rows that are close together."""
    root = "C = Sqrt (s)" if n.attribute("metric", "sqeuclidean") == "euclidean" else "C = Identity (s)"
    return f"""one = Constant <value_ints = [1]> () zero = Constant <value_ints = [0]> () a = Unsqueeze (A, one)
        b = Unsqueeze (B, zero) d = Sub (a, b) last = Constant <value_ints = [2]> ()
        s = ReduceSumSquare <keepdims = 0> (d, last) {root}"""


@definition(_MS, "TorchEmbedding", inputs="weight, indices, padding, by_frequency", outputs="Y")
def torch_embedding(n: NodeFacts) -> str:
    return "Y = Gather (weight, indices)"


@definition(_MS, "Inverse", inputs="X", outputs="Y")
def inverse(n: NodeFacts) -> str:
    return "Y = landbridge.Inverse (X)"


@definition(_MS, "NhwcMaxPool", inputs="x", outputs="y")
def nhwc_max_pool(n: NodeFacts) -> str:
    """Returns the pool of images with their channels last."""
    how = [f"{k} = {integer_list(n.attribute(k, []))}" for k in _POOLED if n.attribute(k, [])]
    how += [f"ceil_mode = {n.attribute('ceil_mode', 0)}", f'auto_pad = "{n.attribute("auto_pad", "NOTSET")}"']
    return f"""a = Transpose <perm = [0, 3, 1, 2]> (x) b = MaxPool <{", ".join(how)}> (a)
        y = Transpose <perm = [0, 2, 3, 1]> (b)"""
