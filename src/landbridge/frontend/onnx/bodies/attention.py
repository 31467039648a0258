"""Attention of ``com.microsoft``: with masks, past keys and values, rotary positions, quantized weights."""

from __future__ import annotations

from landbridge.frontend.onnx.bodies.registry import NodeFacts, defined, like, number, numbers

_MS = "com.microsoft"
_LOWEST = -3.4028234663852886e38


@defined(_MS, "Attention", "input, weights, bias, mask, past, attention_bias, past_length", "output, present")
def attention(n: NodeFacts) -> str:
    added = "qkv = Add (product, bias)" if n.has("bias") else "qkv = Identity (product)"
    return f"product = MatMul (input, weights) {added} {_of_packed(n, 'mask')}"


@defined(
    _MS,
    "QAttention",
    "input, weights, bias, input_scale, weight_scale, mask, input_zero, weight_zero, past",
    "output, present",
)
def quantized_attention(n: NodeFacts) -> str:
    zeros = ", input_zero" if n.has("input_zero") else ""
    zeros = f", {zeros.removeprefix(', ')}, weight_zero" if n.has("weight_zero") else zeros
    return f"""total = MatMulInteger (input, weights{zeros}) floats = CastLike (total, bias)
        scale = Mul (input_scale, weight_scale) product = Mul (floats, scale) qkv = Add (product, bias)
        {_of_packed(n, "mask")}"""


@defined(
    _MS,
    "MultiHeadAttention",
    "query, key, value, bias, mask, attention_bias, past_key, past_value, past_length",
    "output, present_key, present_value",
)
def multi_head_attention(n: NodeFacts) -> str:
    heads = n.attribute("num_heads", 1)
    if n.has("past_length"):
        raise n.unsupported("past keys in a buffer of which a part is filled; legal: keys of the steps that were")
    packed = len(n.shape("query"))
    if packed != 3:
        raise n.unsupported(f"query of {packed} axes; legal: 3")
    lines = ["q0 = Identity (query)"]
    if not n.has("key"):
        raise n.unsupported("keys and values packed with the query; legal: of their own")
    is_cached = len(n.shape("key")) == 4
    if is_cached:  # of an encoder, as heads already
        lines.append("k = Identity (key) v = Identity (value)")
    else:
        lines.append("k0 = Identity (key) v0 = Identity (value)")
    names = "q" if is_cached else "qkv"
    if n.has("bias"):
        width, whole = (int(n.shape(name)[-1]) for name in ("query", "bias"))
        widths = [width, width, whole - 2 * width]
        lines.append(
            f"widths = Constant <value_ints = {numbers(widths)}> () bq, bk, bv = Split <axis = 0> (bias, widths)"
        )
        lines += [f"{x}1 = Add ({x}0, b{x})" for x in names]
    else:
        lines += [f"{x}1 = Identity ({x}0)" for x in names]
    lines += [_as_heads(f"{x}1", x, heads) for x in names]
    lines.append("k_h = Identity (k) v_h = Identity (v)")
    lines.append(_with_past(n, "past_key", "past_value"))
    lines.append("present_key = Identity (keys) present_value = Identity (values)")
    lines.append(_attended(n, "mask", bool(n.attribute("unidirectional", 0))))
    return " ".join(lines)


@defined(_MS, "RotaryEmbedding", "input, position_ids, cos_cache, sin_cache", "output")
def rotary_embedding(n: NodeFacts) -> str:
    rank, width = len(n.shape("input")), n.attribute("rotary_embedding_dim", 0)
    interleaved, heads = n.attribute("interleaved", 0), n.attribute("num_heads", 0)
    if rank == 3 and not heads:
        heads = n.shape("input")[2] // (2 * n.shape("cos_cache")[1])
    lines = [_positions(n, rank)]
    if rank == 3:
        lines.append(f"{_as_heads('input', 'x', int(heads))}")
    else:
        lines.append("x = Identity (input)")
    how = f"interleaved = {interleaved}, rotary_embedding_dim = {width}"
    lines.append(f"y = RotaryEmbedding <{how}> (x, cos_cache, sin_cache, places)")
    lines.append(_as_rows("y", "output") if rank == 3 else "output = Identity (y)")
    return " ".join(lines)


def _positions(n: NodeFacts, rank: int) -> str:
    """``places``: a position for each row and step, where ``position_ids`` may be that of the first."""
    if len(n.shape("position_ids")) == 2:
        return "places = Identity (position_ids)"
    steps = 1 if rank == 3 else 2
    return f"""zero = Constant <value_int = 0> () one = Constant <value_int = 1> ()
        length_of = Shape <start = {steps}, end = {steps + 1}> (input) length = Squeeze (length_of)
        first = Cast <to = 7> (position_ids) steps = Range (zero, length, one) row = Add (steps, first)
        batch = Shape <start = 0, end = 1> (input) whole = Concat <axis = 0> (batch, length_of)
        places = Expand (row, whole)"""


def _as_heads(x: str, y: str, heads: int) -> str:
    """``y`` (batch, heads, steps, size) of ``x`` (batch, steps, heads * size)."""
    return f"""{y}_to = Constant <value_ints = [0, 0, {heads}, -1]> () {y}_split = Reshape ({x}, {y}_to)
        {y} = Transpose <perm = [0, 2, 1, 3]> ({y}_split)"""


def _as_rows(x: str, y: str) -> str:
    return f"""{y}_rows = Transpose <perm = [0, 2, 1, 3]> ({x}) {y}_to = Constant <value_ints = [0, 0, -1]> ()
        {y} = Reshape ({y}_rows, {y}_to)"""


