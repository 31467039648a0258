"""GroupQueryAttention of ``com.microsoft``: groups of query heads share keys and values, which are retained in a
buffer.
"""

from __future__ import annotations

from landbridge.frontend.onnx.bodies.node_facts import NodeFacts, integer_list, like
from landbridge.operators import definition

_LOWEST = -3.4028234663852886e38


@definition(
    "com.microsoft",
    "GroupQueryAttention",
    inputs="query, key, value, past_key, past_value, ends, total, cos, sin, position_ids, attention_bias, sink",
    outputs="output, present_key, present_value",
)
def group_query_attention(n: NodeFacts) -> str:
    heads, shared = int(n.attribute("num_heads", 0)), int(n.attribute("kv_num_heads", 0))
    if n.attribute("k_quant_type", "NONE") != "NONE" or n.attribute("v_quant_type", "NONE") != "NONE":
        raise n.unsupported("keys and values that are kept quantized; legal: floats")
    if not n.has("ends", "total"):
        raise n.unsupported("seqlens_k and total_sequence_length are left out; legal: what onnxruntime takes")
    size = n.shape("query")[2] // (heads if n.has("key") else heads + 2 * shared)
    keeps_capacity = n.is_same_shape("past_key", "present_key") and n.is_same_shape("past_value", "present_value")
    lines = [_split(n, heads, shared, int(size)), _lengths(n, keeps_capacity)]
    if n.attribute("do_rotary", 0):
        lines.append(_rotated(n, int(size)))
    else:
        lines.append("q = Identity (q_h) k = Identity (k_h)")
    keep = _put_in if keeps_capacity else _retained
    lines += [keep(n, new, past) for new, past in (("k", "past_key"), ("v_h", "past_value"))]
    lines.append("present_key = Identity (k_all) present_value = Identity (v_h_all)")
    lines.append(_attended(n, heads, shared, int(size)))
    return " ".join(lines)


def _split(n: NodeFacts, heads: int, shared: int, size: int) -> str:
    """Returns statements for ``q_h``, ``k_h`` and ``v_h`` (batch, heads, steps, size)."""
    lines = []
    if n.has("key"):
        lines.append("q_r = Identity (query) k_r = Identity (key) v_r = Identity (value)")
    else:
        widths = integer_list([heads * size, shared * size, shared * size])
        lines.append(f"widths = Constant <value_ints = {widths}> () q_r, k_r, v_r = Split <axis = 2> (query, widths)")
    for name, count in (("q", heads), ("k", shared), ("v", shared)):
        lines.append(f"""{name}_to = Constant <value_ints = {integer_list([0, 0, count, size])}> ()
            {name}_s = Reshape ({name}_r, {name}_to) {name}_h = Transpose <perm = [0, 2, 1, 3]> ({name}_s)""")
    return " ".join(lines)


def _lengths(n: NodeFacts, keeps_capacity: bool) -> str:
    """Returns statements for lengths and positions.

    ``so_far`` (batch, 1): the past steps of each row; ``all``: the steps of the longest row, new ones included; ``at``
    (batch, steps): the position of each new step; ``end`` (batch, 1): the end of the last step that is not padding.
    With ``keeps_capacity`` all are limited to the capacity of the buffer. Where a device runs the kernels and there is
    a bias, which has an element for each step of the capacity, ``all`` is the capacity, and the mask leaves out what is
    behind the steps.
    """
    reads_all = int(n.has("attention_bias"))
    within = f"landbridge.LengthWithin <axis = 2, reads_all = {reads_all}> (total, k_h, past_key, past_value, ends)"
    capacity = within if keeps_capacity else "Identity (all_0)"
    return f"""i_0 = Constant <value_int = 0> () i_1 = Constant <value_int = 1> () a_1 = Constant <value_ints = [1]> ()
        flat = Constant <value_ints = [-1]> () column = Constant <value_ints = [-1, 1]> ()
        steps_of = Shape <start = 1, end = 2> (query) steps = Squeeze (steps_of)
        ends_64 = Cast <to = 7> (ends) ends_c = Reshape (ends_64, column) end = Add (ends_c, i_1)
        before = Sub (end, steps) so_far = Max (before, i_0)
        total_64 = Cast <to = 7> (total) all_0 = Reshape (total_64, flat) all = {capacity}
        step = Range (i_0, steps, i_1) at = Add (so_far, step)"""


