"""Operators to which onnxruntime's optimizers fuse nodes of diffusion models, T5 and others for kernels of GPUs."""

from __future__ import annotations

from math import log

from landbridge.frontend.onnx.bodies.attention_scores import as_heads
from landbridge.frontend.onnx.bodies.node_facts import NodeFacts, integer_list, like, number
from landbridge.frontend.onnx.bodies.products import convolution
from landbridge.operators import definition

_MS = "com.microsoft"
#: The distance at which the last of T5's buckets begins.
_FARTHEST = 128


@definition(_MS, "GroupNorm", inputs="X, gamma, beta", outputs="Y")
def group_norm(n: NodeFacts) -> str:
    return f"total = Identity (X) {_grouped(n)}"


@definition(_MS, "SkipGroupNorm", inputs="X, gamma, beta, skip, bias", outputs="Y, S")
def skip_group_norm(n: NodeFacts) -> str:
    """Returns the normalized sum; ``skip`` may have one element per channel, (batch, channels)."""
    last = bool(n.attribute("channels_last", 1))
    lines = [f"around = Constant <value_ints = {'[1, 2]' if last else '[2, 3]'}> ()"]
    lines.append("more = Unsqueeze (skip, around)" if len(n.shape("skip")) == 2 else "more = Identity (skip)")
    if n.has("bias"):
        lines.append("behind = Constant <value_ints = [1, 2]> ()")
        lines.append("both = Add (X, more)" + (" b = Identity (bias)" if last else " b = Unsqueeze (bias, behind)"))
        lines.append("total = Add (both, b)")
    else:
        lines.append("total = Add (X, more)")
    return " ".join([*lines, "S = Identity (total)", _grouped(n)])


def _grouped(n: NodeFacts) -> str:
    """Returns statements for ``Y`` from ``total``, whose channels may be last."""
    last = bool(n.attribute("channels_last", 1))
    how = f"num_groups = {n.attribute('groups', 1)}, epsilon = {number(n.attribute('epsilon', 1e-5))}"
    lines = [f"first = {'Transpose <perm = [0, 3, 1, 2]>' if last else 'Identity'} (total)"]
    lines.append("g_like = CastLike (gamma, first) b_like = CastLike (beta, first)")
    lines.append(f"normal = GroupNormalization <{how}> (first, g_like, b_like)")
    if n.attribute("activation", 0):
        lines.append("gate = Sigmoid (normal) active = Mul (normal, gate)")
    else:
        lines.append("active = Identity (normal)")
    return " ".join([*lines, f"Y = {'Transpose <perm = [0, 2, 3, 1]>' if last else 'Identity'} (active)"])


@definition(_MS, "NhwcConv", inputs="X, W, B", outputs="Y")
def nhwc_conv(n: NodeFacts) -> str:
    """Returns the convolution of images and weights with their channels last."""
    bias = ", B" if n.has("B") else ""
    return f"""x = Transpose <perm = [0, 3, 1, 2]> (X) w = Transpose <perm = [0, 3, 1, 2]> (W)
        y = Conv <{convolution(n)}> (x, w{bias}) Y = Transpose <perm = [0, 2, 3, 1]> (y)"""


@definition(_MS, "BiasAdd", inputs="X, bias, skip", outputs="Y")
def bias_add(n: NodeFacts) -> str:
    return "both = Add (X, bias) Y = Add (both, skip)"


@definition(_MS, "BiasSplitGelu", inputs="X, bias", outputs="Y")
def bias_split_gelu(n: NodeFacts) -> str:
    return """both = Add (X, bias) left, right = Split <axis = -1, num_outputs = 2> (both) active = Gelu (right)
        Y = Mul (left, active)"""


@definition(_MS, "GemmFastGelu", inputs="X, W, bias", outputs="Y")
def gemm_fast_gelu(n: NodeFacts) -> str:
    added = "s = Add (p, bias)" if n.has("bias") else "s = Identity (p)"
    return f'p = MatMul (X, W) {added} Y = Gelu <approximate = "tanh"> (s)'