def _of_packed(n: NodeFacts, mask: str) -> str:
    """Attention of ``qkv``, the columns of queries, keys and values one after the other."""
    heads, sizes = n.attribute("num_heads", 1), n.attribute("qkv_hidden_sizes", [])
    if n.attribute("do_rotary", 0) or n.has("past_length"):
        raise n.unsupported("rotary positions inside, or past keys in a buffer of which a part is filled")
    width = n.shape("weights")[1]
    widths = sizes or [width // 3] * 3
    lines = [f"widths = Constant <value_ints = {numbers(widths)}> () q1, k1, v1 = Split <axis = 2> (qkv, widths)"]
    lines += [_as_heads(f"{x}1", x, heads) for x in "qkv"]
    lines.append("k_h = Identity (k) v_h = Identity (v)")
    if n.has("past"):
        lines.append("""at_0 = Constant <value_int = 0> () at_1 = Constant <value_int = 1> ()
            past_key = Gather <axis = 0> (past, at_0) past_value = Gather <axis = 0> (past, at_1)
            keys = Concat <axis = 2> (past_key, k_h) values = Concat <axis = 2> (past_value, v_h)""")
    else:
        lines.append("keys = Identity (k_h) values = Identity (v_h)")
    lines.append("""first = Constant <value_ints = [0]> () p_k = Unsqueeze (keys, first)
        p_v = Unsqueeze (values, first) present = Concat <axis = 0> (p_k, p_v)""")
    lines.append(_attended(n, mask, bool(n.attribute("unidirectional", 0))))
    return " ".join(lines)


def _with_past(n: NodeFacts, key: str, value: str) -> str:
    if not n.has(key):
        return "keys = Identity (k_h) values = Identity (v_h)"
    return f"keys = Concat <axis = 2> ({key}, k_h) values = Concat <axis = 2> ({value}, v_h)"


def _attended(n: NodeFacts, mask: str, is_causal: bool) -> str:
    """``output`` of the heads ``q``, ``keys`` and ``values``."""
    lines = ["keys_t = Transpose <perm = [0, 1, 3, 2]> (keys) raw = MatMul (q, keys_t)", _factor(n)]
    lines.append("scores_0 = Mul (raw, factor) last = Identity (scores_0)")
    terms = []
    if n.has("attention_bias"):
        terms.append("attention_bias")
    if n.has(mask):
        lines.append(_masked(n, mask))
        terms.append("of_mask")
    if is_causal:
        lines.append(_causal())
        terms.append("of_later")
    scores = "scores_0"
    for number_of, term in enumerate(terms, 1):
        lines.append(f"scores_{number_of} = Add ({scores}, {term})")
        scores = f"scores_{number_of}"
    lines.append(f"weights_of = Softmax <axis = -1> ({scores}) mixed = MatMul (weights_of, values)")
    lines.append(_as_rows("mixed", "output"))
    return " ".join(lines)


def _factor(n: NodeFacts) -> str:
    if n.attribute("scale", 0.0):
        return like("factor", n.attribute("scale", 0.0), "raw")
    return """size_of = Shape <start = 3, end = 4> (q) size_1 = Squeeze (size_of) size = CastLike (size_1, raw)
        root = Sqrt (size) factor = Reciprocal (root)"""


def _masked(n: NodeFacts, mask: str) -> str:
    """``of_mask``: what is added to scores of keys that a mask leaves out."""
    shape = n.shape(mask)
    lines = [
        """m_zero = Constant <value_int = 0> () m_one = Constant <value_int = 1> ()
        total_of = Shape <start = 2, end = 3> (keys) total = Squeeze (total_of)"""
    ]
    if len(shape) == 1:
        ends = mask
        batch = n.shape("input" if n.has("input") else "query")[0]
        if shape[0] != batch:
            raise n.unsupported(f"a mask of {shape[0]} lengths for a batch of {batch}; legal: one for each")
        lines.append(f"""m_steps = Range (m_zero, total, m_one) m_axis = Constant <value_ints = [1]> ()
            m_wide = Cast <to = 7> ({ends}) m_ends = Unsqueeze (m_wide, m_axis) kept_2 = Less (m_steps, m_ends)""")
    elif len(shape) in (2, 3):
        lines.append(f"m_typed = CastLike (m_zero, {mask}) kept_2 = Greater ({mask}, m_typed)")
    else:
        raise n.unsupported(f"a mask of {len(shape)} axes; legal: 1 to 3")
    axes = "[1, 2]" if len(shape) < 3 else "[1]"
    lines.append(f"""m_axes = Constant <value_ints = {axes}> () kept = Unsqueeze (kept_2, m_axes)
        m_f = Constant <value_float = {number(n.attribute("mask_filter_value", -10000.0))}> ()
        out = CastLike (m_f, raw) in_0 = Constant <value_float = 0.0> () in = CastLike (in_0, raw)
        of_mask = Where (kept, in, out)""")
    return " ".join(lines)


def _causal() -> str:
    """``of_later``: what is added to scores of keys after a query, which is the last of as many."""
    return f"""c_zero = Constant <value_int = 0> () c_one = Constant <value_int = 1> ()
        c_keys = Shape <start = 2, end = 3> (keys) c_queries = Shape <start = 2, end = 3> (q)
        c_total = Squeeze (c_keys) c_count = Squeeze (c_queries) c_past = Sub (c_total, c_count)
        c_at = Range (c_zero, c_total, c_one) c_of = Range (c_zero, c_count, c_one) c_from = Add (c_of, c_past)
        c_axis = Constant <value_ints = [1]> () c_rows = Unsqueeze (c_from, c_axis)
        c_kept = LessOrEqual (c_at, c_rows) c_low = Constant <value_float = {number(_LOWEST)}> ()
        c_least = CastLike (c_low, raw) c_0 = Constant <value_float = 0.0> () c_none = CastLike (c_0, raw)
        of_later = Where (c_kept, c_none, c_least)"""