def _rotated(n: NodeFacts, size: int) -> str:
    places = f"places = Identity ({'position_ids' if n.has('position_ids') else 'at'})"
    width = 2 * int(n.shape("cos")[1])
    interleaved = int(n.attribute("rotary_interleaved", 0))
    how = f"interleaved = {interleaved}, rotary_embedding_dim = {0 if width == size else width}"
    rotary = " ".join(f"{x} = RotaryEmbedding <{how}> ({x}_h, cos, sin, places)" for x in "qk")
    return f"{places} {rotary}"


def _put_in(_: NodeFacts, new: str, past: str) -> str:
    """Returns statements for ``{new}_all``: the buffer ``past`` with the new steps inserted; later elements stay."""
    return f"""{new}_at = Reshape (so_far, flat)
        {new}_all = TensorScatter <axis = 2> ({past}, {new}, {new}_at)"""


def _retained(n: NodeFacts, new: str, past: str) -> str:
    """Returns statements for ``{new}_all`` (batch, heads, capacity, size): past steps, then the new ones, then
    zeros.
    """
    if n.has(past):
        lines = f"""{new}_room_0 = Shape <start = 2, end = 3> ({past}) {new}_both = Concat <axis = 2> ({past}, {new})
            {new}_room = Max ({new}_room_0, all)"""
    else:
        lines = f"""{new}_room_0 = Constant <value_ints = [0]> () {new}_both = Identity ({new})
            {new}_room = Identity (all)"""
    return f"""{lines} {new}_room_s = Squeeze ({new}_room) {new}_j = Range (i_0, {new}_room_s, i_1)
        {new}_is_old = Less ({new}_j, so_far) {new}_shift = Sub ({new}_room_0, so_far)
        {new}_moved = Add ({new}_j, {new}_shift) {new}_from_0 = Where ({new}_is_old, {new}_j, {new}_moved)
        {new}_count = Shape <start = 2, end = 3> ({new}_both) {new}_top = Sub ({new}_count, i_1)
        {new}_from_1 = Min ({new}_from_0, {new}_top) {new}_from_2 = Max ({new}_from_1, i_0)
        {new}_axes = Constant <value_ints = [1, 3]> () {new}_from_3 = Unsqueeze ({new}_from_2, {new}_axes)
        {new}_b = Shape <start = 0, end = 2> ({new}) {new}_d = Shape <start = 3, end = 4> ({new})
        {new}_shape = Concat <axis = 0> ({new}_b, {new}_room, {new}_d)
        {new}_from = Expand ({new}_from_3, {new}_shape) {new}_got = GatherElements <axis = 2> ({new}_both, {new}_from)
        {new}_last = Add (so_far, steps) {new}_is_2 = Less ({new}_j, {new}_last)
        {new}_is = Unsqueeze ({new}_is_2, {new}_axes) {like(f"{new}_none", 0.0, new)}
        {new}_all = Where ({new}_is, {new}_got, {new}_none)"""