@definition(_MS, "BiasSoftmax", inputs="data, bias", outputs="output")
def bias_softmax(n: NodeFacts) -> str:
    """Returns the softmax over all axes from ``axis`` on."""
    axis, rank = n.attribute("axis", 1), len(n.shape("data"))
    axis += rank if axis < 0 else 0
    if axis == rank - 1:
        return "s = Add (data, bias) output = Softmax <axis = -1> (s)"
    return f"""s = Add (data, bias) shape = Shape (s) rows = Flatten <axis = {axis}> (s) p = Softmax <axis = -1> (rows)
        output = Reshape (p, shape)"""


@definition(_MS, "RelativePositionBias", inputs="table, query_length, key_length", outputs="output")
def relative_position_bias(n: NodeFacts) -> str:
    """Returns the bias; ``table`` (buckets, heads) contains the elements of a tensor (heads, buckets)."""
    buckets, heads = (int(extent) for extent in n.shape("table"))
    both, longest = n.attribute("is_bidirectional", 0), n.attribute("max_distance", _FARTHEST)
    few = buckets // 2 if both else buckets
    exact = few // 2
    distance = "distance = Abs (apart)" if both else "before = Min (apart, zero) distance = Neg (before)"
    side = f"half = Constant <value_int = {few}> () is_after = Greater (apart, zero) after = Cast <to = 7> (is_after)"
    start = f"{side} start = Mul (after, half)" if both else "start = Identity (zero)"
    return f"""zero = Constant <value_int = 0> () one = Constant <value_int = 1> ()
        flat = Constant <value_ints = [-1]> () row = Constant <value_ints = [0]> ()
        q_1 = Reshape (query_length, flat) q_0 = Squeeze (q_1) q_n = Cast <to = 7> (q_0)
        k_1 = Reshape (key_length, flat) k_0 = Squeeze (k_1) k_n = Cast <to = 7> (k_0)
        q_at = Range (zero, q_n, one) k_at = Range (zero, k_n, one) columns = Constant <value_ints = [1]> ()
        q_rows = Unsqueeze (q_at, columns) apart = Sub (k_at, q_rows) {distance} {start}
        near = Constant <value_int = {exact}> () is_near = Less (distance, near)
        f_distance = Cast <to = 1> (distance) f_near = Constant <value_float = {number(exact)}> ()
        ratio_0 = Div (f_distance, f_near) f_one = Constant <value_float = 1.0> () ratio = Max (ratio_0, f_one)
        power = Log (ratio) by = Constant <value_float = {number(log(longest / exact))}> () part = Div (power, by)
        rest = Constant <value_float = {number(few - exact)}> () steps_f = Mul (part, rest)
        steps = Cast <to = 7> (steps_f) past_near = Add (steps, near)
        last = Constant <value_int = {few - 1}> () far_one = Min (past_near, last)
        inside = Where (is_near, distance, far_one) bucket = Add (start, inside)
        by_heads = Constant <value_ints = {integer_list([heads, buckets])}> () by_bucket = Reshape (table, by_heads)
        found = Gather <axis = 1> (by_bucket, bucket) output = Unsqueeze (found, row)"""


@definition(
    _MS,
    "GatedRelativePositionBias",
    inputs="query, query_bias, positions, weight, bias, eco_a, token_offset",
    outputs="output",
)
def gated_relative_position_bias(n: NodeFacts) -> str:
    """Returns the gated bias of queries (batch, steps, heads * size)."""
    if n.has("token_offset"):
        raise n.unsupported("tokens without padding; legal: queries of (batch, steps, heads * size)")
    return f"""shifted = Add (query, query_bias) {as_heads("shifted", "heads", int(n.attribute("num_heads", 1)))}
        product = MatMul (heads, weight) linear = Add (product, bias)
        pairs_to = Constant <value_ints = [0, 0, 0, 2, -1]> () pairs = Reshape (linear, pairs_to)
        last = Constant <value_ints = [-1]> () sums = ReduceSum <keepdims = 0> (pairs, last) gates = Sigmoid (sums)
        u, r = Split <axis = -1, num_outputs = 2> (gates) scaled = Mul (r, eco_a) {like("one", 1.0, "query")}
        less = Sub (scaled, one) product_u = Mul (u, less) {like("two", 2.0, "query")} gate = Add (product_u, two)
        output = Mul (gate, positions)"""
