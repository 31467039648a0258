"""Attention of ONNX, by which a cache is read where it is: ONNX's own definition scales, repeats and copies its keys.

Queries are scaled alone. Heads of queries that share keys are rows of one product, so that no head is repeated.
"""

from __future__ import annotations

import math

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.frontend.onnx.bodies.attention_scores import as_heads, as_rows
from landbridge.frontend.onnx.bodies.node_facts import NodeFacts, like
from landbridge.operators import definition
from landbridge.sizes.size import Extent, same

#: ONNX's numbers of the dtypes that scores may be normalized in.
_PRECISIONS = {1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"}
_OUTPUTS = "Y, present_key, present_value, qk"


@definition("", "Attention", since=23, inputs="Q, K, V, attn_mask, past_key, past_value", outputs=_OUTPUTS)
def attention_23(n: NodeFacts) -> str | None:
    """Returns attention whose mask is as long as the keys."""
    return _attention(n, may_be_shorter=False)


@definition(
    "", "Attention", since=24, inputs="Q, K, V, attn_mask, past_key, past_value, nonpad_kv_seqlen", outputs=_OUTPUTS
)
def attention_24(n: NodeFacts) -> str | None:
    """Returns attention whose mask may be shorter than the keys: those behind it are not attended."""
    return _attention(n, may_be_shorter=True)


def _attention(n: NodeFacts, *, may_be_shorter: bool) -> str | None:
    in_rows = len(n.shape("Q")) == 3
    heads = [n.attribute(f"{x}_num_heads", 0) if in_rows else n.shape(y)[1] for x, y in (("q", "Q"), ("kv", "K"))]
    query_heads, shared = heads
    if not (isinstance(query_heads, int) and isinstance(shared, int)) or not shared or query_heads % shared:
        return None
    lines = [as_heads(x, y, h) if in_rows else f"{y} = Identity ({x})" for x, y, h in _split(query_heads, shared)]
    for past, new in (("past_key", "k"), ("past_value", "v")):
        created = f"Concat <axis = 2> ({past}, {new})" if n.has(past) else f"Identity ({new})"
        lines.append(f"present_{past.removeprefix('past_')} = {created}")
    lines.append(_in_use(n))
    lines.append(_raw(n, query_heads, shared))
    lines.append(_masked(n, may_be_shorter=may_be_shorter))
    lines.append(_normalized(n))
    lines.append(_mixed(query_heads, shared))
    lines.append(as_rows("mixed", "Y") if in_rows else "Y = Identity (mixed)")
    return " ".join(lines)


def _split(query_heads: int, shared: int) -> tuple[tuple[str, str, int], ...]:
    return ("Q", "q", query_heads), ("K", "k", shared), ("V", "v", shared)


def _reads_filled(n: NodeFacts) -> bool:
    """Returns whether keys and values may be read as far as they are filled, where kernels know how far that is."""
    return n.has("nonpad_kv_seqlen") and "qk" not in n.wanted


def _in_use(n: NodeFacts) -> str:
    """Returns statements for ``keys`` and ``values``, those in use of ``present_key`` and ``present_value``."""
    if not _reads_filled(n):
        return "keys = Identity (present_key) values = Identity (present_value)"
    longest = "ReduceMax <keepdims = 0>" if n.shape("nonpad_kv_seqlen") != (1,) else "Identity"
    return f"""longest = {longest} (nonpad_kv_seqlen) {_ints("from_0", 0)} {_ints("along_keys", 2)}
        in_use = landbridge.LongestFilled <axis = 2> (longest, present_key)
        keys = Slice (present_key, from_0, in_use, along_keys)
        values = Slice (present_value, from_0, in_use, along_keys)"""


def _raw(n: NodeFacts, heads: int, shared: int) -> str:
    """Returns statements for ``raw``, the products (batch, heads, queries, keys), and ``capped``, their soft limits."""
    if scale := n.attribute("scale", 0.0):
        factor = like("factor", scale, "q")
    elif isinstance(size := _size_of_head(n, heads), int):
        factor = like("factor", 1 / math.sqrt(size), "q")
    else:
        factor = """size_of = Shape <start = 3, end = 4> (q) size_1 = Squeeze (size_of) size = CastLike (size_1, q)
            root = Sqrt (size) factor = Reciprocal (root)"""
    lines = [factor, "scaled = Mul (q, factor) keys_t = Transpose <perm = [0, 1, 3, 2]> (keys)"]
    if heads == shared:
        lines.append("raw = MatMul (scaled, keys_t)")
    else:
        lines.append(f"""{_ints("zero_1", 0)} {_ints("shared", shared)} {_ints("rest", -1)}
            head_size = Shape <start = 3, end = 4> (scaled)
            in_groups = Concat <axis = 0> (zero_1, shared, rest, head_size) grouped = Reshape (scaled, in_groups)
            products = MatMul (grouped, keys_t) of_queries = Shape <start = 0, end = 3> (scaled)
            of_keys = Shape <start = 2, end = 3> (keys) all_heads = Concat <axis = 0> (of_queries, of_keys)
            raw = Reshape (products, all_heads)""")
    if softcap := n.attribute("softcap", 0.0):
        lines.append(f"{like('cap', softcap, 'raw')} cap_part = Div (raw, cap) cap_tanh = Tanh (cap_part)")
        lines.append("capped = Mul (cap_tanh, cap)")
    else:
        lines.append("capped = Identity (raw)")
    return " ".join(lines)


def _size_of_head(n: NodeFacts, heads: int) -> Extent:
    size = n.shape("Q")[-1]
    return size // heads if len(n.shape("Q")) == 3 else size


def _masked(n: NodeFacts, *, may_be_shorter: bool) -> str:
    """Returns statements for ``scores``, and for ``is_masked``, where it is possible that a query attends no key.

    A key is attended where all conditions hold; a mask of floats is added.
    """
    lines, conditions = [_positions(n)], []
    has_mask = n.has("attn_mask")
    is_bool = has_mask and n.dtype("attn_mask") == "bool"
    if has_mask:
        lines.append(_as_long_as_keys(n, is_bool) if may_be_shorter else "mask_all = Identity (attn_mask)")
        if _reads_filled(n):
            lines.append(f"{_ints('along_mask', -1)} mask = Slice (mask_all, from_0, in_use, along_mask)")
        else:
            lines.append("mask = Identity (mask_all)")
    if is_bool:
        conditions.append("mask")
    left, right = (n.attribute(f"{side}_window_size", -1) for side in ("left", "right"))
    if n.attribute("is_causal", 0):
        lines.append("is_before = LessOrEqual (key_at, query_at)")
        conditions.append("is_before")
    if left >= 0:
        lines.append(f"{_number('left', left)} first_at = Sub (query_at, left)")
        lines.append("is_near = GreaterOrEqual (key_at, first_at)")
        conditions.append("is_near")
    if right >= 0:
        lines.append(
            f"{_number('right', right)} last_at = Add (query_at, right) is_soon = LessOrEqual (key_at, last_at)"
        )
        conditions.append("is_soon")
    if n.has("nonpad_kv_seqlen"):
        lines.append("is_filled = Less (key_at, filled)")
        conditions.append("is_filled")
    allowed = conditions[0] if conditions else ""
    for number, condition in enumerate(conditions[1:]):
        lines.append(f"allowed_{number} = And ({allowed}, {condition})")
        allowed = f"allowed_{number}"
    never = n.array("never", np.array(-np.inf, numpy_dtype(n.dtype("Q"))))
    if has_mask and not is_bool:
        bias = "mask"
        if allowed:
            lines.append(f"bias = Where ({allowed}, mask, {never})")
            bias = "bias"
        lines.append(f"scores = Add (capped, {bias}) {_ints('last_axis', -1)}")
        lines.append(f"greatest = ReduceMax ({bias}, last_axis) is_masked = Equal (greatest, {never})")
    elif allowed:
        lines.append(f"scores = Where ({allowed}, capped, {never})")
        if is_bool or n.has("nonpad_kv_seqlen"):  # else each query attends a key: its own
            lines.append(f"as_numbers = Cast <to = 6> ({allowed}) {_ints('last_axis', -1)}")
            lines.append("any_allowed = ReduceMax (as_numbers, last_axis) none = Constant <value_int = 0> ()")
            lines.append("none_32 = CastLike (none, any_allowed) is_masked = Equal (any_allowed, none_32)")
    else:
        lines.append("scores = Identity (capped)")
    return " ".join(lines)


def _positions(n: NodeFacts) -> str:
    """Returns statements for the places of keys and queries among all steps, and for the number of filled keys."""
    lines = [
        f"""{_number("zero", 0)} {_number("one", 1)} total_of = Shape <start = 2, end = 3> (keys)
        total = Squeeze (total_of) key_at = Range (zero, total, one) count_of = Shape <start = 2, end = 3> (q)
        count = Squeeze (count_of) query = Range (zero, count, one) {_ints("axis_1", 1)}
        query_row = Unsqueeze (query, axis_1)"""
    ]
    if n.has("nonpad_kv_seqlen"):
        lines.append(f"{_ints('axes_123', 1, 2, 3)} filled = Unsqueeze (nonpad_kv_seqlen, axes_123)")
    if n.has("past_key"):
        lines.append("past_of = Shape <start = 2, end = 3> (past_key) query_at = Add (query_row, past_of)")
    elif n.has("nonpad_kv_seqlen"):
        lines.append("before = Sub (filled, count_of) query_at = Add (query_row, before)")
    else:
        lines.append("query_at = Identity (query_row)")
    return " ".join(lines)


def _as_long_as_keys(n: NodeFacts, is_bool: bool) -> str:
    """Returns statements for ``mask_all``, which allows none of the keys that ``attn_mask`` does not have."""
    steps = n.shape("K")[1 if len(n.shape("K")) == 3 else 2]
    total = steps + n.shape("past_key")[2] if n.has("past_key") else steps
    if same(n.shape("attn_mask")[-1], total):
        return "mask_all = Identity (attn_mask)"
    fill = n.array("no_key", np.array(False) if is_bool else np.array(-np.inf, numpy_dtype(n.dtype("attn_mask"))))
    return f"""mask_of = Shape <start = -1> (attn_mask) all_of = Shape <start = 2, end = 3> (present_key)
        absent = Sub (all_of, mask_of) {_ints("pad_from", 0)}
        pads = Concat <axis = 0> (pad_from, absent) {_ints("pad_axis", -1)}
        mask_all = Pad (attn_mask, pads, {fill}, pad_axis)"""


def _normalized(n: NodeFacts) -> str:
    """Returns statements for ``weights``, and for ``qk``, what the node gives of its scores."""
    precision = _PRECISIONS.get(n.attribute("softmax_precision", 0))
    mode = n.attribute("qk_matmul_output_mode", 0)
    if precision is None or precision == n.dtype("Q"):
        lines = ["normalized = Softmax <axis = -1> (scores)"]
    else:
        to = n.attribute("softmax_precision", 0)
        lines = [f"precise = Cast <to = {to}> (scores) precise_p = Softmax <axis = -1> (precise)"]
        lines.append("normalized = CastLike (precise_p, scores)")
    if _may_be_masked(n):
        nothing = n.array("nothing", np.array(0, numpy_dtype(n.dtype("Q"))))
        lines.append(f"weights = Where (is_masked, {nothing}, normalized)")
    else:
        lines.append("weights = Identity (normalized)")
    lines.append(f"qk = Identity ({('raw', 'capped', 'scores', 'weights')[mode]})")
    return " ".join(lines)


def _may_be_masked(n: NodeFacts) -> bool:
    return n.has("attn_mask") or n.has("nonpad_kv_seqlen")


def _mixed(heads: int, shared: int) -> str:
    """Returns statements for ``mixed``, (batch, heads, queries, size)."""
    if heads == shared:
        return "mixed = MatMul (weights, values)"
    return """rows_of = Concat <axis = 0> (zero_1, shared, rest, total_of) grouped_weights = Reshape (weights, rows_of)
        grouped_values = MatMul (grouped_weights, values) value_size = Shape <start = 3, end = 4> (values)
        to_heads = Concat <axis = 0> (of_queries, value_size) mixed = Reshape (grouped_values, to_heads)"""


def _ints(name: str, *values: int) -> str:
    return f"{name} = Constant <value_ints = [{', '.join(map(str, values))}]> ()"


def _number(name: str, value: int) -> str:
    return f"{name} = Constant <value_int = {value}> ()"