def _attended(n: NodeFacts, heads: int, shared: int, size: int) -> str:
    group = heads // shared
    lines = [
        f"""from_0 = Constant <value_ints = [0]> () along = Constant <value_ints = [2]> ()
        keys_3 = Slice (k_all, from_0, all, along) values_3 = Slice (v_h_all, from_0, all, along)
        keys = Unsqueeze (keys_3, along) values = Unsqueeze (values_3, along)
        q_groups = Constant <value_ints = {integer_list([0, shared, group, -1, size])}> () q_5 = Reshape (q, q_groups)
        keys_t = Transpose <perm = [0, 1, 2, 4, 3]> (keys) raw = MatMul (q_5, keys_t)"""
    ]
    lines.append(like("factor", n.attribute("scale", 0.0) or size**-0.5, "raw") + " s_0 = Mul (raw, factor)")
    if n.attribute("softcap", 0.0):
        lines.append(f"""{like("cap", n.attribute("softcap", 0.0), "raw")} s_c = Div (s_0, cap) s_t = Tanh (s_c)
            s_1 = Mul (s_t, cap)""")
    else:
        lines.append("s_1 = Identity (s_0)")
    if n.has("attention_bias"):
        of_heads = n.shape("attention_bias")[1]
        parts = [shared, group] if of_heads != 1 else [1, 1]
        lines.append(f"""bias_l = Shape <start = 3, end = 4> (attention_bias)
            bias_0 = Shape <start = 0, end = 1> (attention_bias) bias_s = Shape <start = 2, end = 3> (attention_bias)
            bias_h = Constant <value_ints = {integer_list(parts)}> ()
            bias_shape = Concat <axis = 0> (bias_0, bias_h, bias_s, bias_l)
            bias_5 = Reshape (attention_bias, bias_shape) s_2 = Add (s_1, bias_5)""")
    else:
        lines.append("s_2 = Identity (s_1)")
    lines.append(f"""all_s = Squeeze (all) j = Range (i_0, all_s, i_1) two = Constant <value_ints = [2]> ()
        at_3 = Unsqueeze (at, two) is_before = LessOrEqual (j, at_3) end_3 = Unsqueeze (end, two)
        is_there = Less (j, end_3) is_seen = And (is_before, is_there) {_window(n)}
        m_axes = Constant <value_ints = [1, 2]> () kept = Unsqueeze (kept_3, m_axes)
        {like("low", _LOWEST if n.dtype("query") != "float16" else -65504.0, "raw")} s_3 = Where (kept, s_2, low)""")
    if n.has("sink") or n.attribute("smooth_softmax", 0):
        lines.append(_with_sink(n, shared, group))
    else:
        lines.append("weights_of = Softmax <axis = -1> (s_3)")
    to_heads = integer_list([0, heads, -1, size])
    lines.append(f"""mixed_5 = MatMul (weights_of, values) to_4 = Constant <value_ints = {to_heads}> ()
        mixed = Reshape (mixed_5, to_4) rows = Transpose <perm = [0, 2, 1, 3]> (mixed)
        to_3 = Constant <value_ints = [0, 0, -1]> () output = Reshape (rows, to_3)""")
    return " ".join(lines)


def _window(n: NodeFacts) -> str:
    """Returns statements for ``kept_3`` from ``is_seen``: with a window, each step sees only so many before it."""
    width = int(n.attribute("local_window_size", -1))
    if width < 0:
        return "kept_3 = Identity (is_seen)"
    return f"""wide = Constant <value_int = {width}> () nearest = Sub (at_3, wide) is_near = Greater (j, nearest)
        kept_3 = And (is_seen, is_near)"""


def _with_sink(n: NodeFacts, shared: int, group: int) -> str:
    """Returns statements for a softmax with one more score per head, whose weight is discarded."""
    if n.has("sink"):
        sink = f"""sink_to = Constant <value_ints = {integer_list([1, shared, group, 1, 1])}> ()
            sink_5 = Reshape (sink, sink_to) sink_t = CastLike (sink_5, raw)"""
    else:
        sink = like("sink_t", 0.0, "raw")
    return f"""{sink} s_axis = Constant <value_ints = [-1]> ()
        s_top = ReduceMax (s_3, s_axis) s_most = Max (s_top, sink_t)
        s_off = Sub (s_3, s_most) s_exp = Exp (s_off) s_sum = ReduceSum (s_exp, s_axis) sink_off = Sub (sink_t, s_most)
        sink_exp = Exp (sink_off) s_whole = Add (s_sum, sink_exp) weights_of = Div (s_exp, s_whole)"""
