"""Operators of ``com.microsoft`` that move or measure: most came before ONNX had them."""

from __future__ import annotations

from landbridge.frontend.onnx.bodies.registry import NodeFacts, defined

_MS = "com.microsoft"


@defined(_MS, "Trilu", "X, k", "Y")
def trilu(n: NodeFacts) -> str:
    return f"Y = Trilu <upper = {n.attribute('upper', 1)}> (X{', k' if n.has('k') else ''})"


@defined(_MS, "ExpandDims", "X, axis", "Y")
def expand_dims(n: NodeFacts) -> str:
    return """wide = Cast <to = 7> (axis) one = Constant <value_ints = [1]> () axes = Reshape (wide, one)
        Y = Unsqueeze (X, axes)"""


@defined(_MS, "GatherND", "data, indices", "output")
def gather_nd(n: NodeFacts) -> str:
    return "wide = Cast <to = 7> (indices) output = GatherND (data, wide)"


@defined(_MS, "Range", "start, limit, delta", "Y")
def range_of(n: NodeFacts) -> str:
    if n.has("delta"):
        return "Y = Range (start, limit, delta)"
    return "one = Constant <value_int = 1> () step = CastLike (one, start) Y = Range (start, limit, step)"


@defined(_MS, "Pad", "data, pads, value", "output")
def pad(n: NodeFacts) -> str:
    mode = n.attribute("mode", "constant")
    return f'output = Pad <mode = "{mode}"> (data, pads{", value" if n.has("value") else ""})'


@defined(_MS, "Unique", "x", "y, idx, counts")
def unique(n: NodeFacts) -> str:
    return "y, first, idx, counts = Unique <sorted = 0> (x)"


@defined(_MS, "GridSample", "X, Grid", "Y")
def grid_sample(n: NodeFacts) -> str:
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(n.attribute("mode", "bilinear"), "nearest")
    padding, corners = n.attribute("padding_mode", "zeros"), n.attribute("align_corners", 0)
    return f'Y = GridSample <mode = "{mode}", padding_mode = "{padding}", align_corners = {corners}> (X, Grid)'


@defined(_MS, "CDist", "A, B", "C")
def cdist(n: NodeFacts) -> str:
    """Distances as differences: those of products lose the digits of rows that lie close together."""
    root = "C = Sqrt (s)" if n.attribute("metric", "sqeuclidean") == "euclidean" else "C = Identity (s)"
    return f"""one = Constant <value_ints = [1]> () zero = Constant <value_ints = [0]> () a = Unsqueeze (A, one)
        b = Unsqueeze (B, zero) d = Sub (a, b) last = Constant <value_ints = [2]> ()
        s = ReduceSumSquare <keepdims = 0> (d, last) {root}"""
